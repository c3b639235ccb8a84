// RUN: xdsl-opt %s -p 'lw-graph-lower-precision{dtype=tf32},lw-graph-fuse,lw-graph-round-products' | filecheck %s
// RUN: xdsl-opt %s -p 'lw-graph-fuse,lw-graph-round-products' | filecheck %s --check-prefix=EXACT
// EXACT-NOT: rounds

// A product in a group rounds its factors; what lies behind it stays as it is, and so do depthwise convolutions.
// CHECK-LABEL: func.func @network
// CHECK-SAME: attributes {lw_graph.factors = "tf32"}
func.func @network(%x: tensor<1x8x8x16xf32>, %v: tensor<1x8x8x16xf32>, %w: tensor<3x3x16x32xf32>, %d: tensor<3x3x16x1xf32>, %e: tensor<2x4xf64>, %f: tensor<3x4xf64>) -> (tensor<1x6x6x32xf32>, tensor<1x6x6x16xf32>, tensor<2x3xf64>) {
  // CHECK: lw_graph.apply "conv2d" ({{.*}}) <layout = "NHWC", rounds = "tf32">
  // CHECK-NEXT: lw_graph.apply "relu" ({{[^<]*}})
  %c = lw_graph.apply "conv2d" (%x, %w) <layout = "NHWC"> : (tensor<1x8x8x16xf32>, tensor<3x3x16x32xf32>) -> tensor<1x6x6x32xf32>
  %r = lw_graph.apply "relu" (%c) : (tensor<1x6x6x32xf32>) -> tensor<1x6x6x32xf32>
  // CHECK: lw_graph.apply "depthwise_conv2d" ({{.*}}) <layout = "NHWC">
  %s = lw_graph.apply "depthwise_conv2d" (%v, %d) <layout = "NHWC"> : (tensor<1x8x8x16xf32>, tensor<3x3x16x1xf32>) -> tensor<1x6x6x16xf32>
  // CHECK: lw_graph.apply "dense" ({{[^<]*}}) : (tensor<2x4xf64>
  %p = lw_graph.apply "dense" (%e, %f) : (tensor<2x4xf64>, tensor<3x4xf64>) -> tensor<2x3xf64>
  func.return %r, %s, %p : tensor<1x6x6x32xf32>, tensor<1x6x6x16xf32>, tensor<2x3xf64>
}
