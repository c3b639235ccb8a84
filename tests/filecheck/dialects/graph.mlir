// RUN: xdsl-opt %s | filecheck %s
// RUN: xdsl-opt %s --print-op-generic | xdsl-opt | filecheck %s

// CHECK: func.func @net(%data: tensor<1x4xf32> {lw.name = "data"}) -> (tensor<1x2xf32> {lw.name = "prob"}) {
func.func @net(%data: tensor<1x4xf32> {lw.name = "data"}) -> (tensor<1x2xf32> {lw.name = "prob"}) {
  // CHECK-NEXT: %weight = lw_graph.constant "layer.weight" : tensor<4x4xf32>
  %weight = lw_graph.constant "layer.weight" : tensor<4x4xf32>
  // CHECK-NEXT: %half = lw_graph.constant "half" = 0.5 : tensor<f32>
  %half = lw_graph.constant "half" = 0.5 : tensor<f32>
  // CHECK-NEXT: %y = lw_graph.group "dense_clip" (%p0 = %data : tensor<1x4xf32>, %p1 = %weight : tensor<4x4xf32>) -> tensor<1x4xf32> {
  %y = lw_graph.group "dense_clip" (%p0 = %data : tensor<1x4xf32>, %p1 = %weight : tensor<4x4xf32>) -> tensor<1x4xf32> {
    // CHECK-NEXT: %dense = lw_graph.apply "dense" (%p0, %p1) : (tensor<1x4xf32>, tensor<4x4xf32>) -> tensor<1x4xf32>
    %dense = lw_graph.apply "dense" (%p0, %p1) : (tensor<1x4xf32>, tensor<4x4xf32>) -> tensor<1x4xf32>
    // CHECK-NEXT: %clip = lw_graph.apply "clip" (%dense) <high = inf, low = -1.0e-05> : (tensor<1x4xf32>) -> tensor<1x4xf32>
    %clip = lw_graph.apply "clip" (%dense) <low = -1.0e-05, high = inf> : (tensor<1x4xf32>) -> tensor<1x4xf32>
    // CHECK-NEXT: lw_graph.yield %clip : tensor<1x4xf32>
    lw_graph.yield %clip : tensor<1x4xf32>
  }
  // CHECK: %a, %b = lw_graph.apply "split" (%y) <axis = 1, note = "a \"b\"", some = [], steps = [1, -2], wide = true> : (tensor<1x4xf32>) -> (tensor<1x2xf32>, tensor<1x2xf32>)
  %a, %b = lw_graph.apply "split" (%y) <axis = 1, note = "a \"b\"", wide = true, steps = [1, -2], some = []> : (tensor<1x4xf32>) -> (tensor<1x2xf32>, tensor<1x2xf32>)
  func.return %a : tensor<1x2xf32>
}
