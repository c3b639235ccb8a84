// RUN: xdsl-opt %s -p 'lw-graph-simplify,dce' | filecheck %s

// What changes nothing goes, and chains become one.
// CHECK-LABEL: func.func @chains
func.func @chains(%x: tensor<1x4x6xf32>) -> tensor<6x4xf32> {
  %a = lw_graph.apply "identity" (%x) : (tensor<1x4x6xf32>) -> tensor<1x4x6xf32>
  %b = lw_graph.apply "cast" (%a) <dtype = "float32"> : (tensor<1x4x6xf32>) -> tensor<1x4x6xf32>
  %c = lw_graph.apply "squeeze" (%b) <axis = 0> : (tensor<1x4x6xf32>) -> tensor<4x6xf32>
  %d = lw_graph.apply "expand_dims" (%c) <axis = 1> : (tensor<4x6xf32>) -> tensor<4x1x6xf32>
  %e = lw_graph.apply "reshape" (%d) <shape = [4, 6]> : (tensor<4x1x6xf32>) -> tensor<4x6xf32>
  %f = lw_graph.apply "transpose" (%e) : (tensor<4x6xf32>) -> tensor<6x4xf32>
  %g = lw_graph.apply "transpose" (%f) <axes = [1, 0]> : (tensor<6x4xf32>) -> tensor<4x6xf32>
  %h = lw_graph.apply "transpose" (%g) <axes = [-1, 0]> : (tensor<4x6xf32>) -> tensor<6x4xf32>
  // CHECK-NEXT: %[[v:[a-z_0-9]*]] = lw_graph.apply "reshape" (%x) <shape = [4, 6]> : (tensor<1x4x6xf32>) -> tensor<4x6xf32>
  // CHECK-NEXT: %h = lw_graph.apply "transpose" (%{{.*}}) <axes = [1, 0]> : (tensor<4x6xf32>) -> tensor<6x4xf32>
  // CHECK-NEXT: func.return %h
  func.return %h : tensor<6x4xf32>
}

// A transpose that moves axes of extent 1 only is a reshape.
// CHECK-LABEL: func.func @unit_axes
func.func @unit_axes(%x: tensor<1x8x1x1xf32>) -> tensor<1x1x1x8xf32> {
  // CHECK-NEXT: %y = lw_graph.apply "reshape" (%x) <shape = [1, 1, 1, 8]>
  %y = lw_graph.apply "transpose" (%x) <axes = [0, 2, 3, 1]> : (tensor<1x8x1x1xf32>) -> tensor<1x1x1x8xf32>
  func.return %y : tensor<1x1x1x8xf32>
}

// As many groups as channels are depthwise; a bias is an addition.
// CHECK-LABEL: func.func @depthwise
func.func @depthwise(%x: tensor<1x5x5x4xf32>) -> tensor<1x5x5x8xf32> {
  // CHECK-NEXT: %w = lw_graph.constant "w" : tensor<3x3x1x8xf32>
  // CHECK-NEXT: %b = lw_graph.constant "b" : tensor<8xf32>
  %w = lw_graph.constant "w" : tensor<3x3x1x8xf32>
  %b = lw_graph.constant "b" : tensor<8xf32>
  // CHECK-NEXT: %[[w:[a-z]*]] = lw_graph.apply "reshape" (%w) <shape = [3, 3, 4, 2]>
  // CHECK-NEXT: %y = lw_graph.apply "depthwise_conv2d" (%x, %[[w]]) <layout = "NHWC", padding = 1> : (tensor<1x5x5x4xf32>, tensor<3x3x4x2xf32>) -> tensor<1x5x5x8xf32>
  %y = lw_graph.apply "conv2d" (%x, %w) <layout = "NHWC", padding = 1, groups = 4> : (tensor<1x5x5x4xf32>, tensor<3x3x1x8xf32>) -> tensor<1x5x5x8xf32>
  // CHECK-NEXT: %[[b:[a-z_0-9]*]] = lw_graph.apply "reshape" (%b) <shape = [1, 1, 1, 8]>
  // CHECK-NEXT: %z = lw_graph.apply "add" (%y, %[[b]])
  %z = lw_graph.apply "bias_add" (%y, %b) <axis = 3> : (tensor<1x5x5x8xf32>, tensor<8xf32>) -> tensor<1x5x5x8xf32>
  func.return %z : tensor<1x5x5x8xf32>
}

