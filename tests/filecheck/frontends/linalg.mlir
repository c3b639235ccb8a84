// RUN: xdsl-opt %s -p 'lw-convert-linalg-to-graph' | filecheck %s
// RUN: xdsl-opt %s -p 'lw-convert-linalg-to-graph,lw-graph-simplify,dce,lw-graph-fuse' | filecheck %s --check-prefix=FUSED

#map = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d1)>

// CHECK-LABEL: func.func @layer
// CHECK: %[[p:[a-z_0-9]*]] = lw_graph.apply "matmul" (%x, %w)
// CHECK-NEXT: %[[b:[a-z_0-9]*]] = lw_graph.apply "reshape" (%b) <shape = [1, 8]>
// CHECK-NEXT: %[[s:[a-z_0-9]*]] = lw_graph.apply "add" (%[[p]], %[[b]])
// CHECK-NEXT: lw_graph.apply "maximum" (%[[s]], %{{.*}}) : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
// FUSED: lw_graph.group "matmul_add_maximum"
func.func @layer(%x: tensor<4x16xf32>, %w: tensor<16x8xf32>, %b: tensor<8xf32>) -> tensor<4x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x8xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<4x8xf32>) -> tensor<4x8xf32>
  %p = linalg.matmul ins(%x, %w : tensor<4x16xf32>, tensor<16x8xf32>) outs(%i : tensor<4x8xf32>) -> tensor<4x8xf32>
  %y = linalg.generic {indexing_maps = [#map, #row, #map], iterator_types = ["parallel", "parallel"]} ins(%p, %b : tensor<4x8xf32>, tensor<8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%in: f32, %bias: f32, %out: f32):
    %s = arith.addf %in, %bias : f32
    %m = arith.maximumf %s, %zero : f32
    linalg.yield %m : f32
  } -> tensor<4x8xf32>
  func.return %y : tensor<4x8xf32>
}

// What is reduced before the sum is one line of it; two axes of one operand are no matrix product.
// CHECK-LABEL: func.func @window_sums
// CHECK: lw_graph.apply "reduce_formula" (%x, %w) <combiner = ["add"], lines = ["add i0 k0", "read:0 t0", "exp t1"], reduced = [3], shape = [6], values = ["t2"]>
func.func @window_sums(%x: tensor<8xf32>, %w: tensor<3xf32>) -> tensor<6xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<6xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<6xf32>) -> tensor<6xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, k) -> (i + k)>, affine_map<(i, k) -> (k)>, affine_map<(i, k) -> (i)>], iterator_types = ["parallel", "reduction"]} ins(%x, %w : tensor<8xf32>, tensor<3xf32>) outs(%i : tensor<6xf32>) {
  ^bb0(%in: f32, %unused: f32, %out: f32):
    %v = math.exp %in : f32
    %s = arith.addf %out, %v : f32
    linalg.yield %s : f32
  } -> tensor<6xf32>
  func.return %y : tensor<6xf32>
}

// Functions on buffers, and without linalg, stay as they are.
// CHECK-LABEL: func.func @of_others
// CHECK-NEXT: memref.load
// CHECK-LABEL: func.func @on_buffers
// CHECK-NEXT: linalg.fill
func.func @of_others(%m: memref<4xf32>, %i: index) -> f32 {
  %v = memref.load %m[%i] : memref<4xf32>
  func.return %v : f32
}
func.func @on_buffers(%m: memref<4xf32>, %v: f32) {
  linalg.fill ins(%v : f32) outs(%m : memref<4xf32>)
  func.return
}
