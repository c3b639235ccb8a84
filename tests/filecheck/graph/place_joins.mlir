// RUN: xdsl-opt %s -p 'lw-graph-place-joins' | filecheck %s

// States of steps are written where they are stacked, and read there by the next step; the last one is an output.
// CHECK-LABEL: func.func @steps
func.func @steps(%x: tensor<2x64xf32>) -> (tensor<3x2x64xf32>, tensor<2x64xf32>) {
  // CHECK: %[[a:[a-z_0-9]*]] = lw_graph.apply "relu" (%x)
  %a = lw_graph.apply "relu" (%x) : (tensor<2x64xf32>) -> tensor<2x64xf32>
  // CHECK: %[[b:[a-z_0-9]*]] = lw_graph.apply "tanh" (%[[a]])
  %b = lw_graph.apply "tanh" (%a) : (tensor<2x64xf32>) -> tensor<2x64xf32>
  // CHECK: %[[c:[a-z_0-9]*]] = lw_graph.apply "tanh" (%[[b]])
  %c = lw_graph.apply "tanh" (%b) : (tensor<2x64xf32>) -> tensor<2x64xf32>
  // CHECK: %[[d:[a-z_0-9]*]] = lw_graph.apply "cast" (%[[c]]) <dtype = "float32">
  // CHECK: lw_graph.apply "joined" (%[[a]], %[[b]], %[[d]]) <shape = [3, 2, 64]>
  %d = lw_graph.apply "stack" (%a, %b, %c) <axis = 0> : (tensor<2x64xf32>, tensor<2x64xf32>, tensor<2x64xf32>) -> tensor<3x2x64xf32>
  func.return %d, %c : tensor<3x2x64xf32>, tensor<2x64xf32>
}

// What is joined may be joined to more, under another shape; a value lies in one place alone.
// CHECK-LABEL: func.func @again
func.func @again(%x: tensor<1x4x64xf32>) -> (tensor<1x12x64xf32>, tensor<1x8x64xf32>) {
  // CHECK: %[[a:[a-z_0-9]*]] = lw_graph.apply "relu" (%x)
  %a = lw_graph.apply "relu" (%x) : (tensor<1x4x64xf32>) -> tensor<1x4x64xf32>
  // CHECK: %[[b:[a-z_0-9]*]] = lw_graph.apply "softmax" (%x)
  %b = lw_graph.apply "softmax" (%x) <axis = 2> : (tensor<1x4x64xf32>) -> tensor<1x4x64xf32>
  // CHECK: %[[c:[a-z_0-9]*]] = lw_graph.apply "joined" (%[[a]], %[[b]]) <shape = [1, 8, 64]>
  %c = lw_graph.apply "concatenate" (%a, %b) <axis = 1> : (tensor<1x4x64xf32>, tensor<1x4x64xf32>) -> tensor<1x8x64xf32>
  %d = lw_graph.apply "exp" (%x) : (tensor<1x4x64xf32>) -> tensor<1x4x64xf32>
  // CHECK: %[[d:[a-z_0-9]*]] = lw_graph.apply "exp" (%x)
  // CHECK: lw_graph.apply "joined" (%[[d]], %[[c]]) <shape = [1, 12, 64]>
  %e = lw_graph.apply "concatenate" (%d, %c) <axis = 1> : (tensor<1x4x64xf32>, tensor<1x8x64xf32>) -> tensor<1x12x64xf32>
  // CHECK: %[[f:[a-z_0-9]*]] = lw_graph.apply "tanh" (%x)
  %f = lw_graph.apply "tanh" (%x) : (tensor<1x4x64xf32>) -> tensor<1x4x64xf32>
  // CHECK: %[[copy:[a-z_0-9]*]] = lw_graph.apply "cast" (%[[a]])
  // CHECK: lw_graph.apply "joined" (%[[f]], %[[copy]])
  %g = lw_graph.apply "concatenate" (%f, %a) <axis = 1> : (tensor<1x4x64xf32>, tensor<1x4x64xf32>) -> tensor<1x8x64xf32>
  func.return %e, %g : tensor<1x12x64xf32>, tensor<1x8x64xf32>
}

// Columns lie between those of the other; parts begin on multiples of 256 bytes; inputs would be copied as before.
// CHECK-LABEL: func.func @stay
func.func @stay(%x: tensor<4x64xf32>, %y: tensor<3x20xf32>) -> (tensor<4x128xf32>, tensor<6x20xf32>, tensor<12x64xf32>) {
  // CHECK-NOT: "joined"
  %a = lw_graph.apply "relu" (%x) : (tensor<4x64xf32>) -> tensor<4x64xf32>
  %b = lw_graph.apply "exp" (%x) : (tensor<4x64xf32>) -> tensor<4x64xf32>
  %c = lw_graph.apply "concatenate" (%a, %b) <axis = 1> : (tensor<4x64xf32>, tensor<4x64xf32>) -> tensor<4x128xf32>
  %d = lw_graph.apply "relu" (%y) : (tensor<3x20xf32>) -> tensor<3x20xf32>
  %e = lw_graph.apply "exp" (%y) : (tensor<3x20xf32>) -> tensor<3x20xf32>
  %f = lw_graph.apply "concatenate" (%d, %e) <axis = 0> : (tensor<3x20xf32>, tensor<3x20xf32>) -> tensor<6x20xf32>
  %g = lw_graph.apply "tanh" (%x) : (tensor<4x64xf32>) -> tensor<4x64xf32>
  %h = lw_graph.apply "concatenate" (%x, %g, %x) <axis = 0> : (tensor<4x64xf32>, tensor<4x64xf32>, tensor<4x64xf32>) -> tensor<12x64xf32>
  func.return %c, %f, %h : tensor<4x128xf32>, tensor<6x20xf32>, tensor<12x64xf32>
}
