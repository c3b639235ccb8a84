// RUN: xdsl-opt %s -p 'lw-graph-winograd' | filecheck %s
// RUN: xdsl-opt %s -p 'lw-graph-winograd{tile_size=2}' | filecheck %s --check-prefix=SMALL

// CHECK-LABEL: func.func @fits
// CHECK: %[[t:[a-z_0-9]*]] = lw_graph.apply "winograd_weight_transform" (%w) : {{.*}} -> tensor<6x6x4x8xf32>
// CHECK-NEXT: %conv = lw_graph.apply "conv2d_winograd" (%x, %[[t]]) <padding = 1>
// SMALL-LABEL: func.func @fits
// SMALL: lw_graph.apply "winograd_weight_transform" (%w) <tile_size = 2> : {{.*}} -> tensor<4x4x4x8xf32>
// SMALL-NEXT: lw_graph.apply "conv2d_winograd" {{.*}}tile_size = 2
func.func @fits(%x: tensor<1x4x9x7xf32>) -> tensor<1x8x9x7xf32> {
  %w = lw_graph.constant "w" : tensor<8x4x3x3xf32>
  %conv = lw_graph.apply "conv2d" (%x, %w) <padding = 1> : (tensor<1x4x9x7xf32>, tensor<8x4x3x3xf32>) -> tensor<1x8x9x7xf32>
  func.return %conv : tensor<1x8x9x7xf32>
}

// Strides, other windows, and weights that are no constants stay.
// CHECK-LABEL: func.func @stays
// CHECK-NOT: winograd
func.func @stays(%x: tensor<1x4x9x7xf32>, %v: tensor<8x4x3x3xf32>) -> (tensor<1x8x5x4xf32>, tensor<1x8x9x7xf32>, tensor<1x8x9x7xf32>) {
  %w = lw_graph.constant "w" : tensor<8x4x3x3xf32>
  %one = lw_graph.constant "one" : tensor<8x4x1x1xf32>
  %a = lw_graph.apply "conv2d" (%x, %w) <padding = 1, stride = 2> : (tensor<1x4x9x7xf32>, tensor<8x4x3x3xf32>) -> tensor<1x8x5x4xf32>
  %b = lw_graph.apply "conv2d" (%x, %one) : (tensor<1x4x9x7xf32>, tensor<8x4x1x1xf32>) -> tensor<1x8x9x7xf32>
  %c = lw_graph.apply "conv2d" (%x, %v) <padding = 1> : (tensor<1x4x9x7xf32>, tensor<8x4x3x3xf32>) -> tensor<1x8x9x7xf32>
  func.return %a, %b, %c : tensor<1x8x5x4xf32>, tensor<1x8x9x7xf32>, tensor<1x8x9x7xf32>
}

// In a group the weights come transformed, too, and the label says it.
// CHECK-LABEL: func.func @grouped
// CHECK: %[[g:[a-z_0-9]*]] = lw_graph.apply "winograd_weight_transform" (%w) : {{.*}} -> tensor<6x6x4x8xf32>
// CHECK-NEXT: lw_graph.group "conv2d_winograd_relu" (%p0 = %x : {{.*}}, %p1 = %[[g]] : tensor<6x6x4x8xf32>)
// CHECK-NEXT: lw_graph.apply "conv2d_winograd" (%p0, %p1) <padding = 1>
func.func @grouped(%x: tensor<1x4x9x7xf32>) -> tensor<1x8x9x7xf32> {
  %w = lw_graph.constant "w" : tensor<8x4x3x3xf32>
  %y = lw_graph.group "conv2d_relu" (%p0 = %x : tensor<1x4x9x7xf32>, %p1 = %w : tensor<8x4x3x3xf32>) -> tensor<1x8x9x7xf32> {
    %conv = lw_graph.apply "conv2d" (%p0, %p1) <padding = 1> : (tensor<1x4x9x7xf32>, tensor<8x4x3x3xf32>) -> tensor<1x8x9x7xf32>
    %relu = lw_graph.apply "relu" (%conv) : (tensor<1x8x9x7xf32>) -> tensor<1x8x9x7xf32>
    lw_graph.yield %relu : tensor<1x8x9x7xf32>
  }
  func.return %y : tensor<1x8x9x7xf32>
}
