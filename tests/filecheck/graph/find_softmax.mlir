// RUN: xdsl-opt %s -p 'lw-graph-find-softmax,dce' | filecheck %s

// Reductions drop the axis, which a reshape gives back.
// CHECK-LABEL: func.func @softmax
func.func @softmax(%x: tensor<2x6xf32>) -> tensor<2x6xf32> {
  // CHECK-NEXT: %y = lw_graph.apply "softmax" (%x) <axis = 1> : (tensor<2x6xf32>) -> tensor<2x6xf32>
  // CHECK-NEXT: func.return %y
  %m = lw_graph.apply "max" (%x) <axis = [1]> : (tensor<2x6xf32>) -> tensor<2xf32>
  %r = lw_graph.apply "reshape" (%m) <shape = [2, 1]> : (tensor<2xf32>) -> tensor<2x1xf32>
  %d = lw_graph.apply "subtract" (%x, %r) : (tensor<2x6xf32>, tensor<2x1xf32>) -> tensor<2x6xf32>
  %e = lw_graph.apply "exp" (%d) : (tensor<2x6xf32>) -> tensor<2x6xf32>
  %s = lw_graph.apply "sum" (%e) <axis = -1, keepdims = true> : (tensor<2x6xf32>) -> tensor<2x1xf32>
  %y = lw_graph.apply "divide" (%e, %s) : (tensor<2x6xf32>, tensor<2x1xf32>) -> tensor<2x6xf32>
  func.return %y : tensor<2x6xf32>
}

// TOSA multiplies by the reciprocal; columns have a softmax, too.
// CHECK-LABEL: func.func @reciprocal
func.func @reciprocal(%x: tensor<2x6xf32>) -> tensor<2x6xf32> {
  // CHECK-NEXT: %y = lw_graph.apply "softmax" (%x) <axis = 0>
  %m = lw_graph.apply "max" (%x) <axis = 0, keepdims = true> : (tensor<2x6xf32>) -> tensor<1x6xf32>
  %d = lw_graph.apply "subtract" (%x, %m) : (tensor<2x6xf32>, tensor<1x6xf32>) -> tensor<2x6xf32>
  %e = lw_graph.apply "exp" (%d) : (tensor<2x6xf32>) -> tensor<2x6xf32>
  %s = lw_graph.apply "sum" (%e) <axis = 0> : (tensor<2x6xf32>) -> tensor<6xf32>
  %i = lw_graph.apply "reciprocal" (%s) : (tensor<6xf32>) -> tensor<6xf32>
  %y = lw_graph.apply "multiply" (%i, %e) : (tensor<6xf32>, tensor<2x6xf32>) -> tensor<2x6xf32>
  func.return %y : tensor<2x6xf32>
}

// The largest elements may be those of the tensor under another shape.
// CHECK-LABEL: func.func @view
func.func @view(%x: tensor<2x3x4xf32>) -> tensor<1x6x4xf32> {
  // CHECK-NEXT: %v = lw_graph.apply "reshape" (%x) <shape = [1, 6, 4]>
  // CHECK-NEXT: %y = lw_graph.apply "softmax" (%v) <axis = 2>
  %v = lw_graph.apply "reshape" (%x) <shape = [1, 6, 4]> : (tensor<2x3x4xf32>) -> tensor<1x6x4xf32>
  %m = lw_graph.apply "max" (%x) <axis = 2> : (tensor<2x3x4xf32>) -> tensor<2x3xf32>
  %r = lw_graph.apply "reshape" (%m) <shape = [1, 6, 1]> : (tensor<2x3xf32>) -> tensor<1x6x1xf32>
  %d = lw_graph.apply "subtract" (%v, %r) : (tensor<1x6x4xf32>, tensor<1x6x1xf32>) -> tensor<1x6x4xf32>
  %e = lw_graph.apply "exp" (%d) : (tensor<1x6x4xf32>) -> tensor<1x6x4xf32>
  %s = lw_graph.apply "sum" (%e) <axis = 2, keepdims = true> : (tensor<1x6x4xf32>) -> tensor<1x6x1xf32>
  %y = lw_graph.apply "divide" (%e, %s) : (tensor<1x6x4xf32>, tensor<1x6x1xf32>) -> tensor<1x6x4xf32>
  func.return %y : tensor<1x6x4xf32>
}

