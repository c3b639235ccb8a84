// RUN: xdsl-opt %s -p 'lw-graph-masked-softmax,dce' | filecheck %s

// Products of finite numbers are finite: no row is -inf all over.
// CHECK-LABEL: func.func @plain
func.func @plain(%a: tensor<2x4x3xf32>, %b: tensor<2x3x5xf32>) -> tensor<2x4x5xf32> {
  // CHECK-NEXT: %s = lw_graph.apply "batch_matmul" (%a, %b)
  // CHECK-NEXT: %w = lw_graph.apply "softmax" (%s) <axis = 2>
  // CHECK-NEXT: func.return %w
  %lowest = lw_graph.constant "lowest" = -inf : tensor<f32>
  %zero = lw_graph.constant "zero" = 0.0 : tensor<f32>
  %s = lw_graph.apply "batch_matmul" (%a, %b) : (tensor<2x4x3xf32>, tensor<2x3x5xf32>) -> tensor<2x4x5xf32>
  %e = lw_graph.apply "equal" (%s, %lowest) : (tensor<2x4x5xf32>, tensor<f32>) -> tensor<2x4x5xi1>
  %c = lw_graph.apply "cast" (%e) <dtype = "int8"> : (tensor<2x4x5xi1>) -> tensor<2x4x5xi8>
  %m = lw_graph.apply "min" (%c) <axis = 2, keepdims = true> : (tensor<2x4x5xi8>) -> tensor<2x4x1xi8>
  %q = lw_graph.apply "cast" (%m) <dtype = "bool"> : (tensor<2x4x1xi8>) -> tensor<2x4x1xi1>
  %p = lw_graph.apply "softmax" (%s) <axis = 2> : (tensor<2x4x5xf32>) -> tensor<2x4x5xf32>
  %w = lw_graph.apply "where" (%q, %zero, %p) : (tensor<2x4x1xi1>, tensor<f32>, tensor<2x4x5xf32>) -> tensor<2x4x5xf32>
  func.return %w : tensor<2x4x5xf32>
}

// The mask is asked, not the scores, and rows are set to 0 behind the product that sums what the softmax weights.
// CHECK-LABEL: func.func @masked
func.func @masked(%s: tensor<2x3x4xf32>, %k: tensor<2x4x5xf32>, %v: tensor<2x5x6xf32>, %m: tensor<3x5xi1>) -> tensor<2x3x6xf32> {
  // CHECK: %p = lw_graph.apply "softmax" (%x) <axis = 2>
  // CHECK-NEXT: %{{.*}} = lw_graph.apply "logical_not" (%m) : (tensor<3x5xi1>)
  // CHECK: %[[ROWS:.*]] = lw_graph.apply "logical_not" ({{.*}}) : (tensor<1x3x1xi1>)
  // CHECK-NEXT: %[[SUM:.*]] = lw_graph.apply "batch_matmul" (%p, %v)
  // CHECK-NEXT: %number_1 = lw_graph.constant "number" = 0.0 : tensor<f32>
  // CHECK-NEXT: %o = lw_graph.apply "where" (%[[ROWS]], %number_1, %[[SUM]])
  %lowest = lw_graph.constant "lowest" = -inf : tensor<f32>
  %zero = lw_graph.constant "zero" = 0.0 : tensor<f32>
  %y = lw_graph.apply "batch_matmul" (%s, %k) : (tensor<2x3x4xf32>, tensor<2x4x5xf32>) -> tensor<2x3x5xf32>
  %x = lw_graph.apply "where" (%m, %y, %lowest) : (tensor<3x5xi1>, tensor<2x3x5xf32>, tensor<f32>) -> tensor<2x3x5xf32>
  %e = lw_graph.apply "not_equal" (%x, %lowest) : (tensor<2x3x5xf32>, tensor<f32>) -> tensor<2x3x5xi1>
  %c = lw_graph.apply "cast" (%e) <dtype = "int8"> : (tensor<2x3x5xi1>) -> tensor<2x3x5xi8>
  %r = lw_graph.apply "max" (%c) <axis = 2, keepdims = true> : (tensor<2x3x5xi8>) -> tensor<2x3x1xi8>
  %b = lw_graph.apply "cast" (%r) <dtype = "bool"> : (tensor<2x3x1xi8>) -> tensor<2x3x1xi1>
  %q = lw_graph.apply "logical_not" (%b) : (tensor<2x3x1xi1>) -> tensor<2x3x1xi1>
  %p = lw_graph.apply "softmax" (%x) <axis = 2> : (tensor<2x3x5xf32>) -> tensor<2x3x5xf32>
  %w = lw_graph.apply "where" (%q, %zero, %p) : (tensor<2x3x1xi1>, tensor<f32>, tensor<2x3x5xf32>) -> tensor<2x3x5xf32>
  %o = lw_graph.apply "batch_matmul" (%w, %v) : (tensor<2x3x5xf32>, tensor<2x5x6xf32>) -> tensor<2x3x6xf32>
  func.return %o : tensor<2x3x6xf32>
}
