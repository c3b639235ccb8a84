func.func @named(%x: tensor<3x4xf32>, %y: tensor<3x4xf32>) -> (tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>) {
  %e = tensor.empty() : tensor<3x4xf32>
  %0 = linalg.add ins(%x, %y : tensor<3x4xf32>, tensor<3x4xf32>) outs(%e : tensor<3x4xf32>) -> tensor<3x4xf32>
  %1 = linalg.exp ins(%0 : tensor<3x4xf32>) outs(%e : tensor<3x4xf32>) -> tensor<3x4xf32>
  %2 = linalg.map { arith.mulf } ins(%1, %y : tensor<3x4xf32>, tensor<3x4xf32>) outs(%e : tensor<3x4xf32>)
  %3 = linalg.map ins(%x : tensor<3x4xf32>) outs(%e : tensor<3x4xf32>) (%in: f32) {
    %5 = math.absf %in : f32
    linalg.yield %5 : f32
  }
  %4 = linalg.elementwise kind=#linalg.elementwise_kind<max_signed> ins(%3, %y : tensor<3x4xf32>, tensor<3x4xf32>) outs(%e : tensor<3x4xf32>) -> tensor<3x4xf32>
  return %1, %2, %4 : tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>
}
