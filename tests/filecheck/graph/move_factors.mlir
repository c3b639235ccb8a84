// RUN: xdsl-opt %s -p 'lw-graph-move-factors,dce' | filecheck %s

// A number goes up to the columns of the product that it is of, the others get 1.
// CHECK-LABEL: func.func @columns
func.func @columns(%x: tensor<4x6xf32>, %k: tensor<2x3x4xf32>) -> (tensor<2x4x4xf32>, tensor<1x4x6xf32>) {
  // CHECK: %d = lw_graph.apply "dense" (%x, %w)
  // CHECK: %[[S:.*]] = lw_graph.constant "number" = 0.25 : tensor<f32>
  // CHECK: %[[C:.*]] = lw_graph.apply "concatenate" (%{{.*}}, %{{.*}}) <axis = 2> : {{.*}} -> tensor<1x1x12xf32>
  // CHECK: lw_graph.apply "multiply" (%d, %{{.*}}) : (tensor<4x12xf32>, {{.*}}) -> tensor<4x12xf32>
  // CHECK: lw_graph.apply "batch_matmul" (%t, %k)
  %w = lw_graph.constant "w" : tensor<12x6xf32>
  %half = lw_graph.constant "half" = 0.5 : tensor<f32>
  %d = lw_graph.apply "dense" (%x, %w) : (tensor<4x6xf32>, tensor<12x6xf32>) -> tensor<4x12xf32>
  %r = lw_graph.apply "reshape" (%d) <shape = [1, 4, 12]> : (tensor<4x12xf32>) -> tensor<1x4x12xf32>
  %q = lw_graph.apply "strided_slice" (%r) <begin = [0], end = [6], strides = [1], axes = [2]> : (tensor<1x4x12xf32>) -> tensor<1x4x6xf32>
  %o = lw_graph.apply "strided_slice" (%r) <begin = [6], end = [12], strides = [1], axes = [2]> : (tensor<1x4x12xf32>) -> tensor<1x4x6xf32>
  %h = lw_graph.apply "reshape" (%q) <shape = [4, 2, 3]> : (tensor<1x4x6xf32>) -> tensor<4x2x3xf32>
  %t = lw_graph.apply "transpose" (%h) <axes = [1, 0, 2]> : (tensor<4x2x3xf32>) -> tensor<2x4x3xf32>
  %a = lw_graph.apply "multiply" (%t, %half) : (tensor<2x4x3xf32>, tensor<f32>) -> tensor<2x4x3xf32>
  %b = lw_graph.apply "multiply" (%k, %half) : (tensor<2x3x4xf32>, tensor<f32>) -> tensor<2x3x4xf32>
  %s = lw_graph.apply "batch_matmul" (%a, %b) : (tensor<2x4x3xf32>, tensor<2x3x4xf32>) -> tensor<2x4x4xf32>
  func.return %s, %o : tensor<2x4x4xf32>, tensor<1x4x6xf32>
}
