// RUN: xdsl-opt %s -p 'lw-graph-convert-layout{layout=NHWC},dce' | filecheck %s
// RUN: xdsl-opt %s -p 'lw-graph-convert-layout{layout=NHWC},dce,lw-graph-convert-layout{layout=NCHW},lw-graph-simplify,cse,dce' | filecheck %s --check-prefix=BACK
// RUN: xdsl-opt %s -p 'lw-graph-convert-layout{layout=CHWN}' --verify-diagnostics | filecheck %s --check-prefix=REFUSED

// REFUSED: lw-graph-convert-layout{layout="CHWN"}: layout is NCHW or NHWC, got 'CHWN'

// CHECK-LABEL: func.func @net
// BACK-LABEL: func.func @net
func.func @net(%x: tensor<1x4x6x6xf32>, %s: tensor<8x1x1xf32>) -> (tensor<1x8x6x6xf32>, tensor<1x16x1x1xf32>) {
  %w = lw_graph.constant "w" : tensor<8x4x3x3xf32>
  // CHECK: %[[x:[a-z_0-9]*]] = lw_graph.apply "transpose" (%x) <axes = [0, 2, 3, 1]>
  // CHECK-NEXT: %[[w:[a-z_0-9]*]] = lw_graph.apply "transpose" (%w) <axes = [2, 3, 1, 0]>
  // CHECK-NEXT: %y = lw_graph.apply "conv2d" (%[[x]], %[[w]]) <layout = "NHWC", padding = 1> : (tensor<1x6x6x4xf32>, tensor<3x3x4x8xf32>) -> tensor<1x6x6x8xf32>
  // BACK: %y = lw_graph.apply "conv2d" (%x, %w) <padding = 1>
  %y = lw_graph.apply "conv2d" (%x, %w) <padding = 1> : (tensor<1x4x6x6xf32>, tensor<8x4x3x3xf32>) -> tensor<1x8x6x6xf32>
  // CHECK-NEXT: %[[s:[a-z_0-9]*]] = lw_graph.apply "reshape" (%s) <shape = [1, 8, 1, 1]>
  // CHECK-NEXT: %[[t:[a-z_0-9]*]] = lw_graph.apply "transpose" (%[[s]]) <axes = [0, 2, 3, 1]>
  // CHECK-NEXT: %z = lw_graph.apply "multiply" (%y, %[[t]]) : (tensor<1x6x6x8xf32>, tensor<1x1x1x8xf32>) -> tensor<1x6x6x8xf32>
  %z = lw_graph.apply "multiply" (%y, %s) : (tensor<1x8x6x6xf32>, tensor<8x1x1xf32>) -> tensor<1x8x6x6xf32>
  // CHECK-NEXT: %j = lw_graph.apply "concatenate" (%y, %z) <axis = 3>
  // BACK: %j = lw_graph.apply "concatenate" (%y, %z) <axis = 1>
  %j = lw_graph.apply "concatenate" (%y, %z) <axis = 1> : (tensor<1x8x6x6xf32>, tensor<1x8x6x6xf32>) -> tensor<1x16x6x6xf32>
  // CHECK-NEXT: %m = lw_graph.apply "mean" (%j) <axis = [1, 2], keepdims = true>
  %m = lw_graph.apply "mean" (%j) <axis = [2, 3], keepdims = true> : (tensor<1x16x6x6xf32>) -> tensor<1x16x1x1xf32>
  // CHECK-NEXT: %[[z:[a-z_0-9]*]] = lw_graph.apply "transpose" (%z) <axes = [0, 3, 1, 2]>
  // CHECK-NEXT: %[[m:[a-z_0-9]*]] = lw_graph.apply "transpose" (%m) <axes = [0, 3, 1, 2]>
  // CHECK-NEXT: func.return %[[z]], %[[m]]
  // BACK-NOT: transpose
  func.return %z, %m : tensor<1x8x6x6xf32>, tensor<1x16x1x1xf32>
}

