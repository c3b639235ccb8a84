module @jit_gradients attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2x4x6x6xf32>, %arg1: tensor<5x4x3x3xf32>) -> (tensor<5x4x3x3xf32> {jax.result_info = "result"}) {
    %0 = stablehlo.convolution(%arg0, %arg1) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<2x4x6x6xf32>, tensor<5x4x3x3xf32>) -> tensor<2x5x6x6xf32>
    %1 = call @relu(%0) : (tensor<2x5x6x6xf32>) -> tensor<2x5x6x6xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %2 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2x5x6x6xf32>
    %3 = stablehlo.compare GT, %0, %2, FLOAT : (tensor<2x5x6x6xf32>, tensor<2x5x6x6xf32>) -> tensor<2x5x6x6xi1>
    %cst_0 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %4 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<2x5x6x6xf32>
    %5 = stablehlo.multiply %4, %1 : tensor<2x5x6x6xf32>
    %cst_1 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %6 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<2x5x6x6xf32>
    %7 = stablehlo.multiply %6, %5 : tensor<2x5x6x6xf32>
    %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %8 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<2x5x6x6xf32>
    %9 = stablehlo.select %3, %7, %8 : tensor<2x5x6x6xi1>, tensor<2x5x6x6xf32>
    %10 = stablehlo.convolution(%arg0, %9) dim_numbers = [f, b, 0, 1]x[i, o, 0, 1]->[f, b, 0, 1], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<2x4x6x6xf32>, tensor<2x5x6x6xf32>) -> tensor<5x4x3x3xf32>
    return %10 : tensor<5x4x3x3xf32>
  }
  func.func private @relu(%arg0: tensor<2x5x6x6xf32>) -> tensor<2x5x6x6xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2x5x6x6xf32>
    %1 = stablehlo.maximum %arg0, %0 : tensor<2x5x6x6xf32>
    return %1 : tensor<2x5x6x6xf32>
  }
}
