func.func @depthwise(%x: tensor<1x8x8x4xf32>, %w: tensor<3x3x4xf32>, %v: tensor<3x3x4x2xf32>) -> (tensor<1x6x6x4xf32>, tensor<1x6x6x4x2xf32>) {
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<1x6x6x4xf32>
  %i0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<1x6x6x4xf32>) -> tensor<1x6x6x4xf32>
  %y0 = linalg.depthwise_conv_2d_nhwc_hwc {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>} ins(%x, %w : tensor<1x8x8x4xf32>, tensor<3x3x4xf32>) outs(%i0 : tensor<1x6x6x4xf32>) -> tensor<1x6x6x4xf32>
  %e1 = tensor.empty() : tensor<1x6x6x4x2xf32>
  %i1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<1x6x6x4x2xf32>) -> tensor<1x6x6x4x2xf32>
  %y1 = linalg.depthwise_conv_2d_nhwc_hwcm ins(%x, %v : tensor<1x8x8x4xf32>, tensor<3x3x4x2xf32>) outs(%i1 : tensor<1x6x6x4x2xf32>) -> tensor<1x6x6x4x2xf32>
  return %y0, %y1 : tensor<1x6x6x4xf32>, tensor<1x6x6x4x2xf32>
}