// Weights of transposed convolutions are (CI, CO, KH, KW).
// CHECK-LABEL: func.func @transposed
// BACK-LABEL: func.func @transposed
func.func @transposed(%x: tensor<1x4x6x6xf32>) -> tensor<1x8x12x12xf32> {
  %w = lw_graph.constant "w" : tensor<4x8x4x4xf32>
  // CHECK: %[[x:[a-z_0-9]*]] = lw_graph.apply "transpose" (%x) <axes = [0, 2, 3, 1]>
  // CHECK-NEXT: %[[w:[a-z_0-9]*]] = lw_graph.apply "transpose" (%w) <axes = [2, 3, 0, 1]>
  // CHECK-NEXT: %y = lw_graph.apply "conv2d_transpose" (%[[x]], %[[w]]) <layout = "NHWC", padding = 1, stride = 2> : (tensor<1x6x6x4xf32>, tensor<4x4x4x8xf32>) -> tensor<1x12x12x8xf32>
  // BACK: %y = lw_graph.apply "conv2d_transpose" (%x, %w) <padding = 1, stride = 2>
  %y = lw_graph.apply "conv2d_transpose" (%x, %w) <padding = 1, stride = 2> : (tensor<1x4x6x6xf32>, tensor<4x8x4x4xf32>) -> tensor<1x8x12x12xf32>
  func.return %y : tensor<1x8x12x12xf32>
}

// The network brings what a product gives from channels-last to channels-first itself, and scales it there.
// CHECK-LABEL: func.func @brought
func.func @brought(%p: tensor<1x6x6x4xf32>, %s: tensor<4x1x1xf32>) -> tensor<1x8x6x6xf32> {
  %w = lw_graph.constant "w" : tensor<8x4x3x3xf32>
  %q = lw_graph.apply "exp" (%p) : (tensor<1x6x6x4xf32>) -> tensor<1x6x6x4xf32>
  %x = lw_graph.apply "transpose" (%q) <axes = [0, 3, 1, 2]> : (tensor<1x6x6x4xf32>) -> tensor<1x4x6x6xf32>
  // CHECK: %z = lw_graph.apply "multiply" (%q, %{{.*}}) : (tensor<1x6x6x4xf32>, tensor<1x1x1x4xf32>) -> tensor<1x6x6x4xf32>
  %z = lw_graph.apply "multiply" (%x, %s) : (tensor<1x4x6x6xf32>, tensor<4x1x1xf32>) -> tensor<1x4x6x6xf32>
  // CHECK: %y = lw_graph.apply "conv2d" (%z, %{{.*}}) <layout = "NHWC", padding = 1>
  %y = lw_graph.apply "conv2d" (%z, %w) <padding = 1> : (tensor<1x4x6x6xf32>, tensor<8x4x3x3xf32>) -> tensor<1x8x6x6xf32>
  func.return %y : tensor<1x8x6x6xf32>
}

// A sample that is normalised as one row is a row in any layout; groups of channels are not.
// CHECK-LABEL: func.func @whole_samples
// BACK-LABEL: func.func @whole_samples
func.func @whole_samples(%x: tensor<2x4x6x6xf32>, %s: tensor<4x1x1xf32>) -> tensor<2x4x6x6xf32> {
  // CHECK: %p = lw_graph.apply "max_pool" (%{{.*}}) <kernel = 1, layout = "NHWC">
  %p = lw_graph.apply "max_pool" (%x) <kernel = 1> : (tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  // CHECK-NEXT: %[[rows:[a-z_0-9]*]] = lw_graph.apply "reshape" (%p) <shape = [2, 1, 144]> : (tensor<2x6x6x4xf32>) -> tensor<2x1x144xf32>
  // CHECK-NEXT: %n = lw_graph.apply "layer_norm" (%[[rows]]) <epsilon = 0.001> : (tensor<2x1x144xf32>) -> tensor<2x1x144xf32>
  // CHECK-NEXT: %[[maps:[a-z_0-9]*]] = lw_graph.apply "reshape" (%n) <shape = [2, 6, 6, 4]>
  // BACK: lw_graph.apply "reshape" (%p) <shape = [2, 1, 144]> : (tensor<2x4x6x6xf32>) -> tensor<2x1x144xf32>
  // BACK-NOT: transpose
  // BACK: func.return
  %r = lw_graph.apply "reshape" (%p) <shape = [2, 1, 144]> : (tensor<2x4x6x6xf32>) -> tensor<2x1x144xf32>
  %n = lw_graph.apply "layer_norm" (%r) <epsilon = 0.001> : (tensor<2x1x144xf32>) -> tensor<2x1x144xf32>
  %m = lw_graph.apply "reshape" (%n) <shape = [2, 4, 6, 6]> : (tensor<2x1x144xf32>) -> tensor<2x4x6x6xf32>
  // CHECK: %z = lw_graph.apply "multiply" (%[[maps]], %{{.*}}) : (tensor<2x6x6x4xf32>, tensor<1x1x1x4xf32>) -> tensor<2x6x6x4xf32>
  %z = lw_graph.apply "multiply" (%m, %s) : (tensor<2x4x6x6xf32>, tensor<4x1x1xf32>) -> tensor<2x4x6x6xf32>
  func.return %z : tensor<2x4x6x6xf32>
}
