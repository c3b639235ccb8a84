// RUN: xdsl-opt %s -p 'lw-graph-simplify,lw-graph-fold-batch-norm,dce' | filecheck %s

// The scale goes into the weights, and into a bias before it.
// CHECK-LABEL: func.func @into_weights
func.func @into_weights(%x: tensor<1x4x5x5xf32>) -> tensor<1x8x5x5xf32> {
  %w = lw_graph.constant "w" : tensor<8x4x1x1xf32>
  %b = lw_graph.constant "b" : tensor<8xf32>
  %gamma = lw_graph.constant "gamma" : tensor<8xf32>
  %beta = lw_graph.constant "beta" : tensor<8xf32>
  %mean = lw_graph.constant "mean" : tensor<8xf32>
  %variance = lw_graph.constant "variance" : tensor<8xf32>
  %conv = lw_graph.apply "conv2d" (%x, %w) : (tensor<1x4x5x5xf32>, tensor<8x4x1x1xf32>) -> tensor<1x8x5x5xf32>
  %sum = lw_graph.apply "bias_add" (%conv, %b) : (tensor<1x8x5x5xf32>, tensor<8xf32>) -> tensor<1x8x5x5xf32>
  %y = lw_graph.apply "batch_norm" (%sum, %gamma, %beta, %mean, %variance) <epsilon = 0.001> : (tensor<1x8x5x5xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<1x8x5x5xf32>
  // CHECK: %epsilon = lw_graph.constant "epsilon" = 0.001 : tensor<f32>
  // CHECK-NEXT: %[[e:[a-z_0-9]*]] = lw_graph.apply "add" (%variance, %epsilon)
  // CHECK-NEXT: %[[r:[a-z_0-9]*]] = lw_graph.apply "rsqrt" (%[[e]])
  // CHECK-NEXT: %[[s:[a-z_0-9]*]] = lw_graph.apply "multiply" (%gamma, %[[r]])
  // CHECK: %[[t:[a-z_0-9]*]] = lw_graph.apply "reshape" (%[[s]]) <shape = [8, 1, 1, 1]>
  // CHECK-NEXT: %[[w:[a-z_0-9]*]] = lw_graph.apply "multiply" (%w, %[[t]])
  // CHECK-NEXT: %conv = lw_graph.apply "conv2d" (%x, %[[w]])
  // CHECK: %y = lw_graph.apply "add" (%conv, %{{.*}})
  // CHECK-NEXT: func.return %y
  func.return %y : tensor<1x8x5x5xf32>
}

// Where another operator reads the convolution too, scale and shift stay.
// CHECK-LABEL: func.func @shared
func.func @shared(%x: tensor<1x4x5x5xf32>) -> (tensor<1x8x5x5xf32>, tensor<1x8x5x5xf32>) {
  %w = lw_graph.constant "w" : tensor<8x4x1x1xf32>
  %g = lw_graph.constant "g" : tensor<8xf32>
  // CHECK: %conv = lw_graph.apply "conv2d" (%x, %w)
  %conv = lw_graph.apply "conv2d" (%x, %w) : (tensor<1x4x5x5xf32>, tensor<8x4x1x1xf32>) -> tensor<1x8x5x5xf32>
  // CHECK: %[[m:[a-z_0-9]*]] = lw_graph.apply "multiply" (%conv, %{{.*}})
  // CHECK-NEXT: %y = lw_graph.apply "add" (%[[m]], %{{.*}})
  %y = lw_graph.apply "batch_norm" (%conv, %g, %g, %g, %g) : (tensor<1x8x5x5xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<1x8x5x5xf32>
  func.return %y, %conv : tensor<1x8x5x5xf32>, tensor<1x8x5x5xf32>
}

// Factors of channels go into the weights, too, and summands become one: scale layers, as some exporters write them.
// CHECK-LABEL: func.func @scale_layer
func.func @scale_layer(%x: tensor<1x4x5x5xf32>, %z: tensor<8x1x1xf32>) -> (tensor<1x8x5x5xf32>, tensor<1x8x5x5xf32>) {
  %w = lw_graph.constant "w" : tensor<8x4x1x1xf32>
  %b = lw_graph.constant "b" : tensor<1x8x1x1xf32>
  %g = lw_graph.constant "g" : tensor<8x1x1xf32>
  %conv = lw_graph.apply "conv2d" (%x, %w) : (tensor<1x4x5x5xf32>, tensor<8x4x1x1xf32>) -> tensor<1x8x5x5xf32>
  %s = lw_graph.apply "add" (%conv, %b) : (tensor<1x8x5x5xf32>, tensor<1x8x1x1xf32>) -> tensor<1x8x5x5xf32>
  %m = lw_graph.apply "multiply" (%g, %s) : (tensor<8x1x1xf32>, tensor<1x8x5x5xf32>) -> tensor<1x8x5x5xf32>
  // CHECK: %[[w:[a-z_0-9]*]] = lw_graph.apply "multiply" (%w, %{{.*}})
  // CHECK: %conv = lw_graph.apply "conv2d" (%x, %[[w]])
  // CHECK: %[[p:[a-z_0-9]*]] = lw_graph.apply "multiply" (%b, %{{.*}})
  // CHECK: %[[q:[a-z_0-9]*]] = lw_graph.apply "add" (%[[p]], %g)
  // CHECK: %y = lw_graph.apply "add" (%conv, %[[q]]) : (tensor<1x8x5x5xf32>, tensor<1x8x1x1xf32>)
  %y = lw_graph.apply "add" (%m, %g) : (tensor<1x8x5x5xf32>, tensor<8x1x1xf32>) -> tensor<1x8x5x5xf32>
  %c = lw_graph.apply "conv2d" (%x, %w) : (tensor<1x4x5x5xf32>, tensor<8x4x1x1xf32>) -> tensor<1x8x5x5xf32>
  // CHECK: %n = lw_graph.apply "multiply" (%c, %z)
  %n = lw_graph.apply "multiply" (%c, %z) : (tensor<1x8x5x5xf32>, tensor<8x1x1xf32>) -> tensor<1x8x5x5xf32>
  // CHECK-NEXT: func.return %y, %n
  func.return %y, %n : tensor<1x8x5x5xf32>, tensor<1x8x5x5xf32>
}
