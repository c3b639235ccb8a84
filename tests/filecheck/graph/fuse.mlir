// RUN: xdsl-opt %s -p lw-graph-fuse | filecheck %s
// RUN: xdsl-opt %s -p 'lw-graph-fuse{depth=2}' | filecheck %s --check-prefix=TWO

// An anchor takes in the elementwise operators behind it, also where branches join again; views stay outside.
// CHECK-LABEL: func.func @anchor
// TWO-LABEL: func.func @anchor
func.func @anchor(%x: tensor<1x4xf32>, %r: tensor<1x8xf32>) -> tensor<8xf32> {
  %w = lw_graph.constant "w" : tensor<8x4xf32>
  %half = lw_graph.constant "half" = 0.5 : tensor<f32>
  // CHECK: %m = lw_graph.group "dense_add_sigmoid_multiply_multiply" (%p0 = %x : tensor<1x4xf32>, %p1 = %w : tensor<8x4xf32>, %p2 = %r : tensor<1x8xf32>) -> tensor<1x8xf32> {
  // CHECK-NEXT: %y = lw_graph.apply "dense" (%p0, %p1)
  // CHECK-NEXT: %z = lw_graph.apply "add" (%y, %p2)
  // CHECK-NEXT: %g = lw_graph.apply "sigmoid" (%z)
  // CHECK-NEXT: %s = lw_graph.apply "multiply" (%z, %g)
  // CHECK-NEXT: %[[h:[a-z_0-9]*]] = lw_graph.constant "half" = 0.5 : tensor<f32>
  // CHECK-NEXT: %m_1 = lw_graph.apply "multiply" (%s, %[[h]])
  // CHECK-NEXT: lw_graph.yield %m_1
  // TWO: lw_graph.group "dense_add" (
  // TWO: lw_graph.group "sigmoid_multiply" (
  // TWO: lw_graph.group "multiply" (
  %y = lw_graph.apply "dense" (%x, %w) : (tensor<1x4xf32>, tensor<8x4xf32>) -> tensor<1x8xf32>
  %z = lw_graph.apply "add" (%y, %r) : (tensor<1x8xf32>, tensor<1x8xf32>) -> tensor<1x8xf32>
  %g = lw_graph.apply "sigmoid" (%z) : (tensor<1x8xf32>) -> tensor<1x8xf32>
  %s = lw_graph.apply "multiply" (%z, %g) : (tensor<1x8xf32>, tensor<1x8xf32>) -> tensor<1x8xf32>
  %m = lw_graph.apply "multiply" (%s, %half) : (tensor<1x8xf32>, tensor<f32>) -> tensor<1x8xf32>
  // CHECK: %v = lw_graph.apply "reshape" (%m) <shape = [8]>
  %v = lw_graph.apply "reshape" (%m) <shape = [8]> : (tensor<1x8xf32>) -> tensor<8xf32>
  func.return %v : tensor<8xf32>
}

// Of two anchors the first takes in what joins them; one that is an output keeps what comes behind out.
// CHECK-LABEL: func.func @two_anchors
func.func @two_anchors(%x: tensor<1x4xf32>, %w: tensor<4x4xf32>) -> (tensor<1x4xf32>, tensor<1x4xf32>) {
  // CHECK: %b = lw_graph.group "dense" (
  // CHECK: %c = lw_graph.group "dense_add" (%p0 = %x : tensor<1x4xf32>, %p1 = %w : tensor<4x4xf32>, %p2 = %b : tensor<1x4xf32>)
  // CHECK: %d = lw_graph.group "relu" (%p0 = %c : tensor<1x4xf32>)
  %a = lw_graph.apply "dense" (%x, %w) : (tensor<1x4xf32>, tensor<4x4xf32>) -> tensor<1x4xf32>
  %b = lw_graph.apply "dense" (%x, %w) : (tensor<1x4xf32>, tensor<4x4xf32>) -> tensor<1x4xf32>
  %c = lw_graph.apply "add" (%a, %b) : (tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<1x4xf32>
  %d = lw_graph.apply "relu" (%c) : (tensor<1x4xf32>) -> tensor<1x4xf32>
  func.return %c, %d : tensor<1x4xf32>, tensor<1x4xf32>
}

// Chains of what moves elements become one kernel, and go before a reduction; what is stretched is computed first.
// CHECK-LABEL: func.func @chains
func.func @chains(%x: tensor<4x8xf32>, %c: tensor<1x8xf32>) -> (tensor<1x8xf32>, tensor<8x4xf32>) {
  // CHECK: %s = lw_graph.group "sigmoid" (
  // CHECK: %m = lw_graph.group "multiply_square_mean_sqrt" (
  // CHECK: %u = lw_graph.group "transpose_relu_flip" (
  %s = lw_graph.apply "sigmoid" (%c) : (tensor<1x8xf32>) -> tensor<1x8xf32>
  %y = lw_graph.apply "multiply" (%x, %s) : (tensor<4x8xf32>, tensor<1x8xf32>) -> tensor<4x8xf32>
  %q = lw_graph.apply "square" (%y) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %n = lw_graph.apply "mean" (%q) <axis = 0, keepdims = true> : (tensor<4x8xf32>) -> tensor<1x8xf32>
  %m = lw_graph.apply "sqrt" (%n) : (tensor<1x8xf32>) -> tensor<1x8xf32>
  %t = lw_graph.apply "transpose" (%x) : (tensor<4x8xf32>) -> tensor<8x4xf32>
  %r = lw_graph.apply "relu" (%t) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %u = lw_graph.apply "flip" (%r) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  func.return %m, %u : tensor<1x8xf32>, tensor<8x4xf32>
}

// Operators over rows take in elementwise ones behind them and, where they alone read it, before them; not a transpose.
// CHECK-LABEL: func.func @rows
func.func @rows(%x: tensor<4x8xf32>, %r: tensor<4x8xf32>, %g: tensor<8xf32>) -> (tensor<4x8xf32>, tensor<8x4xf32>, tensor<4x8xf32>, tensor<4x8xf32>) {
  // CHECK: %b = lw_graph.group "add_layer_norm_relu" (%p0 = %x : tensor<4x8xf32>, %p1 = %r : tensor<4x8xf32>, %p2 = %g : tensor<8xf32>)
  %a = lw_graph.apply "add" (%x, %r) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %n = lw_graph.apply "layer_norm" (%a, %g) : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  %b = lw_graph.apply "relu" (%n) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: %t = lw_graph.group "transpose" (
  // CHECK: %s = lw_graph.group "softmax" (
  %t = lw_graph.apply "transpose" (%x) : (tensor<4x8xf32>) -> tensor<8x4xf32>
  %s = lw_graph.apply "softmax" (%t) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  // CHECK: %e = lw_graph.group "exp" (
  // CHECK: %m = lw_graph.group "rms_norm" (
  %e = lw_graph.apply "exp" (%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %m = lw_graph.apply "rms_norm" (%e) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  func.return %b, %s, %e, %m : tensor<4x8xf32>, tensor<8x4xf32>, tensor<4x8xf32>, tensor<4x8xf32>
}

// Two chains from one tensor that meet are one kernel, also where the shorter one reached the end first.
// CHECK-LABEL: func.func @meeting
func.func @meeting(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // CHECK-NEXT: %y = lw_graph.group "relu_negative_erf_abs_multiply" (
  %r = lw_graph.apply "relu" (%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %n = lw_graph.apply "negative" (%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %e = lw_graph.apply "erf" (%n) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %a = lw_graph.apply "abs" (%e) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %y = lw_graph.apply "multiply" (%r, %a) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  func.return %y : tensor<4x8xf32>
}
