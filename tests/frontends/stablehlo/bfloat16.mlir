module @jit_bfloat16 attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<4x6xbf16>, %arg1: tensor<6x4xbf16>) -> (tensor<4x4xbf16> {jax.result_info = "result[0]"}, tensor<4x6xbf16> {jax.result_info = "result[1]"}, tensor<6xbf16> {jax.result_info = "result[2]"}, tensor<4x4xf32> {jax.result_info = "result[3]"}) {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4x6xbf16>, tensor<6x4xbf16>) -> tensor<4x4xbf16>
    %1 = stablehlo.multiply %arg0, %arg0 : tensor<4x6xbf16>
    %2 = stablehlo.multiply %1, %arg0 : tensor<4x6xbf16>
    %cst = stablehlo.constant dense<4.467770e-02> : tensor<bf16>
    %3 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<bf16>) -> tensor<4x6xbf16>
    %4 = stablehlo.multiply %3, %2 : tensor<4x6xbf16>
    %5 = stablehlo.add %arg0, %4 : tensor<4x6xbf16>
    %cst_0 = stablehlo.constant dense<7.968750e-01> : tensor<bf16>
    %6 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<bf16>) -> tensor<4x6xbf16>
    %7 = stablehlo.multiply %6, %5 : tensor<4x6xbf16>
    %8 = stablehlo.tanh %7 : tensor<4x6xbf16>
    %cst_1 = stablehlo.constant dense<1.000000e+00> : tensor<bf16>
    %9 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<bf16>) -> tensor<4x6xbf16>
    %10 = stablehlo.add %9, %8 : tensor<4x6xbf16>
    %cst_2 = stablehlo.constant dense<5.000000e-01> : tensor<bf16>
    %11 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<bf16>) -> tensor<4x6xbf16>
    %12 = stablehlo.multiply %11, %10 : tensor<4x6xbf16>
    %13 = stablehlo.multiply %arg0, %12 : tensor<4x6xbf16>
    %14 = stablehlo.convert %arg0 : (tensor<4x6xbf16>) -> tensor<4x6xf32>
    %cst_3 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %15 = stablehlo.reduce(%14 init: %cst_3) applies stablehlo.add across dimensions = [0] : (tensor<4x6xf32>, tensor<f32>) -> tensor<6xf32>
    %16 = stablehlo.convert %15 : (tensor<6xf32>) -> tensor<6xbf16>
    %17 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4x6xbf16>, tensor<6x4xbf16>) -> tensor<4x4xf32>
    return %0, %13, %16, %17 : tensor<4x4xbf16>, tensor<4x6xbf16>, tensor<6xbf16>, tensor<4x4xf32>
  }
}
