func.func @softmax(%x: tensor<2x5xf32>, %m: tensor<1x5x3xf32>) -> (tensor<2x5xf32>, tensor<1x2x3xf32>, tensor<2xi32>) {
  %0 = tosa.reduce_max %x {axis = 1 : i32} : (tensor<2x5xf32>) -> tensor<2x1xf32>
  %1 = tosa.sub %x, %0 : (tensor<2x5xf32>, tensor<2x1xf32>) -> tensor<2x5xf32>
  %2 = tosa.exp %1 : (tensor<2x5xf32>) -> tensor<2x5xf32>
  %3 = tosa.reduce_sum %2 {axis = 1 : i32} : (tensor<2x5xf32>) -> tensor<2x1xf32>
  %4 = tosa.reciprocal %3 : (tensor<2x1xf32>) -> tensor<2x1xf32>
  %shift = "tosa.const"() <{values = dense<0> : tensor<1xi8>}> : () -> tensor<1xi8>
  %5 = tosa.mul %2, %4, %shift : (tensor<2x5xf32>, tensor<2x1xf32>, tensor<1xi8>) -> tensor<2x5xf32>
  %s = tosa.const_shape {values = dense<[1, 2, 5]> : tensor<3xindex>} : () -> !tosa.shape<3>
  %6 = tosa.reshape %5, %s : (tensor<2x5xf32>, !tosa.shape<3>) -> tensor<1x2x5xf32>
  %zp = "tosa.const"() <{values = dense<0.0> : tensor<1xf32>}> : () -> tensor<1xf32>
  %7 = tosa.matmul %6, %m, %zp, %zp : (tensor<1x2x5xf32>, tensor<1x5x3xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x2x3xf32>
  %8 = tosa.argmax %5 {axis = 1 : i32} : (tensor<2x5xf32>) -> tensor<2xi32>
  return %5, %7, %8 : tensor<2x5xf32>, tensor<1x2x3xf32>, tensor<2xi32>
}
