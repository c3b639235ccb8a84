// RUN: xdsl-opt %s -p 'lw-graph-sink-views,dce' | filecheck %s

// CHECK-LABEL: func.func @behind_a_product
func.func @behind_a_product(%x: tensor<6x4xf32>, %w: tensor<8x4xf32>, %r: tensor<2x3x8xf32>) -> tensor<2x3x8xf32> {
  %b = lw_graph.constant "b" : tensor<1x1x8xf32>
  %s = lw_graph.constant "s" = 2.0 : tensor<1xf32>
  // CHECK: %y = lw_graph.apply "dense" (%x, %w)
  %y = lw_graph.apply "dense" (%x, %w) : (tensor<6x4xf32>, tensor<8x4xf32>) -> tensor<6x8xf32>
  %v = lw_graph.apply "reshape" (%y) <shape = [2, 3, 8]> : (tensor<6x8xf32>) -> tensor<2x3x8xf32>
  // CHECK-NEXT: %[[b:[a-z_0-9]*]] = lw_graph.apply "reshape" (%b) <shape = [8]>
  // CHECK-NEXT: %c = lw_graph.apply "add" (%y, %[[b]]) : (tensor<6x8xf32>, tensor<8xf32>) -> tensor<6x8xf32>
  %c = lw_graph.apply "add" (%v, %b) : (tensor<2x3x8xf32>, tensor<1x1x8xf32>) -> tensor<2x3x8xf32>
  // CHECK-NEXT: %[[s:[a-z_0-9]*]] = lw_graph.apply "reshape" (%s) <shape = []>
  // CHECK-NEXT: %d = lw_graph.apply "multiply" (%c, %[[s]]) : (tensor<6x8xf32>, tensor<f32>) -> tensor<6x8xf32>
  %d = lw_graph.apply "multiply" (%c, %s) : (tensor<2x3x8xf32>, tensor<1xf32>) -> tensor<2x3x8xf32>
  // CHECK-NEXT: %[[r:[a-z_0-9]*]] = lw_graph.apply "reshape" (%r) <shape = [6, 8]>
  // CHECK-NEXT: %[[e:[a-z_0-9]*]] = lw_graph.apply "add" (%d, %[[r]]) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
  // CHECK-NEXT: %{{.*}} = lw_graph.apply "reshape" (%[[e]]) <shape = [2, 3, 8]>
  %e = lw_graph.apply "add" (%d, %r) : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  func.return %e : tensor<2x3x8xf32>
}

// Broadcast along an axis that the other shape does not have: the view stays where it is.
// CHECK-LABEL: func.func @stays
func.func @stays(%x: tensor<6xf32>, %r: tensor<2x1xf32>) -> tensor<2x3xf32> {
  %y = lw_graph.apply "relu" (%x) : (tensor<6xf32>) -> tensor<6xf32>
  // CHECK: %v = lw_graph.apply "reshape" (%y)
  // CHECK-NEXT: %e = lw_graph.apply "add" (%v, %r)
  %v = lw_graph.apply "reshape" (%y) <shape = [2, 3]> : (tensor<6xf32>) -> tensor<2x3xf32>
  %e = lw_graph.apply "add" (%v, %r) : (tensor<2x3xf32>, tensor<2x1xf32>) -> tensor<2x3xf32>
  func.return %e : tensor<2x3xf32>
}

// All that reads the view follows; where one cannot, the view stays.
// CHECK-LABEL: func.func @diamond
func.func @diamond(%x: tensor<6x8xf32>, %r: tensor<2x1x8xf32>) -> (tensor<2x3x8xf32>, tensor<2x3x8xf32>) {
  %y = lw_graph.apply "relu" (%x) : (tensor<6x8xf32>) -> tensor<6x8xf32>
  %v = lw_graph.apply "reshape" (%y) <shape = [2, 3, 8]> : (tensor<6x8xf32>) -> tensor<2x3x8xf32>
  // CHECK: %a = lw_graph.apply "sigmoid" (%y) : (tensor<6x8xf32>) -> tensor<6x8xf32>
  %a = lw_graph.apply "sigmoid" (%v) : (tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  // CHECK-NEXT: %b = lw_graph.apply "multiply" (%y, %a) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
  %b = lw_graph.apply "multiply" (%v, %a) : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  // CHECK: %z = lw_graph.apply "exp" (%x)
  %z = lw_graph.apply "exp" (%x) : (tensor<6x8xf32>) -> tensor<6x8xf32>
  // CHECK-NEXT: %w = lw_graph.apply "reshape" (%z)
  %w = lw_graph.apply "reshape" (%z) <shape = [2, 3, 8]> : (tensor<6x8xf32>) -> tensor<2x3x8xf32>
  // CHECK-NEXT: %c = lw_graph.apply "sigmoid" (%w)
  %c = lw_graph.apply "sigmoid" (%w) : (tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  // CHECK-NEXT: %d = lw_graph.apply "add" (%w, %r)
  %d = lw_graph.apply "add" (%w, %r) : (tensor<2x3x8xf32>, tensor<2x1x8xf32>) -> tensor<2x3x8xf32>
  %e = lw_graph.apply "multiply" (%c, %d) : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  func.return %b, %e : tensor<2x3x8xf32>, tensor<2x3x8xf32>
}

// The sum joins the product that gives its other input, and would lose it below the view.
// CHECK-LABEL: func.func @joined_already
func.func @joined_already(%x: tensor<6x4xf32>, %w: tensor<8x4xf32>, %r: tensor<2x3x8xf32>) -> tensor<6x8xf32> {
  %n = lw_graph.apply "exp" (%r) : (tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  %y = lw_graph.apply "dense" (%x, %w) : (tensor<6x4xf32>, tensor<8x4xf32>) -> tensor<6x8xf32>
  %z = lw_graph.apply "relu" (%y) : (tensor<6x8xf32>) -> tensor<6x8xf32>
  // CHECK: %v = lw_graph.apply "reshape" (%n)
  // CHECK-NEXT: %e = lw_graph.apply "add" (%z, %v) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
  // CHECK-NEXT: func.return %e
  %v = lw_graph.apply "reshape" (%n) <shape = [6, 8]> : (tensor<2x3x8xf32>) -> tensor<6x8xf32>
  %e = lw_graph.apply "add" (%z, %v) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
  func.return %e : tensor<6x8xf32>
}
