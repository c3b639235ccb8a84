module @jit_half attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<4x6xf16>, %arg1: tensor<6x4xf16>) -> (tensor<4x4xf16> {jax.result_info = "result[0]"}, tensor<4x6xf16> {jax.result_info = "result[1]"}, tensor<6xf16> {jax.result_info = "result[2]"}, tensor<4x6xf16> {jax.result_info = "result[3]"}) {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4x6xf16>, tensor<6x4xf16>) -> tensor<4x4xf16>
    %cst = stablehlo.constant dense<0xFC00> : tensor<f16>
    %1 = stablehlo.reduce(%arg0 init: %cst) applies stablehlo.maximum across dimensions = [1] : (tensor<4x6xf16>, tensor<f16>) -> tensor<4xf16>
    %cst_0 = stablehlo.constant dense<0xFC00> : tensor<f16>
    %2 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f16>) -> tensor<4xf16>
    %3 = stablehlo.maximum %2, %1 : tensor<4xf16>
    %4 = stablehlo.broadcast_in_dim %3, dims = [0] : (tensor<4xf16>) -> tensor<4x1xf16>
    %5 = stablehlo.broadcast_in_dim %4, dims = [0, 1] : (tensor<4x1xf16>) -> tensor<4x6xf16>
    %6 = stablehlo.subtract %arg0, %5 : tensor<4x6xf16>
    %7 = stablehlo.exponential %6 : tensor<4x6xf16>
    %8 = stablehlo.convert %7 : (tensor<4x6xf16>) -> tensor<4x6xf32>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %9 = stablehlo.reduce(%8 init: %cst_1) applies stablehlo.add across dimensions = [1] : (tensor<4x6xf32>, tensor<f32>) -> tensor<4xf32>
    %10 = stablehlo.broadcast_in_dim %9, dims = [0] : (tensor<4xf32>) -> tensor<4x1xf32>
    %11 = stablehlo.convert %10 : (tensor<4x1xf32>) -> tensor<4x1xf16>
    %12 = stablehlo.broadcast_in_dim %11, dims = [0, 1] : (tensor<4x1xf16>) -> tensor<4x6xf16>
    %13 = stablehlo.divide %7, %12 : tensor<4x6xf16>
    %14 = stablehlo.convert %arg0 : (tensor<4x6xf16>) -> tensor<4x6xf32>
    %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %15 = stablehlo.reduce(%14 init: %cst_2) applies stablehlo.add across dimensions = [0] : (tensor<4x6xf32>, tensor<f32>) -> tensor<6xf32>
    %16 = stablehlo.convert %15 : (tensor<6xf32>) -> tensor<6xf16>
    %17 = stablehlo.tanh %arg0 : tensor<4x6xf16>
    return %0, %13, %16, %17 : tensor<4x4xf16>, tensor<4x6xf16>, tensor<6xf16>, tensor<4x6xf16>
  }
}
