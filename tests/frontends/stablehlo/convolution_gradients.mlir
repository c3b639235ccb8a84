module @jit_convolution_gradients attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2x4x8x8xf32>, %arg1: tensor<4x2x3x3xf32>) -> (tensor<2x4x8x8xf32> {jax.result_info = "result[0]"}, tensor<4x2x3x3xf32> {jax.result_info = "result[1]"}, tensor<4x2x3x3xf32> {jax.result_info = "result[2]"}, tensor<2x4x14x23xf32> {jax.result_info = "result[3]"}, tensor<2x4x8x8xf32> {jax.result_info = "result[4]"}) {
    %0 = stablehlo.slice %arg1 [0:4, 0:1, 0:3, 0:3] : (tensor<4x2x3x3xf32>) -> tensor<4x1x3x3xf32>
    %1 = stablehlo.convolution(%arg0, %0) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {stride = [1, 1], pad = [[1, 2], [0, 3]], lhs_dilate = [2, 3], rhs_dilate = [2, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 4 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<2x4x8x8xf32>, tensor<4x1x3x3xf32>) -> tensor<2x4x14x23xf32>
    %2 = stablehlo.convolution(%arg0, %arg1) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {stride = [2, 1], pad = [[0, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 2 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<2x4x8x8xf32>, tensor<4x2x3x3xf32>) -> tensor<2x4x4x8xf32>
    %cst = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %3 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2x4x4x8xf32>
    %4 = stablehlo.multiply %3, %2 : tensor<2x4x4x8xf32>
    %cst_0 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %5 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<2x4x4x8xf32>
    %6 = stablehlo.multiply %5, %4 : tensor<2x4x4x8xf32>
    %7 = stablehlo.convolution(%arg0, %6) dim_numbers = [f, b, 0, 1]x[i, o, 0, 1]->[f, b, 0, 1], window = {stride = [1, 1], pad = [[0, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [2, 1], reverse = [false, false]} {batch_group_count = 2 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<2x4x8x8xf32>, tensor<2x4x4x8xf32>) -> tensor<4x2x3x3xf32>
    %8 = stablehlo.reshape %arg1 : (tensor<4x2x3x3xf32>) -> tensor<2x2x2x3x3xf32>
    %9 = stablehlo.transpose %8, dims = [1, 0, 2, 3, 4] : (tensor<2x2x2x3x3xf32>) -> tensor<2x2x2x3x3xf32>
    %10 = stablehlo.reshape %9 : (tensor<2x2x2x3x3xf32>) -> tensor<2x4x3x3xf32>
    %11 = stablehlo.reverse %10, dims = [2, 3] : tensor<2x4x3x3xf32>
    %12 = stablehlo.convolution(%6, %11) dim_numbers = [b, f, 0, 1]x[i, o, 0, 1]->[b, f, 0, 1], window = {stride = [1, 1], pad = [[2, 1], [1, 1]], lhs_dilate = [2, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 2 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<2x4x4x8xf32>, tensor<2x4x3x3xf32>) -> tensor<2x4x8x8xf32>
    %13 = stablehlo.slice %arg0 [0:2, 0:2, 0:8, 0:8] : (tensor<2x4x8x8xf32>) -> tensor<2x2x8x8xf32>
    %14 = stablehlo.convolution(%13, %arg1) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 2 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<2x2x8x8xf32>, tensor<4x2x3x3xf32>) -> tensor<1x4x8x8xf32>
    %cst_1 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %15 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<1x4x8x8xf32>
    %16 = stablehlo.multiply %15, %14 : tensor<1x4x8x8xf32>
    %cst_2 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %17 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<1x4x8x8xf32>
    %18 = stablehlo.multiply %17, %16 : tensor<1x4x8x8xf32>
    %19 = stablehlo.convolution(%13, %18) dim_numbers = [f, b, 0, 1]x[i, o, 0, 1]->[f, b, 0, 1], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 2 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<2x2x8x8xf32>, tensor<1x4x8x8xf32>) -> tensor<4x2x3x3xf32>
    %20 = stablehlo.slice %arg0 [0:2, 0:2, 0:8, 0:8] : (tensor<2x4x8x8xf32>) -> tensor<2x2x8x8xf32>
    %21 = stablehlo.reverse %arg1, dims = [2] : tensor<4x2x3x3xf32>
    %22 = stablehlo.convolution(%20, %21) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<2x2x8x8xf32>, tensor<4x2x3x3xf32>) -> tensor<2x4x8x8xf32>
    return %12, %7, %19, %1, %22 : tensor<2x4x8x8xf32>, tensor<4x2x3x3xf32>, tensor<4x2x3x3xf32>, tensor<2x4x14x23xf32>, tensor<2x4x8x8xf32>
  }
}
