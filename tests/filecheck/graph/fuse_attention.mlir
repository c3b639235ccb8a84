// RUN: xdsl-opt %s -p 'lw-graph-fuse{attention_rows=4}' | filecheck %s
// RUN: xdsl-opt %s -p 'lw-graph-fuse{attention_rows=5}' | filecheck %s --check-prefix=FEW
// RUN: xdsl-opt %s -p 'lw-graph-fuse{attention_keys=48}' | filecheck %s --check-prefix=LANES

// CHECK-LABEL: func.func @attention
// FEW-LABEL: func.func @attention
func.func @attention(%q: tensor<6x4x3xf32>, %k: tensor<6x5x3xf32>, %v: tensor<6x5x7xf32>, %m: tensor<1x1x5xf32>) -> tensor<6x4x7xf32> {
  // CHECK: lw_graph.group "batch_matmul_add_softmax_batch_matmul_relu"
  // FEW: lw_graph.group "batch_matmul_add"
  // FEW: lw_graph.group "softmax"
  // FEW: lw_graph.group "batch_matmul_relu"
  %s = lw_graph.apply "batch_matmul" (%q, %k) <transpose_b = true> : (tensor<6x4x3xf32>, tensor<6x5x3xf32>) -> tensor<6x4x5xf32>
  %z = lw_graph.apply "add" (%s, %m) : (tensor<6x4x5xf32>, tensor<1x1x5xf32>) -> tensor<6x4x5xf32>
  %p = lw_graph.apply "softmax" (%z) <axis = 2> : (tensor<6x4x5xf32>) -> tensor<6x4x5xf32>
  %o = lw_graph.apply "batch_matmul" (%p, %v) : (tensor<6x4x5xf32>, tensor<6x5x7xf32>) -> tensor<6x4x7xf32>
  %r = lw_graph.apply "relu" (%o) : (tensor<6x4x7xf32>) -> tensor<6x4x7xf32>
  func.return %r : tensor<6x4x7xf32>
}

// Weights that somebody else sees are computed by themselves.
// CHECK-LABEL: func.func @seen
func.func @seen(%q: tensor<6x4x3xf32>, %k: tensor<6x5x3xf32>, %v: tensor<6x5x7xf32>) -> (tensor<6x4x7xf32>, tensor<6x4x5xf32>) {
  // CHECK-NOT: softmax_batch_matmul
  // CHECK: func.return
  %s = lw_graph.apply "batch_matmul" (%q, %k) <transpose_b = true> : (tensor<6x4x3xf32>, tensor<6x5x3xf32>) -> tensor<6x4x5xf32>
  %p = lw_graph.apply "softmax" (%s) <axis = 2> : (tensor<6x4x5xf32>) -> tensor<6x4x5xf32>
  %o = lw_graph.apply "batch_matmul" (%p, %v) : (tensor<6x4x5xf32>, tensor<6x5x7xf32>) -> tensor<6x4x7xf32>
  func.return %o, %p : tensor<6x4x7xf32>, tensor<6x4x5xf32>
}

// A mask that differs from query to query is a constant, or added apart.
// CHECK-LABEL: func.func @bias
func.func @bias(%q: tensor<6x4x3xf32>, %k: tensor<6x5x3xf32>, %v: tensor<6x5x7xf32>, %m: tensor<1x4x5xf32>) -> (tensor<6x4x7xf32>, tensor<6x4x7xf32>) {
  %c = lw_graph.constant "c" : tensor<4x5xf32>
  // CHECK: lw_graph.group "batch_matmul_add_softmax_batch_matmul"
  // CHECK-NOT: softmax_batch_matmul"
  // CHECK: func.return
  %s = lw_graph.apply "batch_matmul" (%q, %k) <transpose_b = true> : (tensor<6x4x3xf32>, tensor<6x5x3xf32>) -> tensor<6x4x5xf32>
  %z = lw_graph.apply "add" (%s, %c) : (tensor<6x4x5xf32>, tensor<4x5xf32>) -> tensor<6x4x5xf32>
  %p = lw_graph.apply "softmax" (%z) <axis = 2> : (tensor<6x4x5xf32>) -> tensor<6x4x5xf32>
  %o = lw_graph.apply "batch_matmul" (%p, %v) : (tensor<6x4x5xf32>, tensor<6x5x7xf32>) -> tensor<6x4x7xf32>
  %s1 = lw_graph.apply "batch_matmul" (%o, %o) <transpose_b = true> : (tensor<6x4x7xf32>, tensor<6x4x7xf32>) -> tensor<6x4x4xf32>
  %m1 = lw_graph.apply "strided_slice" (%m) <begin = [0, 0, 0], end = [1, 4, 4]> : (tensor<1x4x5xf32>) -> tensor<1x4x4xf32>
  %z1 = lw_graph.apply "add" (%s1, %m1) : (tensor<6x4x4xf32>, tensor<1x4x4xf32>) -> tensor<6x4x4xf32>
  %p1 = lw_graph.apply "softmax" (%z1) <axis = 2> : (tensor<6x4x4xf32>) -> tensor<6x4x4xf32>
  %o1 = lw_graph.apply "batch_matmul" (%p1, %o) : (tensor<6x4x4xf32>, tensor<6x4x7xf32>) -> tensor<6x4x7xf32>
  func.return %o, %o1 : tensor<6x4x7xf32>, tensor<6x4x7xf32>
}

