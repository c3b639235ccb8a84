// RUN: xdsl-opt %s -p 'lw-graph-join-products{cores=132},dce' | filecheck %s

// CHECK-LABEL: func.func @three
func.func @three(%x: tensor<32x16xf16>) -> (tensor<32x16xf16>, tensor<32x16xf16>) {
  // CHECK-NEXT: %v = lw_graph.constant "v" : tensor<16x16xf16>
  // CHECK-NEXT: %w = lw_graph.constant "w" : tensor<16x16xf16>
  // CHECK-NEXT: %[[W:.*]] = lw_graph.apply "concatenate" (%v, %w) : {{.*}} -> tensor<32x16xf16>
  // CHECK-NEXT: %[[P:.*]] = lw_graph.apply "dense" (%x, %[[W]])
  // CHECK: lw_graph.apply "transpose" (%{{.*}}) <axes = [1, 0, 2]> : (tensor<32x2x16xf16>) -> tensor<2x32x16xf16>
  // CHECK: lw_graph.apply "strided_slice" (%{{.*}}) <axes = [0], begin = [0], end = [1], strides = [1]>
  // CHECK: lw_graph.apply "strided_slice" (%{{.*}}) <axes = [0], begin = [1], end = [2], strides = [1]>
  %v = lw_graph.constant "v" : tensor<16x16xf16>
  %a = lw_graph.apply "dense" (%x, %v) : (tensor<32x16xf16>, tensor<16x16xf16>) -> tensor<32x16xf16>
  %w = lw_graph.constant "w" : tensor<16x16xf16>
  %b = lw_graph.apply "dense" (%x, %w) : (tensor<32x16xf16>, tensor<16x16xf16>) -> tensor<32x16xf16>
  func.return %a, %b : tensor<32x16xf16>, tensor<32x16xf16>
}

// CHECK-LABEL: func.func @single
func.func @single(%x: tensor<32x16xf32>) -> (tensor<32x16xf32>, tensor<32x16xf32>) {
  // CHECK: %[[W:.*]] = lw_graph.apply "concatenate" (%v, %w) : {{.*}} -> tensor<32x16xf32>
  // CHECK-NEXT: %[[T:.*]] = lw_graph.apply "transpose" (%[[W]]) <axes = [1, 0]>
  // CHECK-NEXT: %[[V:.*]] = lw_graph.apply "reshape" (%[[T]]) <shape = [16, 2, 16]>
  // CHECK-NEXT: %[[P:.*]] = lw_graph.apply "einsum" (%x, %[[V]]) <equation = "mk,kpn->pmn">
  // CHECK-NEXT: lw_graph.apply "strided_slice" (%[[P]]) <axes = [0], begin = [0], end = [1], strides = [1]>
  // CHECK: lw_graph.apply "strided_slice" (%[[P]]) <axes = [0], begin = [1], end = [2], strides = [1]>
  %v = lw_graph.constant "v" : tensor<16x16xf32>
  %w = lw_graph.constant "w" : tensor<16x16xf32>
  %a = lw_graph.apply "dense" (%x, %v) : (tensor<32x16xf32>, tensor<16x16xf32>) -> tensor<32x16xf32>
  %b = lw_graph.apply "dense" (%x, %w) : (tensor<32x16xf32>, tensor<16x16xf32>) -> tensor<32x16xf32>
  func.return %a, %b : tensor<32x16xf32>, tensor<32x16xf32>
}

// CHECK-LABEL: func.func @token
func.func @token(%x: tensor<1x16xf32>) -> (tensor<256x1xf32>, tensor<64x1xf32>) {
  // CHECK: %[[W:.*]] = lw_graph.apply "concatenate" (%v, %w) : {{.*}} -> tensor<320x16xf32>
  // CHECK-NEXT: %[[P:.*]] = lw_graph.apply "dense" (%x, %[[W]])
  // CHECK-NEXT: lw_graph.apply "strided_slice" (%[[P]]) <axes = [1], begin = [0], end = [256], strides = [1]>
  // CHECK: lw_graph.apply "strided_slice" (%[[P]]) <axes = [1], begin = [256], end = [320], strides = [1]>
  %v = lw_graph.constant "v" : tensor<256x16xf32>
  %w = lw_graph.constant "w" : tensor<64x16xf32>
  %a = lw_graph.apply "dense" (%x, %v) : (tensor<1x16xf32>, tensor<256x16xf32>) -> tensor<1x256xf32>
  %c = lw_graph.apply "transpose" (%a) : (tensor<1x256xf32>) -> tensor<256x1xf32>
  %b = lw_graph.apply "dense" (%x, %w) : (tensor<1x16xf32>, tensor<64x16xf32>) -> tensor<1x64xf32>
  %d = lw_graph.apply "transpose" (%b) : (tensor<1x64xf32>) -> tensor<64x1xf32>
  func.return %c, %d : tensor<256x1xf32>, tensor<64x1xf32>
}
