// RUN: xdsl-opt %s --allow-unregistered-dialect -p 'canonicalize,lw-convert-tosa-to-graph,lw-convert-stablehlo-to-graph,cse,lw-convert-linalg-to-graph,lw-graph-simplify,lw-graph-find-norms,lw-graph-fold-batch-norm,lw-graph-sink-views,lw-graph-fold-constants,lw-graph-convert-layout,lw-graph-fuse,dce' | filecheck %s
// RUN: xdsl-opt %s --allow-unregistered-dialect -p 'lw-convert-linalg-to-graph' | filecheck %s --check-prefix=LINALG

// Each pass takes the functions of its dialects, in a module of several, between passes of others; the rest stays.
builtin.module {
  // CHECK-LABEL: func.func @of_tosa
  // CHECK-NEXT: lw_graph.group "tanh"
  // LINALG-LABEL: func.func @of_tosa
  // LINALG-NEXT: "tosa.tanh"
  func.func @of_tosa(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
    %y = "tosa.tanh"(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
    func.return %y : tensor<4x8xf32>
  }

  // CHECK-LABEL: func.func @of_stablehlo
  // CHECK-NEXT: lw_graph.group "exp_multiply"
  // LINALG-LABEL: func.func @of_stablehlo
  // LINALG-NEXT: "stablehlo.exponential"
  func.func @of_stablehlo(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
    %y = "stablehlo.exponential"(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
    %z = func.call @helper(%x, %y) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    func.return %z : tensor<4x8xf32>
  }

  // CHECK-LABEL: func.func private @helper
  // CHECK-NEXT: lw_graph.group "multiply"
  func.func private @helper(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>) -> tensor<4x8xf32> {
    %z = "stablehlo.multiply"(%x, %y) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    func.return %z : tensor<4x8xf32>
  }

  // CHECK-LABEL: func.func @of_linalg
  // CHECK-NEXT: lw_graph.group "add"
  // LINALG-LABEL: func.func @of_linalg
  // LINALG: lw_graph.apply "add"
  func.func @of_linalg(%x: tensor<4xf32>) -> tensor<4xf32> {
    %e = tensor.empty() : tensor<4xf32>
    %y = linalg.add ins(%x, %x : tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
    func.return %y : tensor<4xf32>
  }

  // Two front ends in one function, a call of a function of another one, loops, and what has no body.
  // CHECK-LABEL: func.func @of_two
  // CHECK-NEXT: "stablehlo.abs"
  // CHECK-NEXT: "tosa.exp"
  func.func @of_two(%x: tensor<4xf32>) -> tensor<4xf32> {
    %y = "stablehlo.abs"(%x) : (tensor<4xf32>) -> tensor<4xf32>
    %z = "tosa.exp"(%y) : (tensor<4xf32>) -> tensor<4xf32>
    func.return %z : tensor<4xf32>
  }

  // CHECK-LABEL: func.func @calls_another
  // CHECK-NEXT: "stablehlo.abs"
  // CHECK-NEXT: func.call @of_linalg
  func.func @calls_another(%x: tensor<4xf32>) -> tensor<4xf32> {
    %y = "stablehlo.abs"(%x) : (tensor<4xf32>) -> tensor<4xf32>
    %z = func.call @of_linalg(%y) : (tensor<4xf32>) -> tensor<4xf32>
    func.return %z : tensor<4xf32>
  }

  // CHECK-LABEL: func.func @of_others
  // CHECK-NEXT: "other.begin"
  func.func @of_others(%a: index) -> index {
    "other.begin"() : () -> ()
    %b = arith.addi %a, %a : index
    func.return %b : index
  }

  // CHECK: func.func private @outside(tensor<4xf32>) -> tensor<4xf32>
  func.func private @outside(tensor<4xf32>) -> tensor<4xf32>
}