// CHECK-LABEL: func.func @log_softmax
func.func @log_softmax(%x: tensor<2x6xf32>) -> (tensor<2x6xf32>, tensor<2x6xf32>) {
  // CHECK-NEXT: %y = lw_graph.apply "log_softmax" (%x) <axis = 1>
  // CHECK-NEXT: %z = lw_graph.apply "log_softmax" (%x) <axis = 1>
  // CHECK-NEXT: func.return %y, %z
  %m = lw_graph.apply "max" (%x) <axis = 1, keepdims = true> : (tensor<2x6xf32>) -> tensor<2x1xf32>
  %d = lw_graph.apply "subtract" (%x, %m) : (tensor<2x6xf32>, tensor<2x1xf32>) -> tensor<2x6xf32>
  %e = lw_graph.apply "exp" (%d) : (tensor<2x6xf32>) -> tensor<2x6xf32>
  %s = lw_graph.apply "sum" (%e) <axis = 1> : (tensor<2x6xf32>) -> tensor<2xf32>
  %l = lw_graph.apply "log" (%s) : (tensor<2xf32>) -> tensor<2xf32>
  %r = lw_graph.apply "reshape" (%l) <shape = [2, 1]> : (tensor<2xf32>) -> tensor<2x1xf32>
  %y = lw_graph.apply "subtract" (%d, %r) : (tensor<2x6xf32>, tensor<2x1xf32>) -> tensor<2x6xf32>
  %a = lw_graph.apply "add" (%r, %m) : (tensor<2x1xf32>, tensor<2x1xf32>) -> tensor<2x1xf32>
  %z = lw_graph.apply "subtract" (%x, %a) : (tensor<2x6xf32>, tensor<2x1xf32>) -> tensor<2x6xf32>
  func.return %y, %z : tensor<2x6xf32>, tensor<2x6xf32>
}

// Sums along another axis than maxima, or stretched along another one, are no softmax.
// CHECK-LABEL: func.func @others
func.func @others(%x: tensor<6x6xf32>) -> (tensor<6x6xf32>, tensor<6x6xf32>) {
  %m = lw_graph.apply "max" (%x) <axis = 1, keepdims = true> : (tensor<6x6xf32>) -> tensor<6x1xf32>
  %d = lw_graph.apply "subtract" (%x, %m) : (tensor<6x6xf32>, tensor<6x1xf32>) -> tensor<6x6xf32>
  %e = lw_graph.apply "exp" (%d) : (tensor<6x6xf32>) -> tensor<6x6xf32>
  %s = lw_graph.apply "sum" (%e) <axis = 0, keepdims = true> : (tensor<6x6xf32>) -> tensor<1x6xf32>
  // CHECK: %y = lw_graph.apply "divide" (%e, %s)
  %y = lw_graph.apply "divide" (%e, %s) : (tensor<6x6xf32>, tensor<1x6xf32>) -> tensor<6x6xf32>
  %t = lw_graph.apply "sum" (%e) <axis = 1> : (tensor<6x6xf32>) -> tensor<6xf32>
  // CHECK: %z = lw_graph.apply "divide" (%e, %t)
  %z = lw_graph.apply "divide" (%e, %t) : (tensor<6x6xf32>, tensor<6xf32>) -> tensor<6x6xf32>
  func.return %y, %z : tensor<6x6xf32>, tensor<6x6xf32>
}

// 16-bit floats are added up in wider ones, as the operator does.
// CHECK-LABEL: func.func @narrow
func.func @narrow(%x: tensor<2x6xbf16>) -> (tensor<2x6xbf16>, tensor<2x6xf32>) {
  // CHECK: %y = lw_graph.apply "softmax" (%x) <axis = 1> : (tensor<2x6xbf16>) -> tensor<2x6xbf16>
  %m = lw_graph.apply "max" (%x) <axis = 1, keepdims = true> : (tensor<2x6xbf16>) -> tensor<2x1xbf16>
  %d = lw_graph.apply "subtract" (%x, %m) : (tensor<2x6xbf16>, tensor<2x1xbf16>) -> tensor<2x6xbf16>
  %e = lw_graph.apply "exp" (%d) : (tensor<2x6xbf16>) -> tensor<2x6xbf16>
  %w = lw_graph.apply "cast" (%e) <dtype = "float32"> : (tensor<2x6xbf16>) -> tensor<2x6xf32>
  %s = lw_graph.apply "sum" (%w) <axis = 1, keepdims = true> : (tensor<2x6xf32>) -> tensor<2x1xf32>
  %n = lw_graph.apply "cast" (%s) <dtype = "bfloat16"> : (tensor<2x1xf32>) -> tensor<2x1xbf16>
  %y = lw_graph.apply "divide" (%e, %n) : (tensor<2x6xbf16>, tensor<2x1xbf16>) -> tensor<2x6xbf16>
  // CHECK: %z = lw_graph.apply "divide" (%w, %s)
  %z = lw_graph.apply "divide" (%w, %s) : (tensor<2x6xf32>, tensor<2x1xf32>) -> tensor<2x6xf32>
  func.return %y, %z : tensor<2x6xbf16>, tensor<2x6xf32>
}