// Softmax over queries, and half types.
// CHECK-LABEL: func.func @others
func.func @others(%q: tensor<6x4x3xf32>, %k: tensor<6x5x3xf32>, %v: tensor<6x5x7xf32>, %a: tensor<6x4x4xf16>) -> (tensor<6x4x7xf32>, tensor<6x4x4xf16>) {
  // CHECK-NOT: softmax_batch_matmul
  // CHECK: func.return
  %s = lw_graph.apply "batch_matmul" (%q, %k) <transpose_b = true> : (tensor<6x4x3xf32>, tensor<6x5x3xf32>) -> tensor<6x4x5xf32>
  %p = lw_graph.apply "softmax" (%s) <axis = 1> : (tensor<6x4x5xf32>) -> tensor<6x4x5xf32>
  %o = lw_graph.apply "batch_matmul" (%p, %v) : (tensor<6x4x5xf32>, tensor<6x5x7xf32>) -> tensor<6x4x7xf32>
  %b = lw_graph.apply "batch_matmul" (%a, %a) : (tensor<6x4x4xf16>, tensor<6x4x4xf16>) -> tensor<6x4x4xf16>
  %c = lw_graph.apply "softmax" (%b) <axis = 2> : (tensor<6x4x4xf16>) -> tensor<6x4x4xf16>
  %d = lw_graph.apply "batch_matmul" (%c, %a) : (tensor<6x4x4xf16>, tensor<6x4x4xf16>) -> tensor<6x4x4xf16>
  func.return %o, %d : tensor<6x4x7xf32>, tensor<6x4x4xf16>
}

// On lanes of a GPU: keys lie as queries do, elements of each side by side, and there are no more than are told.
// LANES-LABEL: func.func @on_lanes
func.func @on_lanes(%q: tensor<20x2x32xf32>, %k: tensor<48x2x32xf32>, %v: tensor<48x2x64xf32>, %m: tensor<20x48xf32>) -> tensor<20x2x64xf32> {
  // LANES: lw_graph.group "einsum_add_softmax_einsum"
  %s = lw_graph.apply "einsum" (%q, %k) <equation = "ibd,jbd->bij"> : (tensor<20x2x32xf32>, tensor<48x2x32xf32>) -> tensor<2x20x48xf32>
  %z = lw_graph.apply "add" (%s, %m) : (tensor<2x20x48xf32>, tensor<20x48xf32>) -> tensor<2x20x48xf32>
  %p = lw_graph.apply "softmax" (%z) <axis = 2> : (tensor<2x20x48xf32>) -> tensor<2x20x48xf32>
  %o = lw_graph.apply "einsum" (%p, %v) <equation = "bij,jbc->ibc"> : (tensor<2x20x48xf32>, tensor<48x2x64xf32>) -> tensor<20x2x64xf32>
  func.return %o : tensor<20x2x64xf32>
}

// Keys with their elements a row apart, and more of them.
// LANES-LABEL: func.func @not_on_lanes
func.func @not_on_lanes(%q: tensor<2x20x32xf32>, %k: tensor<2x32x48xf32>, %v: tensor<2x48x32xf32>, %l: tensor<2x49x32xf32>, %w: tensor<2x49x32xf32>) -> (tensor<2x20x32xf32>, tensor<2x20x32xf32>) {
  // LANES-NOT: softmax_batch_matmul
  // LANES: func.return
  %s = lw_graph.apply "batch_matmul" (%q, %k) : (tensor<2x20x32xf32>, tensor<2x32x48xf32>) -> tensor<2x20x48xf32>
  %p = lw_graph.apply "softmax" (%s) <axis = 2> : (tensor<2x20x48xf32>) -> tensor<2x20x48xf32>
  %o = lw_graph.apply "batch_matmul" (%p, %v) : (tensor<2x20x48xf32>, tensor<2x48x32xf32>) -> tensor<2x20x32xf32>
  %t = lw_graph.apply "batch_matmul" (%q, %l) <transpose_b = true> : (tensor<2x20x32xf32>, tensor<2x49x32xf32>) -> tensor<2x20x49xf32>
  %r = lw_graph.apply "softmax" (%t) <axis = 2> : (tensor<2x20x49xf32>) -> tensor<2x20x49xf32>
  %u = lw_graph.apply "batch_matmul" (%r, %w) : (tensor<2x20x49xf32>, tensor<2x49x32xf32>) -> tensor<2x20x32xf32>
  func.return %o, %u : tensor<2x20x32xf32>, tensor<2x20x32xf32>
}
