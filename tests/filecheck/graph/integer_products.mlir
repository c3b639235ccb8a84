// RUN: xdsl-opt %s -p 'lw-graph-integer-products,dce' | filecheck %s
// RUN: xdsl-opt %s -p 'lw-graph-integer-products{words=uint8},dce' | filecheck %s --check-prefix=BYTES
// RUN: xdsl-opt %s -p 'lw-graph-integer-products{words=int4}' --verify-diagnostics | filecheck %s --check-prefix=REFUSED

// REFUSED: words are one of int16, uint8, int8, got 'int4'

// CHECK-LABEL: func.func @product
// BYTES-LABEL: func.func @product
func.func @product(%x: tensor<4x16xf32>, %w: tensor<8x16xi8>) -> tensor<4x8xui8> {
  %xs = lw_graph.constant "xs" = 0.25 : tensor<f32>
  %xz = lw_graph.constant "xz" = 120 : tensor<ui8>
  %k = lw_graph.constant "k" : tensor<8x16xi8>
  %ks = lw_graph.constant "ks" : tensor<8x1xf32>
  %b = lw_graph.constant "b" : tensor<8xf32>
  %ys = lw_graph.constant "ys" = 0.5 : tensor<f32>
  %yz = lw_graph.constant "yz" = 100 : tensor<ui8>
  // CHECK: %[[x:[a-z_0-9]*]] = lw_graph.apply "divide" (%x, %xs)
  // CHECK-NEXT: %[[q:[a-z_0-9]*]] = lw_graph.apply "saturate" (%[[x]]) <dtype = "int16", high = 135, low = -120>
  // BYTES: %[[x:[a-z_0-9]*]] = lw_graph.apply "divide" (%x, %xs)
  // BYTES-NEXT: %[[q:[a-z_0-9]*]] = lw_graph.apply "saturate" (%[[x]]) <high = 255, low = 0, zero = 120>
  %q = lw_graph.apply "quantize" (%x, %xs, %xz) : (tensor<4x16xf32>, tensor<f32>, tensor<ui8>) -> tensor<4x16xui8>
  %d = lw_graph.apply "dequantize" (%q, %xs, %xz) : (tensor<4x16xui8>, tensor<f32>, tensor<ui8>) -> tensor<4x16xf32>
  // CHECK-NEXT: %[[w:[a-z_0-9]*]] = lw_graph.apply "center" (%k)
  %dk = lw_graph.apply "dequantize" (%k, %ks) : (tensor<8x16xi8>, tensor<8x1xf32>) -> tensor<8x16xf32>
  // CHECK: lw_graph.apply "dense" (%[[q]], %[[w]]) : (tensor<4x16xi16>, tensor<8x16xi16>) -> tensor<4x8xi32>
  // BYTES: %[[sums:[a-z_0-9]*]] = lw_graph.apply "dense" (%[[q]], %k) : (tensor<4x16xui8>, tensor<8x16xi8>) -> tensor<4x8xi32>
  // BYTES: lw_graph.apply "sum" ({{.*}}) <axis = [1]> : (tensor<8x16xi32>) -> tensor<8xi32>
  // BYTES: lw_graph.apply "subtract" (%[[sums]], {{.*}}) : (tensor<4x8xi32>, tensor<8xi32>) -> tensor<4x8xi32>
  %p = lw_graph.apply "dense" (%d, %dk) : (tensor<4x16xf32>, tensor<8x16xf32>) -> tensor<4x8xf32>
  %s = lw_graph.apply "add" (%p, %b) : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  %r = lw_graph.apply "relu" (%s) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK-NOT: relu
  // CHECK: %[[y:[a-z_0-9]*]] = lw_graph.apply "scaled_sum" ({{.*}}) : (tensor<4x8xi32>, tensor<8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  // CHECK: lw_graph.apply "saturate" (%[[y]]) <dtype = "int16", high = 155, low = 0>
  // BYTES: lw_graph.apply "saturate" ({{.*}}) <high = 255, low = 100, zero = 100>
  %y = lw_graph.apply "quantize" (%r, %ys, %yz) : (tensor<4x8xf32>, tensor<f32>, tensor<ui8>) -> tensor<4x8xui8>
  func.return %y : tensor<4x8xui8>
}

// A scale that is not known, or another type: it stays as it is.
// CHECK-LABEL: func.func @other
func.func @other(%x: tensor<4x16xf32>, %s: tensor<f32>, %w: tensor<8x16xi32>) -> (tensor<4x16xui8>, tensor<8x16xf32>) {
  // CHECK: lw_graph.apply "quantize" (%x, %s)
  %q = lw_graph.apply "quantize" (%x, %s) : (tensor<4x16xf32>, tensor<f32>) -> tensor<4x16xui8>
  // CHECK-NEXT: lw_graph.apply "dequantize" (%w, %s)
  %d = lw_graph.apply "dequantize" (%w, %s) : (tensor<8x16xi32>, tensor<f32>) -> tensor<8x16xf32>
  func.return %q, %d : tensor<4x16xui8>, tensor<8x16xf32>
}
