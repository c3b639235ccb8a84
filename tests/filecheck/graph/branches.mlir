// RUN: xdsl-opt %s -p 'lw-graph-branches{threads=2 lanes=16 cache_bytes=1048576}' | filecheck %s

// Two chains whose kernels take turns: each is a branch, in a row, before what reads both.
// CHECK-LABEL: func.func @turns
func.func @turns(%a0: tensor<1x64xf32>, %b0: tensor<1x64xf32>) -> tensor<1x64xf32> {
  // CHECK: %a1 = lw_graph.group "tanh" in branch 0 of 0 (%{{[a-z0-9]*}} = %a0 : tensor<1x64xf32>)
  // CHECK: %a2 = lw_graph.group "tanh" in branch 0 of 0 (%{{[a-z0-9]*}} = %a1 : tensor<1x64xf32>)
  // CHECK: %a3 = lw_graph.group "tanh" in branch 0 of 0 (%{{[a-z0-9]*}} = %a2 : tensor<1x64xf32>)
  // CHECK: %a4 = lw_graph.group "tanh" in branch 0 of 0 (%{{[a-z0-9]*}} = %a3 : tensor<1x64xf32>)
  // CHECK: %a5 = lw_graph.group "tanh" in branch 0 of 0 (%{{[a-z0-9]*}} = %a4 : tensor<1x64xf32>)
  // CHECK: %a6 = lw_graph.group "tanh" in branch 0 of 0 (%{{[a-z0-9]*}} = %a5 : tensor<1x64xf32>)
  // CHECK: %a7 = lw_graph.group "tanh" in branch 0 of 0 (%{{[a-z0-9]*}} = %a6 : tensor<1x64xf32>)
  // CHECK: %a8 = lw_graph.group "tanh" in branch 0 of 0 (%{{[a-z0-9]*}} = %a7 : tensor<1x64xf32>)
  // CHECK: %b1 = lw_graph.group "tanh" in branch 1 of 0 (%{{[a-z0-9]*}} = %b0 : tensor<1x64xf32>)
  // CHECK: %b2 = lw_graph.group "tanh" in branch 1 of 0 (%{{[a-z0-9]*}} = %b1 : tensor<1x64xf32>)
  // CHECK: %b3 = lw_graph.group "tanh" in branch 1 of 0 (%{{[a-z0-9]*}} = %b2 : tensor<1x64xf32>)
  // CHECK: %b4 = lw_graph.group "tanh" in branch 1 of 0 (%{{[a-z0-9]*}} = %b3 : tensor<1x64xf32>)
  // CHECK: %b5 = lw_graph.group "tanh" in branch 1 of 0 (%{{[a-z0-9]*}} = %b4 : tensor<1x64xf32>)
  // CHECK: %b6 = lw_graph.group "tanh" in branch 1 of 0 (%{{[a-z0-9]*}} = %b5 : tensor<1x64xf32>)
  // CHECK: %b7 = lw_graph.group "tanh" in branch 1 of 0 (%{{[a-z0-9]*}} = %b6 : tensor<1x64xf32>)
  // CHECK: %b8 = lw_graph.group "tanh" in branch 1 of 0 (%{{[a-z0-9]*}} = %b7 : tensor<1x64xf32>)
  // CHECK: lw_graph.group "add_softmax" (
  %a1 = lw_graph.group "tanh" (%p = %a0 : tensor<1x64xf32>) -> tensor<1x64xf32> {
    %y = lw_graph.apply "tanh" (%p) : (tensor<1x64xf32>) -> tensor<1x64xf32>
    lw_graph.yield %y : tensor<1x64xf32>
  }
  %b1 = lw_graph.group "tanh" (%p = %b0 : tensor<1x64xf32>) -> tensor<1x64xf32> {
    %y = lw_graph.apply "tanh" (%p) : (tensor<1x64xf32>) -> tensor<1x64xf32>
    lw_graph.yield %y : tensor<1x64xf32>
  }
  %a2 = lw_graph.group "tanh" (%p = %a1 : tensor<1x64xf32>) -> tensor<1x64xf32> {
    %y = lw_graph.apply "tanh" (%p) : (tensor<1x64xf32>) -> tensor<1x64xf32>
    lw_graph.yield %y : tensor<1x64xf32>
  }
  %b2 = lw_graph.group "tanh" (%p = %b1 : tensor<1x64xf32>) -> tensor<1x64xf32> {
    %y = lw_graph.apply "tanh" (%p) : (tensor<1x64xf32>) -> tensor<1x64xf32>
    lw_graph.yield %y : tensor<1x64xf32>
  }
  %a3 = lw_graph.group "tanh" (%p = %a2 : tensor<1x64xf32>) -> tensor<1x64xf32> {
    %y = lw_graph.apply "tanh" (%p) : (tensor<1x64xf32>) -> tensor<1x64xf32>
    lw_graph.yield %y : tensor<1x64xf32>
  }
  %b3 = lw_graph.group "tanh" (%p = %b2 : tensor<1x64xf32>) -> tensor<1x64xf32> {
    %y = lw_graph.apply "tanh" (%p) : (tensor<1x64xf32>) -> tensor<1x64xf32>
    lw_graph.yield %y : tensor<1x64xf32>
  }
  %a4 = lw_graph.group "tanh" (%p = %a3 : tensor<1x64xf32>) -> tensor<1x64xf32> {
    %y = lw_graph.apply "tanh" (%p) : (tensor<1x64xf32>) -> tensor<1x64xf32>
    lw_graph.yield %y : tensor<1x64xf32>
  }
  %b4 = lw_graph.group "tanh" (%p = %b3 : tensor<1x64xf32>) -> tensor<1x64xf32> {
    %y = lw_graph.apply "tanh" (%p) : (tensor<1x64xf32>) -> tensor<1x64xf32>
    lw_graph.yield %y : tensor<1x64xf32>
  }
  %a5 = lw_graph.group "tanh" (%p = %a4 : tensor<1x64xf32>) -> tensor<1x64xf32> {
    %y = lw_graph.apply "tanh" (%p) : (tensor<1x64xf32>) -> tensor<1x64xf32>
    lw_graph.yield %y : tensor<1x64xf32>
  }
  %b5 = lw_graph.group "tanh" (%p = %b4 : tensor<1x64xf32>) -> tensor<1x64xf32> {
    %y = lw_graph.apply "tanh" (%p) : (tensor<1x64xf32>) -> tensor<1x64xf32>
    lw_graph.yield %y : tensor<1x64xf32>
  }
  %a6 = lw_graph.group "tanh" (%p = %a5 : tensor<1x64xf32>) -> tensor<1x64xf32> {
    %y = lw_graph.apply "tanh" (%p) : (tensor<1x64xf32>) -> tensor<1x64xf32>
    lw_graph.yield %y : tensor<1x64xf32>
  }
  %b6 = lw_graph.group "tanh" (%p = %b5 : tensor<1x64xf32>) -> tensor<1x64xf32> {
    %y = lw_graph.apply "tanh" (%p) : (tensor<1x64xf32>) -> tensor<1x64xf32>
    lw_graph.yield %y : tensor<1x64xf32>
  }
  %a7 = lw_graph.group "tanh" (%p = %a6 : tensor<1x64xf32>) -> tensor<1x64xf32> {
    %y = lw_graph.apply "tanh" (%p) : (tensor<1x64xf32>) -> tensor<1x64xf32>
    lw_graph.yield %y : tensor<1x64xf32>
  }
  %b7 = lw_graph.group "tanh" (%p = %b6 : tensor<1x64xf32>) -> tensor<1x64xf32> {
    %y = lw_graph.apply "tanh" (%p) : (tensor<1x64xf32>) -> tensor<1x64xf32>
    lw_graph.yield %y : tensor<1x64xf32>
  }
  %a8 = lw_graph.group "tanh" (%p = %a7 : tensor<1x64xf32>) -> tensor<1x64xf32> {
    %y = lw_graph.apply "tanh" (%p) : (tensor<1x64xf32>) -> tensor<1x64xf32>
    lw_graph.yield %y : tensor<1x64xf32>
  }
  %b8 = lw_graph.group "tanh" (%p = %b7 : tensor<1x64xf32>) -> tensor<1x64xf32> {
    %y = lw_graph.apply "tanh" (%p) : (tensor<1x64xf32>) -> tensor<1x64xf32>
    lw_graph.yield %y : tensor<1x64xf32>
  }
  %c = lw_graph.group "add_softmax" (%p = %a8 : tensor<1x64xf32>, %q = %b8 : tensor<1x64xf32>) -> tensor<1x64xf32> {
    %x = lw_graph.apply "add" (%p, %q) : (tensor<1x64xf32>, tensor<1x64xf32>) -> tensor<1x64xf32>
    %y = lw_graph.apply "softmax" (%x) <axis = 1> : (tensor<1x64xf32>) -> tensor<1x64xf32>
    lw_graph.yield %y : tensor<1x64xf32>
  }
  func.return %c : tensor<1x64xf32>
}

