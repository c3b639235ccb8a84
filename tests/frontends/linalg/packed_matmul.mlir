func.func @mmt4d(%x: tensor<2x3x4x1xf32>, %y: tensor<5x3x8x1xf32>, %z: tensor<2x5x4x8xf32>) -> tensor<2x5x4x8xf32> {
  %r = linalg.mmt4d ins(%x, %y : tensor<2x3x4x1xf32>, tensor<5x3x8x1xf32>) outs(%z : tensor<2x5x4x8xf32>) -> tensor<2x5x4x8xf32>
  return %r : tensor<2x5x4x8xf32>
}
