// RUN: xdsl-opt %s -p 'lw-graph-flatten-softmax,lw-graph-simplify,dce' | filecheck %s
// RUN: xdsl-opt %s -p 'lw-graph-flatten-softmax{least_rows=8},lw-graph-simplify,dce' | filecheck %s --check-prefix=ROWS

// Scores, steps on them and softmax are in the shape of the product; a mask for all heads is seen in another shape.
// CHECK-LABEL: func.func @masked
// ROWS-LABEL: func.func @masked
func.func @masked(%s: tensor<6x4x5xf32>, %m: tensor<1x1x4x5xf32>, %v: tensor<6x5x7xf32>) -> tensor<6x4x7xf32> {
  %two = lw_graph.constant "two" = 2.0 : tensor<f32>
  // CHECK: [[S:%.*]] = lw_graph.apply "relu" (%s)
  %r = lw_graph.apply "relu" (%s) : (tensor<6x4x5xf32>) -> tensor<6x4x5xf32>
  // ROWS: lw_graph.apply "softmax" (%{{.*}}) <axis = 3>
  %x = lw_graph.apply "reshape" (%r) <shape = [2, 3, 4, 5]> : (tensor<6x4x5xf32>) -> tensor<2x3x4x5xf32>
  // CHECK-NEXT: [[Y:%.*]] = lw_graph.apply "multiply" ([[S]], %two) : (tensor<6x4x5xf32>, tensor<f32>) -> tensor<6x4x5xf32>
  %y = lw_graph.apply "multiply" (%x, %two) : (tensor<2x3x4x5xf32>, tensor<f32>) -> tensor<2x3x4x5xf32>
  // CHECK-NEXT: [[M:%.*]] = lw_graph.apply "reshape" (%m) <shape = [1, 4, 5]>
  // CHECK-NEXT: [[Z:%.*]] = lw_graph.apply "add" ([[Y]], [[M]]) : (tensor<6x4x5xf32>, tensor<1x4x5xf32>) -> tensor<6x4x5xf32>
  %z = lw_graph.apply "add" (%y, %m) : (tensor<2x3x4x5xf32>, tensor<1x1x4x5xf32>) -> tensor<2x3x4x5xf32>
  // CHECK-NEXT: [[P:%.*]] = lw_graph.apply "softmax" ([[Z]]) <axis = 2>
  %p = lw_graph.apply "softmax" (%z) <axis = -1> : (tensor<2x3x4x5xf32>) -> tensor<2x3x4x5xf32>
  %q = lw_graph.apply "reshape" (%p) <shape = [6, 4, 5]> : (tensor<2x3x4x5xf32>) -> tensor<6x4x5xf32>
  // CHECK-NEXT: lw_graph.apply "batch_matmul" ([[P]], %v)
  %o = lw_graph.apply "batch_matmul" (%q, %v) : (tensor<6x4x5xf32>, tensor<6x5x7xf32>) -> tensor<6x4x7xf32>
  func.return %o : tensor<6x4x7xf32>
}

// A mask of each sequence is small where it has one row, and is written for all heads.
// CHECK-LABEL: func.func @padding
func.func @padding(%s: tensor<6x16x5xf32>, %m: tensor<2x1x1x5xi1>, %v: tensor<6x5x7xf32>) -> tensor<6x16x7xf32> {
  %low = lw_graph.constant "low" = -1.0e+09 : tensor<f32>
  %r = lw_graph.apply "relu" (%s) : (tensor<6x16x5xf32>) -> tensor<6x16x5xf32>
  // CHECK: [[A:%.*]] = lw_graph.apply "broadcast_to" (%m) <shape = [2, 3, 1, 5]>
  // CHECK-NEXT: [[M:%.*]] = lw_graph.apply "reshape" ([[A]]) <shape = [6, 1, 5]>
  // CHECK-NEXT: lw_graph.apply "where" ([[M]], %{{.*}}, %low) : (tensor<6x1x5xi1>, tensor<6x16x5xf32>, tensor<f32>) -> tensor<6x16x5xf32>
  %x = lw_graph.apply "reshape" (%r) <shape = [2, 3, 16, 5]> : (tensor<6x16x5xf32>) -> tensor<2x3x16x5xf32>
  %z = lw_graph.apply "where" (%m, %x, %low) : (tensor<2x1x1x5xi1>, tensor<2x3x16x5xf32>, tensor<f32>) -> tensor<2x3x16x5xf32>
  %p = lw_graph.apply "softmax" (%z) <axis = 3> : (tensor<2x3x16x5xf32>) -> tensor<2x3x16x5xf32>
  %q = lw_graph.apply "reshape" (%p) <shape = [6, 16, 5]> : (tensor<2x3x16x5xf32>) -> tensor<6x16x5xf32>
  %o = lw_graph.apply "batch_matmul" (%q, %v) : (tensor<6x16x5xf32>, tensor<6x5x7xf32>) -> tensor<6x16x7xf32>
  func.return %o : tensor<6x16x7xf32>
}

