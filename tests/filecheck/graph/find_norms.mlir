// RUN: xdsl-opt %s -p 'lw-graph-find-norms,dce' | filecheck %s

// Older exporters write a normalisation out; the deviation may be there once or twice.
// CHECK-LABEL: func.func @layer_norm
func.func @layer_norm(%x: tensor<2x6xf32>, %g: tensor<6xf32>) -> tensor<2x6xf32> {
  // CHECK-NEXT: %n = lw_graph.apply "layer_norm" (%x) <axis = [1], epsilon = 0.001> : (tensor<2x6xf32>) -> tensor<2x6xf32>
  // CHECK-NEXT: %y = lw_graph.apply "multiply" (%n, %g)
  %m = lw_graph.apply "mean" (%x) <axis = -1, keepdims = true> : (tensor<2x6xf32>) -> tensor<2x1xf32>
  %d = lw_graph.apply "subtract" (%x, %m) : (tensor<2x6xf32>, tensor<2x1xf32>) -> tensor<2x6xf32>
  %d2 = lw_graph.apply "subtract" (%x, %m) : (tensor<2x6xf32>, tensor<2x1xf32>) -> tensor<2x6xf32>
  %two = lw_graph.constant "two" = 2.0 : tensor<f32>
  %e = lw_graph.constant "e" = 0.001 : tensor<f32>
  %p = lw_graph.apply "power" (%d2, %two) : (tensor<2x6xf32>, tensor<f32>) -> tensor<2x6xf32>
  %v = lw_graph.apply "mean" (%p) <axis = [1], keepdims = true> : (tensor<2x6xf32>) -> tensor<2x1xf32>
  %a = lw_graph.apply "add" (%v, %e) : (tensor<2x1xf32>, tensor<f32>) -> tensor<2x1xf32>
  %s = lw_graph.apply "sqrt" (%a) : (tensor<2x1xf32>) -> tensor<2x1xf32>
  %n = lw_graph.apply "divide" (%d, %s) : (tensor<2x6xf32>, tensor<2x1xf32>) -> tensor<2x6xf32>
  %y = lw_graph.apply "multiply" (%n, %g) : (tensor<2x6xf32>, tensor<6xf32>) -> tensor<2x6xf32>
  func.return %y : tensor<2x6xf32>
}

// CHECK-LABEL: func.func @rms_norm
func.func @rms_norm(%x: tensor<2x6xf32>) -> tensor<2x6xf32> {
  // CHECK-NEXT: %y = lw_graph.apply "rms_norm" (%x) <axis = [0, 1], epsilon = 0.001>
  %e = lw_graph.constant "e" = 0.001 : tensor<f32>
  %p = lw_graph.apply "square" (%x) : (tensor<2x6xf32>) -> tensor<2x6xf32>
  %v = lw_graph.apply "mean" (%p) <keepdims = true> : (tensor<2x6xf32>) -> tensor<1x1xf32>
  %a = lw_graph.apply "add" (%e, %v) : (tensor<f32>, tensor<1x1xf32>) -> tensor<1x1xf32>
  %r = lw_graph.apply "rsqrt" (%a) : (tensor<1x1xf32>) -> tensor<1x1xf32>
  %y = lw_graph.apply "multiply" (%r, %x) : (tensor<1x1xf32>, tensor<2x6xf32>) -> tensor<2x6xf32>
  func.return %y : tensor<2x6xf32>
}

// Means over other axes, or of something else, are no normalisation.
// CHECK-LABEL: func.func @others
func.func @others(%x: tensor<2x6xf32>, %z: tensor<2x6xf32>) -> (tensor<2x6xf32>, tensor<2x6xf32>) {
  %e = lw_graph.constant "e" = 0.001 : tensor<f32>
  %m = lw_graph.apply "mean" (%x) <axis = 0, keepdims = true> : (tensor<2x6xf32>) -> tensor<1x6xf32>
  %d = lw_graph.apply "subtract" (%x, %m) : (tensor<2x6xf32>, tensor<1x6xf32>) -> tensor<2x6xf32>
  %p = lw_graph.apply "square" (%x) : (tensor<2x6xf32>) -> tensor<2x6xf32>
  %v = lw_graph.apply "mean" (%p) <axis = 1, keepdims = true> : (tensor<2x6xf32>) -> tensor<2x1xf32>
  %a = lw_graph.apply "add" (%v, %e) : (tensor<2x1xf32>, tensor<f32>) -> tensor<2x1xf32>
  %s = lw_graph.apply "sqrt" (%a) : (tensor<2x1xf32>) -> tensor<2x1xf32>
  // CHECK: %n = lw_graph.apply "divide" (%d, %s)
  %n = lw_graph.apply "divide" (%d, %s) : (tensor<2x6xf32>, tensor<2x1xf32>) -> tensor<2x6xf32>
  // CHECK-NEXT: %y = lw_graph.apply "divide" (%z, %s)
  %y = lw_graph.apply "divide" (%z, %s) : (tensor<2x6xf32>, tensor<2x1xf32>) -> tensor<2x6xf32>
  func.return %n, %y : tensor<2x6xf32>, tensor<2x6xf32>
}

