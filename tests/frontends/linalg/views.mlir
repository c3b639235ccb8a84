func.func @views(%x: tensor<2x6x4xf32>, %z: tensor<1x2x4xf32>) -> (tensor<12x4xf32>, tensor<2x2x3x4xf32>, tensor<2x3x2xf32>, tensor<2x6x4xf32>, tensor<2x12x4xf32>, tensor<6x4xf32>) {
  %0 = tensor.collapse_shape %x [[0, 1], [2]] : tensor<2x6x4xf32> into tensor<12x4xf32>
  %1 = tensor.expand_shape %x [[0], [1, 2], [3]] output_shape [2, 2, 3, 4] : tensor<2x6x4xf32> into tensor<2x2x3x4xf32>
  %2 = tensor.extract_slice %x[0, 1, 0] [2, 3, 2] [1, 2, 1] : tensor<2x6x4xf32> to tensor<2x3x2xf32>
  %3 = tensor.insert_slice %z into %x[1, 2, 0] [1, 2, 4] [1, 1, 1] : tensor<1x2x4xf32> into tensor<2x6x4xf32>
  %4 = tensor.concat dim(1) %x, %x : (tensor<2x6x4xf32>, tensor<2x6x4xf32>) -> tensor<2x12x4xf32>
  %c1 = arith.constant 1 : index
  %5 = tensor.extract_slice %x[%c1, 0, 0] [1, 6, 4] [1, 1, 1] : tensor<2x6x4xf32> to tensor<6x4xf32>
  return %0, %1, %2, %3, %4, %5 : tensor<12x4xf32>, tensor<2x2x3x4xf32>, tensor<2x3x2xf32>, tensor<2x6x4xf32>, tensor<2x12x4xf32>, tensor<6x4xf32>
}