// One with a row for each query is not: all stays as it is.
// CHECK-LABEL: func.func @large
func.func @large(%s: tensor<6x4x5xf32>, %m: tensor<2x1x4x5xf32>, %v: tensor<6x5x7xf32>) -> tensor<6x4x7xf32> {
  %r = lw_graph.apply "relu" (%s) : (tensor<6x4x5xf32>) -> tensor<6x4x5xf32>
  %x = lw_graph.apply "reshape" (%r) <shape = [2, 3, 4, 5]> : (tensor<6x4x5xf32>) -> tensor<2x3x4x5xf32>
  %z = lw_graph.apply "add" (%x, %m) : (tensor<2x3x4x5xf32>, tensor<2x1x4x5xf32>) -> tensor<2x3x4x5xf32>
  // CHECK: lw_graph.apply "softmax" (%z) <axis = 3>
  %p = lw_graph.apply "softmax" (%z) <axis = 3> : (tensor<2x3x4x5xf32>) -> tensor<2x3x4x5xf32>
  %q = lw_graph.apply "reshape" (%p) <shape = [6, 4, 5]> : (tensor<2x3x4x5xf32>) -> tensor<6x4x5xf32>
  %o = lw_graph.apply "batch_matmul" (%q, %v) : (tensor<6x4x5xf32>, tensor<6x5x7xf32>) -> tensor<6x4x7xf32>
  func.return %o : tensor<6x4x7xf32>
}

// A product that reads softmax as it is: steps that were written in another view are in its shape, and so is the mask.
// CHECK-LABEL: func.func @apart
func.func @apart(%q: tensor<2x3x4x6xf32>, %k: tensor<2x3x5x6xf32>, %m: tensor<1x4x5xf32>, %v: tensor<2x3x5x7xf32>) -> tensor<2x3x4x7xf32> {
  %two = lw_graph.constant "two" = 2.0 : tensor<f32>
  // CHECK: [[S:%.*]] = lw_graph.apply "einsum"
  // CHECK-NOT: <shape = [6, 4, 5]>
  // CHECK: [[Y:%.*]] = lw_graph.apply "multiply" ([[S]], %two) : (tensor<2x3x4x5xf32>, tensor<f32>) -> tensor<2x3x4x5xf32>
  // CHECK-NEXT: [[M:%.*]] = lw_graph.apply "reshape" (%m) <shape = [4, 5]>
  // CHECK-NEXT: [[Z:%.*]] = lw_graph.apply "add" ([[Y]], [[M]]) : (tensor<2x3x4x5xf32>, tensor<4x5xf32>) -> tensor<2x3x4x5xf32>
  // CHECK-NEXT: lw_graph.apply "softmax" ([[Z]]) <axis = 3>
  %s = lw_graph.apply "einsum" (%q, %k) <equation = "abcd,abed->abce"> : (tensor<2x3x4x6xf32>, tensor<2x3x5x6xf32>) -> tensor<2x3x4x5xf32>
  %x = lw_graph.apply "reshape" (%s) <shape = [6, 4, 5]> : (tensor<2x3x4x5xf32>) -> tensor<6x4x5xf32>
  %y = lw_graph.apply "multiply" (%x, %two) : (tensor<6x4x5xf32>, tensor<f32>) -> tensor<6x4x5xf32>
  %z = lw_graph.apply "add" (%y, %m) : (tensor<6x4x5xf32>, tensor<1x4x5xf32>) -> tensor<6x4x5xf32>
  %w = lw_graph.apply "reshape" (%z) <shape = [2, 3, 4, 5]> : (tensor<6x4x5xf32>) -> tensor<2x3x4x5xf32>
  %p = lw_graph.apply "softmax" (%w) <axis = 3> : (tensor<2x3x4x5xf32>) -> tensor<2x3x4x5xf32>
  %o = lw_graph.apply "einsum" (%p, %v) <equation = "abcd,abde->abce"> : (tensor<2x3x4x5xf32>, tensor<2x3x5x7xf32>) -> tensor<2x3x4x7xf32>
  func.return %o : tensor<2x3x4x7xf32>
}

// Heads in groups that share keys: steps that were written for heads as they are have the product's shape.
// CHECK-LABEL: func.func @grouped
func.func @grouped(%q: tensor<2x3x4x6xf32>, %k: tensor<2x5x6xf32>, %m: tensor<4x5xf32>, %v: tensor<2x5x7xf32>) -> tensor<2x3x4x7xf32> {
  // CHECK: [[S:%.*]] = lw_graph.apply "einsum" (%q, %k)
  %s = lw_graph.apply "einsum" (%q, %k) <equation = "abcd,aed->abce"> : (tensor<2x3x4x6xf32>, tensor<2x5x6xf32>) -> tensor<2x3x4x5xf32>
  %h = lw_graph.apply "reshape" (%s) <shape = [6, 4, 5]> : (tensor<2x3x4x5xf32>) -> tensor<6x4x5xf32>
  // CHECK-NEXT: [[Z:%.*]] = lw_graph.apply "add" ([[S]], %m) : (tensor<2x3x4x5xf32>, tensor<4x5xf32>) -> tensor<2x3x4x5xf32>
  %z = lw_graph.apply "add" (%h, %m) : (tensor<6x4x5xf32>, tensor<4x5xf32>) -> tensor<6x4x5xf32>
  %y = lw_graph.apply "reshape" (%z) <shape = [1, 6, 4, 5]> : (tensor<6x4x5xf32>) -> tensor<1x6x4x5xf32>
  // CHECK-NEXT: [[P:%.*]] = lw_graph.apply "softmax" ([[Z]]) <axis = 3>
  %p = lw_graph.apply "softmax" (%y) <axis = 3> : (tensor<1x6x4x5xf32>) -> tensor<1x6x4x5xf32>
  %r = lw_graph.apply "reshape" (%p) <shape = [2, 3, 4, 5]> : (tensor<1x6x4x5xf32>) -> tensor<2x3x4x5xf32>
  // CHECK-NEXT: lw_graph.apply "einsum" ([[P]], %v)
  %o = lw_graph.apply "einsum" (%r, %v) <equation = "abcd,ade->abce"> : (tensor<2x3x4x5xf32>, tensor<2x5x7xf32>) -> tensor<2x3x4x7xf32>
  func.return %o : tensor<2x3x4x7xf32>
}