// StableHLO and linalg have reductions that drop their axes, and the rows get their shape back somewhere behind them.
// CHECK-LABEL: func.func @views
func.func @views(%x: tensor<2x6xf32>) -> tensor<2x6xf32> {
  // CHECK-NEXT: %y = lw_graph.apply "layer_norm" (%x) <axis = [1], epsilon = 0.001>
  %e = lw_graph.constant "e" = 0.001 : tensor<f32>
  %m = lw_graph.apply "mean" (%x) <axis = 1> : (tensor<2x6xf32>) -> tensor<2xf32>
  %k = lw_graph.apply "reshape" (%m) <shape = [2, 1]> : (tensor<2xf32>) -> tensor<2x1xf32>
  %d = lw_graph.apply "subtract" (%x, %k) : (tensor<2x6xf32>, tensor<2x1xf32>) -> tensor<2x6xf32>
  %p = lw_graph.apply "multiply" (%d, %d) : (tensor<2x6xf32>, tensor<2x6xf32>) -> tensor<2x6xf32>
  %v = lw_graph.apply "mean" (%p) <axis = 1> : (tensor<2x6xf32>) -> tensor<2xf32>
  %a = lw_graph.apply "add" (%v, %e) : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  %r = lw_graph.apply "rsqrt" (%a) : (tensor<2xf32>) -> tensor<2xf32>
  %s = lw_graph.apply "expand_dims" (%r) <axis = 1> : (tensor<2xf32>) -> tensor<2x1xf32>
  %y = lw_graph.apply "multiply" (%d, %s) : (tensor<2x6xf32>, tensor<2x1xf32>) -> tensor<2x6xf32>
  func.return %y : tensor<2x6xf32>
}

// Flax takes the variance as a difference of means, and scales the reciprocal of the root before the product.
// CHECK-LABEL: func.func @difference
func.func @difference(%x: tensor<2x6xf32>, %g: tensor<6xf32>) -> tensor<2x6xf32> {
  // CHECK-NEXT: %[[n:[a-z_0-9]*]] = lw_graph.apply "layer_norm" (%x) <axis = [1], epsilon = 0.001>
  // CHECK-NEXT: %y = lw_graph.apply "multiply" (%[[n]], %g)
  %e = lw_graph.constant "e" = 0.001 : tensor<f32>
  %zero = lw_graph.constant "zero" = 0.0 : tensor<f32>
  %m = lw_graph.apply "mean" (%x) <axis = 1> : (tensor<2x6xf32>) -> tensor<2xf32>
  %p = lw_graph.apply "multiply" (%x, %x) : (tensor<2x6xf32>, tensor<2x6xf32>) -> tensor<2x6xf32>
  %q = lw_graph.apply "mean" (%p) <axis = 1> : (tensor<2x6xf32>) -> tensor<2xf32>
  %m2 = lw_graph.apply "square" (%m) : (tensor<2xf32>) -> tensor<2xf32>
  %v = lw_graph.apply "subtract" (%q, %m2) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %b = lw_graph.apply "maximum" (%zero, %v) : (tensor<f32>, tensor<2xf32>) -> tensor<2xf32>
  %a = lw_graph.apply "add" (%b, %e) : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  %r = lw_graph.apply "rsqrt" (%a) : (tensor<2xf32>) -> tensor<2xf32>
  %rows = lw_graph.apply "reshape" (%r) <shape = [2, 1]> : (tensor<2xf32>) -> tensor<2x1xf32>
  %scaled = lw_graph.apply "multiply" (%rows, %g) : (tensor<2x1xf32>, tensor<6xf32>) -> tensor<2x6xf32>
  %k = lw_graph.apply "reshape" (%m) <shape = [2, 1]> : (tensor<2xf32>) -> tensor<2x1xf32>
  %d = lw_graph.apply "subtract" (%x, %k) : (tensor<2x6xf32>, tensor<2x1xf32>) -> tensor<2x6xf32>
  %y = lw_graph.apply "multiply" (%d, %scaled) : (tensor<2x6xf32>, tensor<2x6xf32>) -> tensor<2x6xf32>
  func.return %y : tensor<2x6xf32>
}

