// RUN: xdsl-opt %s -p 'lw-graph-split-products,dce' | filecheck %s
// RUN: xdsl-opt %s -p 'lw-graph-split-products{rows=1},dce' | filecheck %s --check-prefix=FEWER

// Both halves of the columns, each with its half of what is added to all of them; the number stays.
// CHECK-LABEL: func.func @gated
// FEWER-LABEL: func.func @gated
func.func @gated(%x: tensor<2x4xf32>, %w: tensor<16x4xf32>, %b: tensor<16xf32>) -> tensor<1x2x8xf32> {
  // FEWER: "dense" (%x, %w)
  // FEWER-NOT: "dense_parts"
  %p = lw_graph.apply "dense" (%x, %w) : (tensor<2x4xf32>, tensor<16x4xf32>) -> tensor<2x16xf32>
  %two = lw_graph.constant "two" = 2.0 : tensor<f32>
  %t = lw_graph.apply "multiply" (%p, %two) : (tensor<2x16xf32>, tensor<f32>) -> tensor<2x16xf32>
  %v = lw_graph.apply "reshape" (%t) <shape = [1, 2, 16]> : (tensor<2x16xf32>) -> tensor<1x2x16xf32>
  // CHECK: %[[one:[a-z_0-9]*]], %[[other:[a-z_0-9]*]] = lw_graph.apply "dense_parts" (%x, %w) <parts = 2>
  // CHECK: %[[doubled:[a-z_0-9]*]] = lw_graph.apply "multiply" (%[[one]], %two) : (tensor<2x8xf32>, tensor<f32>)
  // CHECK: lw_graph.apply "strided_slice" (%{{.*}}) <axes = [1], begin = [0], end = [8], strides = [1]>
  // CHECK-NEXT: lw_graph.apply "add" (%[[doubled]], %{{.*}}) : (tensor<2x8xf32>, tensor<1x8xf32>)
  %s = lw_graph.apply "add" (%v, %b) : (tensor<1x2x16xf32>, tensor<16xf32>) -> tensor<1x2x16xf32>
  // CHECK: lw_graph.apply "multiply" (%[[other]], %two)
  // CHECK: lw_graph.apply "strided_slice" (%{{.*}}) <axes = [1], begin = [8], end = [16], strides = [1]>
  %g = lw_graph.apply "strided_slice" (%s) <begin = [0], end = [8], axes = [2]> : (tensor<1x2x16xf32>) -> tensor<1x2x8xf32>
  %h = lw_graph.apply "strided_slice" (%s) <begin = [8], end = [16], axes = [2]> : (tensor<1x2x16xf32>) -> tensor<1x2x8xf32>
  // CHECK: lw_graph.apply "multiply" ({{.*}}) : (tensor<1x2x8xf32>, tensor<1x2x8xf32>) -> tensor<1x2x8xf32>
  %r = lw_graph.apply "multiply" (%g, %h) : (tensor<1x2x8xf32>, tensor<1x2x8xf32>) -> tensor<1x2x8xf32>
  func.return %r : tensor<1x2x8xf32>
}
