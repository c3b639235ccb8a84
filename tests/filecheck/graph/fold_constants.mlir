// RUN: xdsl-opt %s -p 'lw-graph-fold-constants,dce' | filecheck %s

// CHECK-LABEL: func.func @net
func.func @net(%x: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<3xf32>) {
  // CHECK-NEXT: %a = lw_graph.constant "a" : tensor<3xf32>
  // CHECK-NEXT: %a.folded = lw_graph.constant "a.folded" : tensor<3xf32>
  // CHECK-NEXT: %a.folded1 = lw_graph.constant "a.folded1" : tensor<1x3xf32>
  %a = lw_graph.constant "a" : tensor<3xf32>
  %two = lw_graph.constant "two" = 2.0 : tensor<f32>
  %b = lw_graph.apply "exp" (%a) : (tensor<3xf32>) -> tensor<3xf32>
  %c = lw_graph.apply "multiply" (%b, %two) : (tensor<3xf32>, tensor<f32>) -> tensor<3xf32>
  %d = lw_graph.apply "reshape" (%c) <shape = [1, 3]> : (tensor<3xf32>) -> tensor<1x3xf32>
  // CHECK-NEXT: %y = lw_graph.apply "add" (%x, %a.folded1)
  %y = lw_graph.apply "add" (%x, %d) : (tensor<2x3xf32>, tensor<1x3xf32>) -> tensor<2x3xf32>
  // CHECK-NEXT: %z = lw_graph.apply "add" (%y, %a)
  %z = lw_graph.apply "add" (%y, %a) : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  // CHECK-NEXT: func.return %z, %a.folded
  func.return %z, %b : tensor<2x3xf32>, tensor<3xf32>
}

// What must be computed, once, by whoever has the values.
// CHECK: func.func private @lw_constants() -> (tensor<3xf32>, tensor<1x3xf32>) attributes {lw.names = ["a.folded", "a.folded1"]} {
// CHECK-NEXT: %a = lw_graph.constant "a"
// CHECK-NEXT: %b = lw_graph.apply "exp" (%a)
// CHECK-NEXT: %two = lw_graph.constant "two" = 2.0
// CHECK-NEXT: %c = lw_graph.apply "multiply" (%b, %two)
// CHECK-NEXT: %d = lw_graph.apply "reshape" (%c)
// CHECK-NEXT: func.return %b, %d