// Of a square, the statistics of rows may be stretched along columns.
// CHECK-LABEL: func.func @columns
func.func @columns(%x: tensor<6x6xf32>) -> tensor<6x6xf32> {
  %e = lw_graph.constant "e" = 0.001 : tensor<f32>
  %p = lw_graph.apply "square" (%x) : (tensor<6x6xf32>) -> tensor<6x6xf32>
  %v = lw_graph.apply "mean" (%p) <axis = 1> : (tensor<6x6xf32>) -> tensor<6xf32>
  %a = lw_graph.apply "add" (%v, %e) : (tensor<6xf32>, tensor<f32>) -> tensor<6xf32>
  %r = lw_graph.apply "rsqrt" (%a) : (tensor<6xf32>) -> tensor<6xf32>
  // CHECK: %y = lw_graph.apply "multiply" (%x, %r)
  %y = lw_graph.apply "multiply" (%x, %r) : (tensor<6x6xf32>, tensor<6xf32>) -> tensor<6x6xf32>
  func.return %y : tensor<6x6xf32>
}

// A mean of squares under another shape is one of other rows.
// CHECK-LABEL: func.func @other_rows
func.func @other_rows(%x: tensor<6x6xf32>) -> tensor<6x6xf32> {
  %e = lw_graph.constant "e" = 0.001 : tensor<f32>
  %p = lw_graph.apply "square" (%x) : (tensor<6x6xf32>) -> tensor<6x6xf32>
  %w = lw_graph.apply "reshape" (%p) <shape = [6, 3, 2]> : (tensor<6x6xf32>) -> tensor<6x3x2xf32>
  %v = lw_graph.apply "mean" (%w) <axis = [1]> : (tensor<6x3x2xf32>) -> tensor<6x2xf32>
  %t = lw_graph.apply "mean" (%v) <axis = [1], keepdims = true> : (tensor<6x2xf32>) -> tensor<6x1xf32>
  %a = lw_graph.apply "add" (%t, %e) : (tensor<6x1xf32>, tensor<f32>) -> tensor<6x1xf32>
  %r = lw_graph.apply "rsqrt" (%a) : (tensor<6x1xf32>) -> tensor<6x1xf32>
  // CHECK: %y = lw_graph.apply "multiply" (%x, %r)
  %y = lw_graph.apply "multiply" (%x, %r) : (tensor<6x6xf32>, tensor<6x1xf32>) -> tensor<6x6xf32>
  func.return %y : tensor<6x6xf32>
}

// Of a cube, the mean over an axis of another view must not be taken for one over the axis of that number.
// CHECK-LABEL: func.func @other_axis
func.func @other_axis(%x: tensor<2x1x4xf32>) -> tensor<2x1x4xf32> {
  %e = lw_graph.constant "e" = 0.001 : tensor<f32>
  %p = lw_graph.apply "square" (%x) : (tensor<2x1x4xf32>) -> tensor<2x1x4xf32>
  %w = lw_graph.apply "reshape" (%p) <shape = [2, 4, 1]> : (tensor<2x1x4xf32>) -> tensor<2x4x1xf32>
  %v = lw_graph.apply "mean" (%w) <axis = [2], keepdims = true> : (tensor<2x4x1xf32>) -> tensor<2x4x1xf32>
  %t = lw_graph.apply "reshape" (%v) <shape = [2, 1, 4]> : (tensor<2x4x1xf32>) -> tensor<2x1x4xf32>
  %a = lw_graph.apply "add" (%t, %e) : (tensor<2x1x4xf32>, tensor<f32>) -> tensor<2x1x4xf32>
  %r = lw_graph.apply "rsqrt" (%a) : (tensor<2x1x4xf32>) -> tensor<2x1x4xf32>
  // CHECK: %y = lw_graph.apply "multiply" (%x, %r)
  %y = lw_graph.apply "multiply" (%x, %r) : (tensor<2x1x4xf32>, tensor<2x1x4xf32>) -> tensor<2x1x4xf32>
  func.return %y : tensor<2x1x4xf32>
}