// One chain of a batch: its first two rows are a branch, the others another one, joined where all are read.
// CHECK-LABEL: func.func @rows
func.func @rows(%a0: tensor<4x64xf32>) -> tensor<4x64xf32> {
  %w = lw_graph.constant "weight" : tensor<64x64xf32>
  // CHECK: %[[one:[a-z_0-9]*]] = lw_graph.apply "part" (%a0) <shape = [2, 64], start = 0>
  // CHECK-NEXT: %[[two:[a-z_0-9]*]] = lw_graph.apply "part" (%a0) <shape = [2, 64], start = 128>
  // CHECK-NEXT: lw_graph.group "dense" in branch 0 of 0 (%{{[a-z0-9]*}} = %[[one]] : tensor<2x64xf32>
  // CHECK: %[[first:[a-z_0-9]*]] = lw_graph.group "tanh" in branch 0 of 0 (%{{[a-z0-9]*}} = %b7 : tensor<2x64xf32>)
  // CHECK: lw_graph.group "dense" in branch 1 of 0 (%{{[a-z0-9]*}} = %[[two]] : tensor<2x64xf32>
  // CHECK: %[[second:[a-z_0-9]*]] = lw_graph.group "tanh" in branch 1 of 0 (%{{[a-z0-9]*}} = %b7_1 : tensor<2x64xf32>)
  // CHECK: lw_graph.apply "joined" (%[[first]], %[[second]]) <shape = [4, 64]>
  %b0 = lw_graph.group "dense" (%p = %a0 : tensor<4x64xf32>, %q = %w : tensor<64x64xf32>) -> tensor<4x64xf32> {
    %y = lw_graph.apply "dense" (%p, %q) : (tensor<4x64xf32>, tensor<64x64xf32>) -> tensor<4x64xf32>
    lw_graph.yield %y : tensor<4x64xf32>
  }
  %b1 = lw_graph.group "tanh" (%p = %b0 : tensor<4x64xf32>) -> tensor<4x64xf32> {
    %y = lw_graph.apply "tanh" (%p) : (tensor<4x64xf32>) -> tensor<4x64xf32>
    lw_graph.yield %y : tensor<4x64xf32>
  }
  %b2 = lw_graph.group "tanh" (%p = %b1 : tensor<4x64xf32>) -> tensor<4x64xf32> {
    %y = lw_graph.apply "tanh" (%p) : (tensor<4x64xf32>) -> tensor<4x64xf32>
    lw_graph.yield %y : tensor<4x64xf32>
  }
  %b3 = lw_graph.group "tanh" (%p = %b2 : tensor<4x64xf32>) -> tensor<4x64xf32> {
    %y = lw_graph.apply "tanh" (%p) : (tensor<4x64xf32>) -> tensor<4x64xf32>
    lw_graph.yield %y : tensor<4x64xf32>
  }
  %b4 = lw_graph.group "tanh" (%p = %b3 : tensor<4x64xf32>) -> tensor<4x64xf32> {
    %y = lw_graph.apply "tanh" (%p) : (tensor<4x64xf32>) -> tensor<4x64xf32>
    lw_graph.yield %y : tensor<4x64xf32>
  }
  %b5 = lw_graph.group "tanh" (%p = %b4 : tensor<4x64xf32>) -> tensor<4x64xf32> {
    %y = lw_graph.apply "tanh" (%p) : (tensor<4x64xf32>) -> tensor<4x64xf32>
    lw_graph.yield %y : tensor<4x64xf32>
  }
  %b6 = lw_graph.group "tanh" (%p = %b5 : tensor<4x64xf32>) -> tensor<4x64xf32> {
    %y = lw_graph.apply "tanh" (%p) : (tensor<4x64xf32>) -> tensor<4x64xf32>
    lw_graph.yield %y : tensor<4x64xf32>
  }
  %b7 = lw_graph.group "tanh" (%p = %b6 : tensor<4x64xf32>) -> tensor<4x64xf32> {
    %y = lw_graph.apply "tanh" (%p) : (tensor<4x64xf32>) -> tensor<4x64xf32>
    lw_graph.yield %y : tensor<4x64xf32>
  }
  %b8 = lw_graph.group "tanh" (%p = %b7 : tensor<4x64xf32>) -> tensor<4x64xf32> {
    %y = lw_graph.apply "tanh" (%p) : (tensor<4x64xf32>) -> tensor<4x64xf32>
    lw_graph.yield %y : tensor<4x64xf32>
  }
  func.return %b8 : tensor<4x64xf32>
}

