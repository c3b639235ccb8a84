// RUN: xdsl-opt %s -p 'lw-graph-fuse{views=true beside=64}' | filecheck %s
// RUN: xdsl-opt %s -p 'lw-graph-fuse' | filecheck %s --check-prefix=APART

// A chain goes on behind a view, which it computes.
// CHECK-LABEL: func.func @view
// APART-LABEL: func.func @view
func.func @view(%x: tensor<2x4xf32>, %old: tensor<2x3x4xf32>) -> tensor<2x4x4xf32> {
  // CHECK-NEXT: lw_graph.group "exp_reshape_concatenate"
  // APART-NEXT: lw_graph.group "exp"
  // APART: lw_graph.group "concatenate"
  %e = lw_graph.apply "exp" (%x) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %v = lw_graph.apply "reshape" (%e) <shape = [2, 1, 4]> : (tensor<2x4xf32>) -> tensor<2x1x4xf32>
  %c = lw_graph.apply "concatenate" (%old, %v) <axis = 1> : (tensor<2x3x4xf32>, tensor<2x1x4xf32>) -> tensor<2x4x4xf32>
  func.return %c : tensor<2x4x4xf32>
}

// One that others read, or that something else than a chain reads, stays outside.
// CHECK-LABEL: func.func @read_otherwise
func.func @read_otherwise(%x: tensor<2x4xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  // CHECK-NEXT: lw_graph.group "exp"
  // CHECK: lw_graph.apply "reshape"
  // CHECK: lw_graph.group "softmax"
  %e = lw_graph.apply "exp" (%x) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %v = lw_graph.apply "reshape" (%e) <shape = [8]> : (tensor<2x4xf32>) -> tensor<8xf32>
  %s = lw_graph.apply "softmax" (%v) <axis = 0> : (tensor<8xf32>) -> tensor<8xf32>
  func.return %s, %v : tensor<8xf32>, tensor<8xf32>
}

// Chains that do not depend on each other are one kernel with two results.
// CHECK-LABEL: func.func @beside
// APART-LABEL: func.func @beside
func.func @beside(%x: tensor<2x4xf32>, %y: tensor<4x2xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>) {
  // CHECK-NEXT: %{{.*}}, %{{.*}} = lw_graph.group "exp_transpose"
  // CHECK-NOT: lw_graph.group
  // APART: lw_graph.group "exp"
  // APART: lw_graph.group "transpose"
  %a = lw_graph.apply "exp" (%x) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %b = lw_graph.apply "transpose" (%y) : (tensor<4x2xf32>) -> tensor<2x4xf32>
  func.return %a, %b : tensor<2x4xf32>, tensor<2x4xf32>
}

// So are one that others read, too, and an elementwise one behind it; not one that moves its elements.
// CHECK-LABEL: func.func @read_in_place
func.func @read_in_place(%x: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) {
  // CHECK: lw_graph.group "exp_relu"
  // CHECK: lw_graph.group "transpose"
  %a = lw_graph.apply "exp" (%x) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %b = lw_graph.apply "relu" (%a) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %c = lw_graph.apply "transpose" (%a) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  func.return %a, %b, %c : tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>
}

// Not where one depends on the other by way of a third kernel, nor where there is much of them.
// CHECK-LABEL: func.func @behind
func.func @behind(%x: tensor<2x4xf32>, %y: tensor<16x8xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>, tensor<16x8xf32>, tensor<16x8xf32>) {
  // CHECK: lw_graph.group "exp"
  // CHECK: lw_graph.group "softmax"
  // CHECK: lw_graph.group "transpose_transpose"
  // CHECK: lw_graph.group "exp"
  // CHECK: lw_graph.group "negative"
  %a = lw_graph.apply "exp" (%x) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %s = lw_graph.apply "softmax" (%a) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %t = lw_graph.apply "transpose" (%s) : (tensor<2x4xf32>) -> tensor<4x2xf32>
  %b = lw_graph.apply "transpose" (%t) : (tensor<4x2xf32>) -> tensor<2x4xf32>
  %c = lw_graph.apply "exp" (%y) : (tensor<16x8xf32>) -> tensor<16x8xf32>
  %d = lw_graph.apply "negative" (%y) : (tensor<16x8xf32>) -> tensor<16x8xf32>
  func.return %a, %b, %c, %d : tensor<2x4xf32>, tensor<2x4xf32>, tensor<16x8xf32>, tensor<16x8xf32>
}
