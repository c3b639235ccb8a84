func.func @moves(%x: tensor<2x3x4xf32>, %i: tensor<2x2xi32>) -> (tensor<4x2x3xf32>, tensor<2x4x6xf32>, tensor<1x2x4xf32>, tensor<2x2x4xf32>, tensor<4x3x4xf32>, tensor<2x3x4xf32>, tensor<2x3x4xi32>) {
  %0 = tosa.transpose %x {perms = array<i32: 2, 0, 1>} : (tensor<2x3x4xf32>) -> tensor<4x2x3xf32>
  %p = tosa.const_shape {values = dense<[0, 0, 1, 0, 0, 2]> : tensor<6xindex>} : () -> !tosa.shape<6>
  %v = "tosa.const"() <{values = dense<2.5> : tensor<1xf32>}> : () -> tensor<1xf32>
  %1 = tosa.pad %x, %p, %v : (tensor<2x3x4xf32>, !tosa.shape<6>, tensor<1xf32>) -> tensor<2x4x6xf32>
  %b = tosa.const_shape {values = dense<[1, 0, 0]> : tensor<3xindex>} : () -> !tosa.shape<3>
  %s = tosa.const_shape {values = dense<[1, 2, 4]> : tensor<3xindex>} : () -> !tosa.shape<3>
  %2 = tosa.slice %x, %b, %s : (tensor<2x3x4xf32>, !tosa.shape<3>, !tosa.shape<3>) -> tensor<1x2x4xf32>
  %3 = tosa.gather %x, %i : (tensor<2x3x4xf32>, tensor<2x2xi32>) -> tensor<2x2x4xf32>
  %4 = tosa.concat %x, %x {axis = 0 : i32} : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<4x3x4xf32>
  %5 = tosa.reverse %x {axis = 2 : i32} : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %6 = tosa.cast %x : (tensor<2x3x4xf32>) -> tensor<2x3x4xi32>
  return %0, %1, %2, %3, %4, %5, %6 : tensor<4x2x3xf32>, tensor<2x4x6xf32>, tensor<1x2x4xf32>, tensor<2x2x4xf32>, tensor<4x3x4xf32>, tensor<2x3x4xf32>, tensor<2x3x4xi32>
}
