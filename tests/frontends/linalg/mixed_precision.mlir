func.func @matmul(%x: tensor<4x8xf16>, %y: tensor<8x6xf16>) -> (tensor<4x6xf32>, tensor<4x6xf16>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x6xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<4x6xf32>) -> tensor<4x6xf32>
  %r = linalg.matmul ins(%x, %y : tensor<4x8xf16>, tensor<8x6xf16>) outs(%i : tensor<4x6xf32>) -> tensor<4x6xf32>
  %h = arith.truncf %r : tensor<4x6xf32> to tensor<4x6xf16>
  return %r, %h : tensor<4x6xf32>, tensor<4x6xf16>
}