// Chains that read each other are one.
// CHECK-LABEL: func.func @meeting
func.func @meeting(%a0: tensor<1x64xf32>, %b0: tensor<1x64xf32>) -> (tensor<1x64xf32>, tensor<1x64xf32>) {
  // CHECK-NOT: in branch
  %a1 = lw_graph.group "tanh" (%p = %b0 : tensor<1x64xf32>) -> tensor<1x64xf32> {
    %y = lw_graph.apply "tanh" (%p) : (tensor<1x64xf32>) -> tensor<1x64xf32>
    lw_graph.yield %y : tensor<1x64xf32>
  }
  %b1 = lw_graph.group "tanh" (%p = %a1 : tensor<1x64xf32>) -> tensor<1x64xf32> {
    %y = lw_graph.apply "tanh" (%p) : (tensor<1x64xf32>) -> tensor<1x64xf32>
    lw_graph.yield %y : tensor<1x64xf32>
  }
  %a2 = lw_graph.group "tanh" (%p = %b1 : tensor<1x64xf32>) -> tensor<1x64xf32> {
    %y = lw_graph.apply "tanh" (%p) : (tensor<1x64xf32>) -> tensor<1x64xf32>
    lw_graph.yield %y : tensor<1x64xf32>
  }
  %b2 = lw_graph.group "tanh" (%p = %a2 : tensor<1x64xf32>) -> tensor<1x64xf32> {
    %y = lw_graph.apply "tanh" (%p) : (tensor<1x64xf32>) -> tensor<1x64xf32>
    lw_graph.yield %y : tensor<1x64xf32>
  }
  %a3 = lw_graph.group "tanh" (%p = %b2 : tensor<1x64xf32>) -> tensor<1x64xf32> {
    %y = lw_graph.apply "tanh" (%p) : (tensor<1x64xf32>) -> tensor<1x64xf32>
    lw_graph.yield %y : tensor<1x64xf32>
  }
  %b3 = lw_graph.group "tanh" (%p = %a3 : tensor<1x64xf32>) -> tensor<1x64xf32> {
    %y = lw_graph.apply "tanh" (%p) : (tensor<1x64xf32>) -> tensor<1x64xf32>
    lw_graph.yield %y : tensor<1x64xf32>
  }
  %a4 = lw_graph.group "tanh" (%p = %b3 : tensor<1x64xf32>) -> tensor<1x64xf32> {
    %y = lw_graph.apply "tanh" (%p) : (tensor<1x64xf32>) -> tensor<1x64xf32>
    lw_graph.yield %y : tensor<1x64xf32>
  }
  %b4 = lw_graph.group "tanh" (%p = %a4 : tensor<1x64xf32>) -> tensor<1x64xf32> {
    %y = lw_graph.apply "tanh" (%p) : (tensor<1x64xf32>) -> tensor<1x64xf32>
    lw_graph.yield %y : tensor<1x64xf32>
  }
  %a5 = lw_graph.group "tanh" (%p = %b4 : tensor<1x64xf32>) -> tensor<1x64xf32> {
    %y = lw_graph.apply "tanh" (%p) : (tensor<1x64xf32>) -> tensor<1x64xf32>
    lw_graph.yield %y : tensor<1x64xf32>
  }
  %b5 = lw_graph.group "tanh" (%p = %a5 : tensor<1x64xf32>) -> tensor<1x64xf32> {
    %y = lw_graph.apply "tanh" (%p) : (tensor<1x64xf32>) -> tensor<1x64xf32>
    lw_graph.yield %y : tensor<1x64xf32>
  }
  %a6 = lw_graph.group "tanh" (%p = %b5 : tensor<1x64xf32>) -> tensor<1x64xf32> {
    %y = lw_graph.apply "tanh" (%p) : (tensor<1x64xf32>) -> tensor<1x64xf32>
    lw_graph.yield %y : tensor<1x64xf32>
  }
  %b6 = lw_graph.group "tanh" (%p = %a6 : tensor<1x64xf32>) -> tensor<1x64xf32> {
    %y = lw_graph.apply "tanh" (%p) : (tensor<1x64xf32>) -> tensor<1x64xf32>
    lw_graph.yield %y : tensor<1x64xf32>
  }
  %a7 = lw_graph.group "tanh" (%p = %b6 : tensor<1x64xf32>) -> tensor<1x64xf32> {
    %y = lw_graph.apply "tanh" (%p) : (tensor<1x64xf32>) -> tensor<1x64xf32>
    lw_graph.yield %y : tensor<1x64xf32>
  }
  %b7 = lw_graph.group "tanh" (%p = %a7 : tensor<1x64xf32>) -> tensor<1x64xf32> {
    %y = lw_graph.apply "tanh" (%p) : (tensor<1x64xf32>) -> tensor<1x64xf32>
    lw_graph.yield %y : tensor<1x64xf32>
  }
  %a8 = lw_graph.group "tanh" (%p = %b7 : tensor<1x64xf32>) -> tensor<1x64xf32> {
    %y = lw_graph.apply "tanh" (%p) : (tensor<1x64xf32>) -> tensor<1x64xf32>
    lw_graph.yield %y : tensor<1x64xf32>
  }
  %b8 = lw_graph.group "tanh" (%p = %a8 : tensor<1x64xf32>) -> tensor<1x64xf32> {
    %y = lw_graph.apply "tanh" (%p) : (tensor<1x64xf32>) -> tensor<1x64xf32>
    lw_graph.yield %y : tensor<1x64xf32>
  }
  func.return %a8, %b8 : tensor<1x64xf32>, tensor<1x64xf32>
}
