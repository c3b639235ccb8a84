// RUN: xdsl-opt %s -p 'lw-graph-place-slices,dce' | filecheck %s

// Steps are parts of a sequence; of a step's columns the step is one, and the rest is read where they are used.
// CHECK-LABEL: func.func @steps
func.func @steps(%x: tensor<3x4x64xf32>) -> (tensor<1x4x64xf32>, tensor<4x16xf32>) {
  // CHECK: %[[one:[a-z_0-9]*]] = lw_graph.apply "part" (%x) <shape = [4, 64], start = 512>
  %a = lw_graph.apply "strided_slice" (%x) <begin = [2], end = [3], axes = [0]> : (tensor<3x4x64xf32>) -> tensor<1x4x64xf32>
  %b = lw_graph.apply "relu" (%a) : (tensor<1x4x64xf32>) -> tensor<1x4x64xf32>
  // CHECK: %[[two:[a-z_0-9]*]] = lw_graph.apply "part" (%x) <shape = [4, 64], start = 256>
  // CHECK-NEXT: lw_graph.apply "strided_slice" (%[[two]]) <axes = [1], begin = [16], end = [32]{{.*}}>
  %c = lw_graph.apply "strided_slice" (%x) <begin = [1, 16], end = [2, 32], axes = [0, 2]> : (tensor<3x4x64xf32>) -> tensor<1x4x16xf32>
  %d = lw_graph.apply "reshape" (%c) <shape = [4, 16]> : (tensor<1x4x16xf32>) -> tensor<4x16xf32>
  %e = lw_graph.apply "relu" (%d) : (tensor<4x16xf32>) -> tensor<4x16xf32>
  func.return %b, %e : tensor<1x4x64xf32>, tensor<4x16xf32>
}

// Every so many rows are no part, but those from the first to the last of them are; under the shape of the slice, where
// that is read as it is.
// CHECK-LABEL: func.func @strides
func.func @strides(%x: tensor<2x8x64xf32>) -> tensor<1x2x64xf32> {
  // CHECK: %[[half:[a-z_0-9]*]] = lw_graph.apply "part" (%x) <shape = [1, 8, 64], start = 512>
  // CHECK-NEXT: lw_graph.apply "strided_slice" (%[[half]]) <axes = [1], begin = [1], end = [4], strides = [2]>
  %a = lw_graph.apply "strided_slice" (%x) <begin = [1, 1], end = [2, 5], strides = [1, 2], axes = [0, 1]> : (tensor<2x8x64xf32>) -> tensor<1x2x64xf32>
  %b = lw_graph.apply "relu" (%a) : (tensor<1x2x64xf32>) -> tensor<1x2x64xf32>
  func.return %b : tensor<1x2x64xf32>
}

// CHECK-LABEL: func.func @split
func.func @split(%x: tensor<1x4x64xf32>) -> (tensor<1x1x64xf32>, tensor<1x3x64xf32>) {
  // CHECK: lw_graph.apply "part" (%x) <shape = [1, 1, 64], start = 0>
  // CHECK-NEXT: lw_graph.apply "part" (%x) <shape = [1, 3, 64], start = 64>
  %a, %b = lw_graph.apply "split" (%x) <sections = [1], axis = 1> : (tensor<1x4x64xf32>) -> (tensor<1x1x64xf32>, tensor<1x3x64xf32>)
  %c = lw_graph.apply "relu" (%a) : (tensor<1x1x64xf32>) -> tensor<1x1x64xf32>
  %d = lw_graph.apply "relu" (%b) : (tensor<1x3x64xf32>) -> tensor<1x3x64xf32>
  func.return %c, %d : tensor<1x1x64xf32>, tensor<1x3x64xf32>
}

// Columns do not lie side by side, a part that starts between multiples of 256 bytes is none, nor is an output of the
// network; and what only a slice reads is computed for the slice alone.
// CHECK-LABEL: func.func @stay
func.func @stay(%x: tensor<4x64xf32>, %y: tensor<4x20xf32>, %z: tensor<2x64xf32>) -> (tensor<4x32xf32>, tensor<1x20xf32>, tensor<64xf32>, tensor<1x64xf32>) {
  // CHECK-NOT: "part"
  %a = lw_graph.apply "strided_slice" (%x) <begin = [0], end = [32], axes = [1]> : (tensor<4x64xf32>) -> tensor<4x32xf32>
  %b = lw_graph.apply "relu" (%a) : (tensor<4x32xf32>) -> tensor<4x32xf32>
  %c = lw_graph.apply "strided_slice" (%y) <begin = [1], end = [2], axes = [0]> : (tensor<4x20xf32>) -> tensor<1x20xf32>
  %d = lw_graph.apply "relu" (%c) : (tensor<1x20xf32>) -> tensor<1x20xf32>
  %e = lw_graph.apply "strided_slice" (%z) <begin = [1], end = [2], axes = [0]> : (tensor<2x64xf32>) -> tensor<1x64xf32>
  %f = lw_graph.apply "reshape" (%e) <shape = [64]> : (tensor<1x64xf32>) -> tensor<64xf32>
  %g = lw_graph.apply "relu" (%z) : (tensor<2x64xf32>) -> tensor<2x64xf32>
  %h = lw_graph.apply "strided_slice" (%g) <begin = [1], end = [2], axes = [0]> : (tensor<2x64xf32>) -> tensor<1x64xf32>
  %i = lw_graph.apply "relu" (%h) : (tensor<1x64xf32>) -> tensor<1x64xf32>
  func.return %b, %d, %f, %i : tensor<4x32xf32>, tensor<1x20xf32>, tensor<64xf32>, tensor<1x64xf32>
}