// Zeros around the data of a convolution are its padding; other values, and zeros along other axes, are not.
// CHECK-LABEL: func.func @padded
func.func @padded(%x: tensor<1x3x8x8xf32>) -> (tensor<1x4x9x8xf32>, tensor<1x4x8x8xf32>, tensor<1x4x6x6xf32>) {
  %w = lw_graph.constant "w" : tensor<4x3x3x3xf32>
  // CHECK: %a = lw_graph.apply "conv2d" (%x, %w) <padding = [1, 1, 2, 1]>
  %p = lw_graph.apply "pad" (%x) <before = [0, 0, 0, 1], after = [0, 0, 1, 1]> : (tensor<1x3x8x8xf32>) -> tensor<1x3x9x10xf32>
  %a = lw_graph.apply "conv2d" (%p, %w) <padding = [1, 0, 1, 0]> : (tensor<1x3x9x10xf32>, tensor<4x3x3x3xf32>) -> tensor<1x4x9x8xf32>
  // CHECK: %q = lw_graph.apply "pad" (%x)
  // CHECK-NEXT: %b = lw_graph.apply "conv2d" (%q, %w)
  %q = lw_graph.apply "pad" (%x) <before = [0, 0, 1, 1], value = 1.0> : (tensor<1x3x8x8xf32>) -> tensor<1x3x10x10xf32>
  %b = lw_graph.apply "conv2d" (%q, %w) : (tensor<1x3x10x10xf32>, tensor<4x3x3x3xf32>) -> tensor<1x4x8x8xf32>
  %v = lw_graph.constant "v" : tensor<4x4x3x3xf32>
  // CHECK: %r = lw_graph.apply "pad" (%x)
  // CHECK-NEXT: %c = lw_graph.apply "conv2d" (%r, %v)
  %r = lw_graph.apply "pad" (%x) <before = [0, 1, 0, 0], after = [0, 0, 0, 0]> : (tensor<1x3x8x8xf32>) -> tensor<1x4x8x8xf32>
  %c = lw_graph.apply "conv2d" (%r, %v) : (tensor<1x4x8x8xf32>, tensor<4x4x3x3xf32>) -> tensor<1x4x6x6xf32>
  func.return %a, %b, %c : tensor<1x4x9x8xf32>, tensor<1x4x8x8xf32>, tensor<1x4x6x6xf32>
}

// Numbers that are equal are one; arithmetic that changes nothing goes, where it stretches nothing.
// CHECK-LABEL: func.func @numbers
func.func @numbers(%x: tensor<2x6xf32>, %y: tensor<6xf32>) -> (tensor<2x6xf32>, tensor<2x6xf32>) {
  %one = lw_graph.constant "one" = 1.0 : tensor<f32>
  %zero = lw_graph.constant "zero" = 0.0 : tensor<f32>
  %low = lw_graph.constant "low" = -inf : tensor<f32>
  %high = lw_graph.constant "high" = inf : tensor<f32>
  %nan = lw_graph.constant "nan" = nan : tensor<f32>
  %yes = lw_graph.constant "yes" = true : tensor<i1>
  %two = lw_graph.constant "two" = 2.0 : tensor<f32>
  %also = lw_graph.constant "also" = 2.0 : tensor<f32>
  %zeros = lw_graph.constant "zeros" : tensor<2x6xf32>
  %a = lw_graph.apply "maximum" (%low, %x) : (tensor<f32>, tensor<2x6xf32>) -> tensor<2x6xf32>
  %b = lw_graph.apply "minimum" (%a, %high) : (tensor<2x6xf32>, tensor<f32>) -> tensor<2x6xf32>
  %c = lw_graph.apply "where" (%yes, %b, %nan) : (tensor<i1>, tensor<2x6xf32>, tensor<f32>) -> tensor<2x6xf32>
  %d = lw_graph.apply "subtract" (%c, %zero) : (tensor<2x6xf32>, tensor<f32>) -> tensor<2x6xf32>
  %e = lw_graph.apply "multiply" (%one, %d) : (tensor<f32>, tensor<2x6xf32>) -> tensor<2x6xf32>
  %f = lw_graph.apply "divide" (%e, %one) : (tensor<2x6xf32>, tensor<f32>) -> tensor<2x6xf32>
  // CHECK: %g = lw_graph.apply "multiply" (%x, %two)
  // CHECK-NEXT: %h = lw_graph.apply "multiply" (%g, %two)
  %g = lw_graph.apply "multiply" (%f, %two) : (tensor<2x6xf32>, tensor<f32>) -> tensor<2x6xf32>
  %h = lw_graph.apply "multiply" (%g, %also) : (tensor<2x6xf32>, tensor<f32>) -> tensor<2x6xf32>
  // CHECK-NEXT: %i = lw_graph.apply "where" (%yes, %y, %zeros)
  %i = lw_graph.apply "where" (%yes, %y, %zeros) : (tensor<i1>, tensor<6xf32>, tensor<2x6xf32>) -> tensor<2x6xf32>
  func.return %h, %i : tensor<2x6xf32>, tensor<2x6xf32>
}

