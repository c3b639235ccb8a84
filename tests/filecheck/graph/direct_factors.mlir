// RUN: xdsl-opt %s -p 'lw-graph-direct-factors,lw-graph-simplify,dce' | filecheck %s

// Keys are read where they are, though they are turned under another shape.
// CHECK-LABEL: func.func @turned
func.func @turned(%q: tensor<6x5x8xf32>, %k: tensor<2x3x7x8xf32>) -> tensor<6x5x7xf32> {
  %t = lw_graph.apply "transpose" (%k) <axes = [0, 1, 3, 2]> : (tensor<2x3x7x8xf32>) -> tensor<2x3x8x7xf32>
  %v = lw_graph.apply "reshape" (%t) <shape = [6, 8, 7]> : (tensor<2x3x8x7xf32>) -> tensor<6x8x7xf32>
  // CHECK: %[[k:[a-z_0-9]*]] = lw_graph.apply "reshape" (%k) <shape = [6, 7, 8]>
  // CHECK-NEXT: lw_graph.apply "batch_matmul" (%q, %[[k]]) <transpose_b = true>
  %s = lw_graph.apply "batch_matmul" (%q, %v) : (tensor<6x5x8xf32>, tensor<6x8x7xf32>) -> tensor<6x5x7xf32>
  func.return %s : tensor<6x5x7xf32>
}

// Turned twice is not turned.
// CHECK-LABEL: func.func @twice
func.func @twice(%a: tensor<5x8xf32>, %b: tensor<8x7xf32>) -> tensor<5x7xf32> {
  %t = lw_graph.apply "transpose" (%b) : (tensor<8x7xf32>) -> tensor<7x8xf32>
  // CHECK-NEXT: %[[s:[a-z_0-9]*]] = lw_graph.apply "matmul" (%a, %b) :
  // CHECK-NEXT: func.return %[[s]]
  %s = lw_graph.apply "matmul" (%a, %t) <transpose_b = true> : (tensor<5x8xf32>, tensor<7x8xf32>) -> tensor<5x7xf32>
  func.return %s : tensor<5x7xf32>
}

// A query of each of four heads, two of which share keys: two rows by the keys of each.
// CHECK-LABEL: func.func @shared
func.func @shared(%q: tensor<4x1x8xf32>, %k: tensor<1x2x7x8xf32>) -> tensor<4x1x7xf32> {
  %e = lw_graph.apply "reshape" (%k) <shape = [1, 2, 1, 7, 8]> : (tensor<1x2x7x8xf32>) -> tensor<1x2x1x7x8xf32>
  %w = lw_graph.apply "broadcast_to" (%e) <shape = [1, 2, 2, 7, 8]> : (tensor<1x2x1x7x8xf32>) -> tensor<1x2x2x7x8xf32>
  %v = lw_graph.apply "reshape" (%w) <shape = [1, 4, 7, 8]> : (tensor<1x2x2x7x8xf32>) -> tensor<1x4x7x8xf32>
  %t = lw_graph.apply "transpose" (%v) <axes = [0, 1, 3, 2]> : (tensor<1x4x7x8xf32>) -> tensor<1x4x8x7xf32>
  %r = lw_graph.apply "reshape" (%t) <shape = [4, 8, 7]> : (tensor<1x4x8x7xf32>) -> tensor<4x8x7xf32>
  // CHECK-DAG: %[[q:[a-z_0-9]*]] = lw_graph.apply "reshape" (%q) <shape = [2, 2, 8]>
  // CHECK-DAG: %[[k:[a-z_0-9]*]] = lw_graph.apply "reshape" (%k) <shape = [2, 7, 8]>
  // CHECK-NEXT: lw_graph.apply "batch_matmul" (%[[q]], %[[k]]) <transpose_b = true> {{.*}} -> tensor<2x2x7xf32>
  %s = lw_graph.apply "batch_matmul" (%q, %r) : (tensor<4x1x8xf32>, tensor<4x8x7xf32>) -> tensor<4x1x7xf32>
  func.return %s : tensor<4x1x7xf32>
}

// Several queries of a head, keys that heads far apart share, and a transpose that somebody else reads, too, stay.
// CHECK-LABEL: func.func @stay
func.func @stay(%q: tensor<4x3x8xf32>, %p: tensor<4x1x8xf32>, %k: tensor<2x1x8x7xf32>, %h: tensor<1x2x8x7xf32>, %m: tensor<4x7x8xf32>) -> (tensor<4x3x7xf32>, tensor<4x1x7xf32>, tensor<4x3x7xf32>, tensor<4x8x7xf32>) {
  %w = lw_graph.apply "broadcast_to" (%k) <shape = [2, 2, 8, 7]> : (tensor<2x1x8x7xf32>) -> tensor<2x2x8x7xf32>
  %v = lw_graph.apply "reshape" (%w) <shape = [4, 8, 7]> : (tensor<2x2x8x7xf32>) -> tensor<4x8x7xf32>
  // CHECK: lw_graph.apply "batch_matmul" (%q, %{{.*}}) : (tensor<4x3x8xf32>, tensor<4x8x7xf32>)
  %s = lw_graph.apply "batch_matmul" (%q, %v) : (tensor<4x3x8xf32>, tensor<4x8x7xf32>) -> tensor<4x3x7xf32>
  %x = lw_graph.apply "broadcast_to" (%h) <shape = [2, 2, 8, 7]> : (tensor<1x2x8x7xf32>) -> tensor<2x2x8x7xf32>
  %y = lw_graph.apply "reshape" (%x) <shape = [4, 8, 7]> : (tensor<2x2x8x7xf32>) -> tensor<4x8x7xf32>
  // CHECK: lw_graph.apply "batch_matmul" (%p, %{{.*}}) : (tensor<4x1x8xf32>, tensor<4x8x7xf32>)
  %z = lw_graph.apply "batch_matmul" (%p, %y) : (tensor<4x1x8xf32>, tensor<4x8x7xf32>) -> tensor<4x1x7xf32>
  %t = lw_graph.apply "transpose" (%m) <axes = [0, 2, 1]> : (tensor<4x7x8xf32>) -> tensor<4x8x7xf32>
  // CHECK: lw_graph.apply "batch_matmul" (%q, %{{.*}}) : (tensor<4x3x8xf32>, tensor<4x8x7xf32>)
  %u = lw_graph.apply "batch_matmul" (%q, %t) : (tensor<4x3x8xf32>, tensor<4x8x7xf32>) -> tensor<4x3x7xf32>
  func.return %s, %z, %u, %t : tensor<4x3x7xf32>, tensor<4x1x7xf32>, tensor<4x3x7xf32>, tensor<4x8x7xf32>
}
