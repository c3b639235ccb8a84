// RUN: xdsl-opt %s -p 'lw-graph-split-norms,lw-graph-sink-views,lw-graph-simplify,dce' | filecheck %s

// Groups of channels are normalised as rows, each channel is scaled: rows are read with the scales of their channels.
// CHECK-LABEL: func.func @groups
func.func @groups(%x: tensor<2x6x4x4xf32>) -> tensor<2x6x4x4xf32> {
  %g = lw_graph.constant "g" : tensor<6x1x1xf32>
  // CHECK: %[[r:[a-z_0-9]*]] = lw_graph.apply "reshape" (%x) <shape = [2, 3, 2, 16]>
  %r = lw_graph.apply "reshape" (%x) <shape = [2, 3, 32]> : (tensor<2x6x4x4xf32>) -> tensor<2x3x32xf32>
  // CHECK-NEXT: %[[n:[a-z_0-9]*]] = lw_graph.apply "layer_norm" (%[[r]]) <axis = [2, 3], epsilon = 0.1
  %n = lw_graph.apply "layer_norm" (%r) <axis = -1, epsilon = 0.1> : (tensor<2x3x32xf32>) -> tensor<2x3x32xf32>
  %v = lw_graph.apply "reshape" (%n) <shape = [2, 6, 4, 4]> : (tensor<2x3x32xf32>) -> tensor<2x6x4x4xf32>
  // CHECK-NEXT: %[[g:[a-z_0-9]*]] = lw_graph.apply "reshape" (%g) <shape = [3, 2, 1]>
  // CHECK-NEXT: %[[m:[a-z_0-9]*]] = lw_graph.apply "multiply" (%[[n]], %[[g]]) : (tensor<2x3x2x16xf32>, tensor<3x2x1xf32>)
  %m = lw_graph.apply "multiply" (%v, %g) : (tensor<2x6x4x4xf32>, tensor<6x1x1xf32>) -> tensor<2x6x4x4xf32>
  // CHECK-NEXT: %{{.*}} = lw_graph.apply "reshape" (%[[m]]) <shape = [2, 6, 4, 4]>
  func.return %m : tensor<2x6x4x4xf32>
}

// One group of channels-last maps: the scale is read for the last axis.
// CHECK-LABEL: func.func @last
func.func @last(%x: tensor<2x4x4x6xf32>) -> tensor<2x4x4x6xf32> {
  %g = lw_graph.constant "g" : tensor<6xf32>
  // CHECK: %[[r:[a-z_0-9]*]] = lw_graph.apply "reshape" (%x) <shape = [2, 16, 6]>
  %r = lw_graph.apply "reshape" (%x) <shape = [2, 96]> : (tensor<2x4x4x6xf32>) -> tensor<2x96xf32>
  // CHECK-NEXT: %[[n:[a-z_0-9]*]] = lw_graph.apply "rms_norm" (%[[r]]) <axis = [1, 2]
  %n = lw_graph.apply "rms_norm" (%r) : (tensor<2x96xf32>) -> tensor<2x96xf32>
  %v = lw_graph.apply "reshape" (%n) <shape = [2, 4, 4, 6]> : (tensor<2x96xf32>) -> tensor<2x4x4x6xf32>
  // CHECK-NEXT: %[[m:[a-z_0-9]*]] = lw_graph.apply "multiply" (%[[n]], %g) : (tensor<2x16x6xf32>, tensor<6xf32>)
  %m = lw_graph.apply "multiply" (%v, %g) : (tensor<2x4x4x6xf32>, tensor<6xf32>) -> tensor<2x4x4x6xf32>
  func.return %m : tensor<2x4x4x6xf32>
}

// Heads whose rows cut through what is scaled: no shape has both, and all stays.
// CHECK-LABEL: func.func @across
func.func @across(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %g = lw_graph.constant "g" : tensor<6xf32>
  %r = lw_graph.apply "reshape" (%x) <shape = [3, 8]> : (tensor<4x6xf32>) -> tensor<3x8xf32>
  // CHECK: lw_graph.apply "layer_norm" (%{{.*}}) {{.*}}: (tensor<3x8xf32>)
  %n = lw_graph.apply "layer_norm" (%r) : (tensor<3x8xf32>) -> tensor<3x8xf32>
  %v = lw_graph.apply "reshape" (%n) <shape = [4, 6]> : (tensor<3x8xf32>) -> tensor<4x6xf32>
  // CHECK: lw_graph.apply "multiply" (%{{.*}}, %g) : (tensor<4x6xf32>, tensor<6xf32>)
  %m = lw_graph.apply "multiply" (%v, %g) : (tensor<4x6xf32>, tensor<6xf32>) -> tensor<4x6xf32>
  func.return %m : tensor<4x6xf32>
}
