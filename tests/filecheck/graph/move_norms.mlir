// RUN: xdsl-opt %s -p 'lw-graph-move-norms,dce' | filecheck %s

// CHECK-LABEL: func.func @scaled
func.func @scaled(%x: tensor<1x256xf16>) -> (tensor<1x64xf16>, tensor<1x32xf16>) {
  // CHECK-NOT: "rms_norm"
  // CHECK: %[[G:.*]] = lw_graph.apply "multiply" (%w, %g) : (tensor<64x256xf16>, tensor<256xf16>) -> tensor<64x256xf16>
  // CHECK-NEXT: lw_graph.apply "rms_dense" (%x, %[[G]]) <epsilon = 1.0e-06> : {{.*}} -> tensor<1x64xf16>
  // CHECK: lw_graph.apply "rms_dense" (%x, %{{.*}}) <epsilon = 1.0e-06> : {{.*}} -> tensor<1x32xf16>
  %w = lw_graph.constant "w" : tensor<64x256xf16>
  %v = lw_graph.constant "v" : tensor<32x256xf16>
  %g = lw_graph.constant "g" : tensor<256xf16>
  %n = lw_graph.apply "rms_norm" (%x) <epsilon = 1.0e-06> : (tensor<1x256xf16>) -> tensor<1x256xf16>
  %s = lw_graph.apply "multiply" (%n, %g) : (tensor<1x256xf16>, tensor<256xf16>) -> tensor<1x256xf16>
  %a = lw_graph.apply "dense" (%s, %w) : (tensor<1x256xf16>, tensor<64x256xf16>) -> tensor<1x64xf16>
  %b = lw_graph.apply "dense" (%s, %v) : (tensor<1x256xf16>, tensor<32x256xf16>) -> tensor<1x32xf16>
  func.return %a, %b : tensor<1x64xf16>, tensor<1x32xf16>
}

// CHECK-LABEL: func.func @read_elsewhere
func.func @read_elsewhere(%x: tensor<1x256xf32>) -> (tensor<1x64xf32>, tensor<1x256xf32>) {
  // CHECK: "rms_norm"
  // CHECK: "dense"
  %w = lw_graph.constant "w" : tensor<64x256xf32>
  %n = lw_graph.apply "rms_norm" (%x) : (tensor<1x256xf32>) -> tensor<1x256xf32>
  %a = lw_graph.apply "dense" (%n, %w) : (tensor<1x256xf32>, tensor<64x256xf32>) -> tensor<1x64xf32>
  func.return %a, %n : tensor<1x64xf32>, tensor<1x256xf32>
}

// CHECK-LABEL: func.func @many_rows
func.func @many_rows(%x: tensor<5x256xf32>) -> tensor<5x64xf32> {
  // CHECK: "rms_norm"
  %w = lw_graph.constant "w" : tensor<64x256xf32>
  %n = lw_graph.apply "rms_norm" (%x) : (tensor<5x256xf32>) -> tensor<5x256xf32>
  %a = lw_graph.apply "dense" (%n, %w) : (tensor<5x256xf32>, tensor<64x256xf32>) -> tensor<5x64xf32>
  func.return %a : tensor<5x64xf32>
}

// CHECK-LABEL: func.func @gated
func.func @gated(%x: tensor<1x256xf16>) -> tensor<1x64xf16> {
  // CHECK: %{{.*}}, %{{.*}} = lw_graph.apply "rms_dense" (%x, %w, %v)
  // CHECK-NEXT: lw_graph.apply "silu"
  %w = lw_graph.constant "w" : tensor<64x256xf16>
  %v = lw_graph.constant "v" : tensor<64x256xf16>
  %n = lw_graph.apply "rms_norm" (%x) : (tensor<1x256xf16>) -> tensor<1x256xf16>
  %a = lw_graph.apply "dense" (%n, %w) : (tensor<1x256xf16>, tensor<64x256xf16>) -> tensor<1x64xf16>
  %s = lw_graph.apply "silu" (%a) : (tensor<1x64xf16>) -> tensor<1x64xf16>
  %b = lw_graph.apply "dense" (%n, %v) : (tensor<1x256xf16>, tensor<64x256xf16>) -> tensor<1x64xf16>
  %m = lw_graph.apply "multiply" (%s, %b) : (tensor<1x64xf16>, tensor<1x64xf16>) -> tensor<1x64xf16>
  func.return %m : tensor<1x64xf16>
}
