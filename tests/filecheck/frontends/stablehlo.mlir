// RUN: xdsl-opt %s --allow-unregistered-dialect -p 'lw-convert-stablehlo-to-graph{skip=true}' | filecheck %s
// RUN: xdsl-opt %s --allow-unregistered-dialect -p 'lw-convert-stablehlo-to-graph{skip=true},lw-graph-fuse' | filecheck %s --check-prefix=FUSED
// RUN: xdsl-opt %s --allow-unregistered-dialect -p 'lw-convert-stablehlo-to-graph' --verify-diagnostics | filecheck %s --check-prefix=REFUSED

// REFUSED: lw-convert-stablehlo-to-graph: function 'calls_out' cannot be imported: stablehlo.custom_call: it calls 'other', which is code outside of the program

// Infinity is bits in StableHLO, which xDSL reads as an integer: the maximum starts from it nonetheless.
// CHECK-LABEL: func.func @mine
// CHECK-NEXT: %w = lw_graph.constant "w" = dense<"0x0000803f00000040000040400000804000
// CHECK-NEXT: %y = lw_graph.apply "add" (%x, %w) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
// CHECK-NEXT: %m = lw_graph.apply "max" (%y) <axis = [1]> : (tensor<2x3xf32>) -> tensor<2xf32>
// CHECK-NEXT: func.return %m : tensor<2xf32>
// FUSED: lw_graph.group "add_max"
func.func @mine(%x: tensor<2x3xf32>) -> tensor<2xf32> {
  %w = "stablehlo.constant"() <{value = dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : tensor<2x3xf32>}> : () -> tensor<2x3xf32>
  %lowest = "stablehlo.constant"() <{value = dense<0xFF800000> : tensor<f32>}> : () -> tensor<f32>
  %y = "stablehlo.add"(%x, %w) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %m = "stablehlo.reduce"(%y, %lowest) <{dimensions = array<i64: 1>}> ({
  ^bb0(%p: tensor<f32>, %q: tensor<f32>):
    %r = "stablehlo.maximum"(%p, %q) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    "stablehlo.return"(%r) : (tensor<f32>) -> ()
  }) : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
  func.return %m : tensor<2xf32>
}

// CHECK-LABEL: func.func @another
// CHECK: lw_graph.constant "w_1" = dense<
func.func @another(%x: tensor<2xf32>) -> tensor<2xf32> {
  %w = "stablehlo.constant"() <{value = dense<[1.0, 2.0]> : tensor<2xf32>}> : () -> tensor<2xf32>
  %y = "stablehlo.multiply"(%x, %w) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  func.return %y : tensor<2xf32>
}

// Functions of others stay as they are.
// CHECK-LABEL: func.func @of_others
// CHECK-NEXT: arith.addi
func.func @of_others(%a: i32, %b: i32) -> i32 {
  %c = arith.addi %a, %b : i32
  func.return %c : i32
}

// CHECK-LABEL: func.func @mixed
// CHECK-NEXT: "other.op"
// CHECK-NEXT: "stablehlo.tanh"
func.func @mixed(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = "other.op"(%x) : (tensor<2xf32>) -> tensor<2xf32>
  %1 = "stablehlo.tanh"(%0) : (tensor<2xf32>) -> tensor<2xf32>
  func.return %1 : tensor<2xf32>
}

// CHECK-LABEL: func.func @calls_out
// CHECK-NEXT: "stablehlo.custom_call"
func.func @calls_out(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = "stablehlo.custom_call"(%x) <{call_target_name = "other"}> : (tensor<2xf32>) -> tensor<2xf32>
  func.return %0 : tensor<2xf32>
}