// A sum by its count is a mean, but not one that is read elsewhere, by another number or of whole numbers.
// CHECK-LABEL: func.func @means
func.func @means(%x: tensor<2x8xf32>, %i: tensor<2x8xi32>) -> (tensor<2x1xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) {
  %n = lw_graph.constant "n" = 8.0 : tensor<f32>
  %r = lw_graph.constant "r" = 0.125 : tensor<f32>
  %o = lw_graph.constant "o" = 7.0 : tensor<f32>
  // CHECK: %[[m:[a-z_0-9]*]] = lw_graph.apply "mean" (%x) <axis = [1]> : (tensor<2x8xf32>) -> tensor<2xf32>
  // CHECK-NEXT: %a = lw_graph.apply "reshape" (%[[m]]) <shape = [2, 1]>
  %s = lw_graph.apply "sum" (%x) <axis = 1> : (tensor<2x8xf32>) -> tensor<2xf32>
  %k = lw_graph.apply "reshape" (%s) <shape = [2, 1]> : (tensor<2xf32>) -> tensor<2x1xf32>
  %a = lw_graph.apply "divide" (%k, %n) : (tensor<2x1xf32>, tensor<f32>) -> tensor<2x1xf32>
  // CHECK-NEXT: %b = lw_graph.apply "mean" (%x) <axis = [1]>
  %t = lw_graph.apply "sum" (%x) <axis = 1> : (tensor<2x8xf32>) -> tensor<2xf32>
  %b = lw_graph.apply "multiply" (%r, %t) : (tensor<f32>, tensor<2xf32>) -> tensor<2xf32>
  // CHECK-NEXT: %u = lw_graph.apply "sum" (%x)
  // CHECK-NEXT: %c = lw_graph.apply "divide" (%u, %o)
  %u = lw_graph.apply "sum" (%x) <axis = 1> : (tensor<2x8xf32>) -> tensor<2xf32>
  %c = lw_graph.apply "divide" (%u, %o) : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  // CHECK-NEXT: %v = lw_graph.apply "sum" (%x)
  // CHECK-NEXT: %w = lw_graph.apply "divide" (%v, %n)
  %v = lw_graph.apply "sum" (%x) <axis = 1> : (tensor<2x8xf32>) -> tensor<2xf32>
  %w = lw_graph.apply "divide" (%v, %n) : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  %d = lw_graph.apply "add" (%v, %w) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  func.return %a, %b, %c, %d : tensor<2x1xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
}

// CHECK-LABEL: func.func @sigmoid
func.func @sigmoid(%x: tensor<4xf32>) -> tensor<4xf32> {
  %one = lw_graph.constant "one" = 1.0 : tensor<f32>
  %n = lw_graph.apply "negative" (%x) : (tensor<4xf32>) -> tensor<4xf32>
  %e = lw_graph.apply "exp" (%n) : (tensor<4xf32>) -> tensor<4xf32>
  %s = lw_graph.apply "add" (%e, %one) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  // CHECK: %y = lw_graph.apply "sigmoid" (%x)
  %y = lw_graph.apply "divide" (%one, %s) : (tensor<f32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// A sum of products gives its axes in the order that alone they are read in.
// CHECK-LABEL: func.func @turned
func.func @turned(%x: tensor<2x3x4xf32>, %y: tensor<2x4x5xf32>) -> (tensor<2x5x3xf32>, tensor<5x2x3xf32>, tensor<2x3x5xf32>) {
  // CHECK-NEXT: %t = lw_graph.apply "einsum" (%x, %y) <equation = "bij,bjk->bki"> : (tensor<2x3x4xf32>, tensor<2x4x5xf32>) -> tensor<2x5x3xf32>
  %p = lw_graph.apply "einsum" (%x, %y) <equation = "bij,bjk->bik"> : (tensor<2x3x4xf32>, tensor<2x4x5xf32>) -> tensor<2x3x5xf32>
  %t = lw_graph.apply "transpose" (%p) <axes = [0, 2, 1]> : (tensor<2x3x5xf32>) -> tensor<2x5x3xf32>
  // CHECK-NEXT: %q = lw_graph.apply "einsum" (%x, %y) <equation = "bij,bjk->bik">
  // CHECK-NEXT: %u = lw_graph.apply "transpose" (%q)
  %q = lw_graph.apply "einsum" (%x, %y) <equation = "bij,bjk->bik"> : (tensor<2x3x4xf32>, tensor<2x4x5xf32>) -> tensor<2x3x5xf32>
  %u = lw_graph.apply "transpose" (%q) <axes = [2, 0, 1]> : (tensor<2x3x5xf32>) -> tensor<5x2x3xf32>
  func.return %t, %u, %q : tensor<2x5x3xf32>, tensor<5x2x3xf32>, tensor<2x3x5xf32>
}

// A slice of a slice reads what that is of, also through a reshape that drops axes of one element; what adds them again
// reads the slice itself.
// CHECK-LABEL: func.func @step
func.func @step(%x: tensor<8x4x12xf32>, %h: tensor<1x4x6xf32>) -> (tensor<1x4x6xf32>, tensor<2x4x3xf32>) {
  // CHECK-NEXT: %[[S:[a-z_0-9]+]] = lw_graph.apply "strided_slice" (%x) <axes = [0, 2], begin = [3, 6], end = [4, 12], strides = [1, 1]> : (tensor<8x4x12xf32>) -> tensor<1x4x6xf32>
  // CHECK-NEXT: %y = lw_graph.apply "add" (%h, %[[S]]) : (tensor<1x4x6xf32>, tensor<1x4x6xf32>) -> tensor<1x4x6xf32>
  %t = lw_graph.apply "strided_slice" (%x) <axes = [0], begin = [3], end = [4], strides = [1]> : (tensor<8x4x12xf32>) -> tensor<1x4x12xf32>
  %s = lw_graph.apply "reshape" (%t) <shape = [4, 12]> : (tensor<1x4x12xf32>) -> tensor<4x12xf32>
  %g = lw_graph.apply "strided_slice" (%s) <axes = [1], begin = [6], end = [12], strides = [1]> : (tensor<4x12xf32>) -> tensor<4x6xf32>
  %y = lw_graph.apply "add" (%h, %g) : (tensor<1x4x6xf32>, tensor<4x6xf32>) -> tensor<1x4x6xf32>
  // CHECK-NEXT: %v = lw_graph.apply "strided_slice" (%x) <axes = [0, 2], begin = [1, 1], end = [6, 10], strides = [4, 4]> : (tensor<8x4x12xf32>) -> tensor<2x4x3xf32>
  %u = lw_graph.apply "strided_slice" (%x) <axes = [0, 2], begin = [1, 1], end = [8, 12], strides = [2, 2]> : (tensor<8x4x12xf32>) -> tensor<4x4x6xf32>
  %v = lw_graph.apply "strided_slice" (%u) <axes = [0, 2], begin = [0, 0], end = [4, 6], strides = [2, 2]> : (tensor<4x4x6xf32>) -> tensor<2x4x3xf32>
  func.return %y, %v : tensor<1x4x6xf32>, tensor<2x4x3xf32>
}
