module @jit_functions attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<5x6xf32>) -> (tensor<5x6xf32> {jax.result_info = "result[0]"}, tensor<5x6xf32> {jax.result_info = "result[1]"}, tensor<5x6xf32> {jax.result_info = "result[2]"}, tensor<5x6xf32> {jax.result_info = "result[3]"}, tensor<5x6xf32> {jax.result_info = "result[4]"}, tensor<5x6xf32> {jax.result_info = "result[5]"}, tensor<5x6xf32> {jax.result_info = "result[6]"}, tensor<5x6xf32> {jax.result_info = "result[7]"}, tensor<5x6xf32> {jax.result_info = "result[8]"}, tensor<5x6xf32> {jax.result_info = "result[9]"}, tensor<5x6xf32> {jax.result_info = "result[10]"}, tensor<5x6xf32> {jax.result_info = "result[11]"}, tensor<5x6xf32> {jax.result_info = "result[12]"}, tensor<5x6xi1> {jax.result_info = "result[13]"}, tensor<5x6xf32> {jax.result_info = "result[14]"}, tensor<5x6xf32> {jax.result_info = "result[15]"}, tensor<5x6xf32> {jax.result_info = "result[16]"}, tensor<5x6xf32> {jax.result_info = "result[17]"}, tensor<5x6xf32> {jax.result_info = "result[18]"}, tensor<5x6xf32> {jax.result_info = "result[19]"}, tensor<5x6xf32> {jax.result_info = "result[20]"}, tensor<5x6xf32> {jax.result_info = "result[21]"}, tensor<5x6xf32> {jax.result_info = "result[22]"}, tensor<5x6xf32> {jax.result_info = "result[23]"}, tensor<5x6xf32> {jax.result_info = "result[24]"}, tensor<5x6xf32> {jax.result_info = "result[25]"}, tensor<5x6xf32> {jax.result_info = "result[26]"}, tensor<5x6xf32> {jax.result_info = "result[27]"}, tensor<5x6xf32> {jax.result_info = "result[28]"}, tensor<5x6xf32> {jax.result_info = "result[29]"}, tensor<5x6xf32> {jax.result_info = "result[30]"}, tensor<5x6xf32> {jax.result_info = "result[31]"}, tensor<5x6xf32> {jax.result_info = "result[32]"}, tensor<5x6xf32> {jax.result_info = "result[33]"}) {
    %0 = stablehlo.abs %arg0 : tensor<5x6xf32>
    %1 = stablehlo.tanh %arg0 : tensor<5x6xf32>
    %2 = stablehlo.exponential %arg0 : tensor<5x6xf32>
    %3 = stablehlo.log_plus_one %0 : tensor<5x6xf32>
    %4 = stablehlo.exponential_minus_one %arg0 : tensor<5x6xf32>
    %5 = stablehlo.cbrt %arg0 : tensor<5x6xf32>
    %6 = stablehlo.slice %arg0 [0:1, 0:6] : (tensor<5x6xf32>) -> tensor<1x6xf32>
    %7 = stablehlo.broadcast_in_dim %6, dims = [0, 1] : (tensor<1x6xf32>) -> tensor<5x6xf32>
    %8 = stablehlo.atan2 %arg0, %7 : tensor<5x6xf32>
    %9 = stablehlo.rsqrt %0 : tensor<5x6xf32>
    %10 = chlo.square %arg0 : tensor<5x6xf32> -> tensor<5x6xf32>
    %11 = call @round(%arg0) : (tensor<5x6xf32>) -> tensor<5x6xf32>
    %12 = stablehlo.floor %arg0 : tensor<5x6xf32>
    %13 = stablehlo.ceil %arg0 : tensor<5x6xf32>
    %14 = call @trunc(%arg0) : (tensor<5x6xf32>) -> tensor<5x6xf32>
    %15 = stablehlo.round_nearest_afz %arg0 : tensor<5x6xf32>
    %16 = stablehlo.sign %arg0 : tensor<5x6xf32>
    %17 = stablehlo.is_finite %arg0 : (tensor<5x6xf32>) -> tensor<5x6xi1>
    %18 = chlo.sinh %arg0 : tensor<5x6xf32> -> tensor<5x6xf32>
    %19 = chlo.cosh %arg0 : tensor<5x6xf32> -> tensor<5x6xf32>
    %20 = chlo.asin %1 : tensor<5x6xf32> -> tensor<5x6xf32>
    %cst = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %21 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<5x6xf32>
    %22 = stablehlo.divide %1, %21 : tensor<5x6xf32>
    %23 = chlo.atanh %22 : tensor<5x6xf32> -> tensor<5x6xf32>
    %24 = stablehlo.tan %arg0 : tensor<5x6xf32>
    %25 = stablehlo.sine %arg0 : tensor<5x6xf32>
    %cst_0 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %26 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<5x6xf32>
    %27 = stablehlo.add %26, %0 : tensor<5x6xf32>
    %28 = call @arccosh(%27) : (tensor<5x6xf32>) -> tensor<5x6xf32>
    %29 = chlo.erf %arg0 : tensor<5x6xf32> -> tensor<5x6xf32>
    %30 = chlo.erfc %arg0 : tensor<5x6xf32> -> tensor<5x6xf32>
    %31 = chlo.erf_inv %1 : tensor<5x6xf32> -> tensor<5x6xf32>
    %32 = stablehlo.multiply %arg0, %arg0 : tensor<5x6xf32>
    %33 = stablehlo.multiply %32, %arg0 : tensor<5x6xf32>
    %34 = stablehlo.power %0, %arg0 : tensor<5x6xf32>
    %cst_1 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %35 = call @remainder(%arg0, %cst_1) : (tensor<5x6xf32>, tensor<f32>) -> tensor<5x6xf32>
    %cst_2 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %36 = call @fmod(%arg0, %cst_2) : (tensor<5x6xf32>, tensor<f32>) -> tensor<5x6xf32>
    %37 = call @softplus(%arg0) : (tensor<5x6xf32>) -> tensor<5x6xf32>
    %38 = call @silu(%arg0) : (tensor<5x6xf32>) -> tensor<5x6xf32>
    %39 = call @elu(%arg0) : (tensor<5x6xf32>) -> tensor<5x6xf32>
    %cst_3 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %40 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<5x6xf32>
    %41 = stablehlo.multiply %40, %arg0 : tensor<5x6xf32>
    %42 = stablehlo.negate %arg0 : tensor<5x6xf32>
    %cst_4 = stablehlo.constant dense<0.707106769> : tensor<f32>
    %43 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<5x6xf32>
    %44 = stablehlo.multiply %42, %43 : tensor<5x6xf32>
    %45 = chlo.erfc %44 : tensor<5x6xf32> -> tensor<5x6xf32>
    %46 = stablehlo.multiply %41, %45 : tensor<5x6xf32>
    %c = stablehlo.constant dense<-1> : tensor<i32>
    %c_5 = stablehlo.constant dense<1> : tensor<i32>
    %47 = call @clip(%arg0, %c, %c_5) : (tensor<5x6xf32>, tensor<i32>, tensor<i32>) -> tensor<5x6xf32>
    %48 = stablehlo.reduce_precision %arg0, format = e5m10 : tensor<5x6xf32>
    return %2, %3, %4, %5, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %23, %24, %25, %28, %29, %30, %31, %33, %34, %35, %36, %37, %38, %39, %46, %47, %48 : tensor<5x6xf32>, tensor<5x6xf32>, tensor<5x6xf32>, tensor<5x6xf32>, tensor<5x6xf32>, tensor<5x6xf32>, tensor<5x6xf32>, tensor<5x6xf32>, tensor<5x6xf32>, tensor<5x6xf32>, tensor<5x6xf32>, tensor<5x6xf32>, tensor<5x6xf32>, tensor<5x6xi1>, tensor<5x6xf32>, tensor<5x6xf32>, tensor<5x6xf32>, tensor<5x6xf32>, tensor<5x6xf32>, tensor<5x6xf32>, tensor<5x6xf32>, tensor<5x6xf32>, tensor<5x6xf32>, tensor<5x6xf32>, tensor<5x6xf32>, tensor<5x6xf32>, tensor<5x6xf32>, tensor<5x6xf32>, tensor<5x6xf32>, tensor<5x6xf32>, tensor<5x6xf32>, tensor<5x6xf32>, tensor<5x6xf32>, tensor<5x6xf32>
  }
  func.func private @round(%arg0: tensor<5x6xf32>) -> tensor<5x6xf32> {
    %0 = stablehlo.round_nearest_even %arg0 : tensor<5x6xf32>
    return %0 : tensor<5x6xf32>
  }
  func.func private @trunc(%arg0: tensor<5x6xf32>) -> tensor<5x6xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<5x6xf32>
    %1 = stablehlo.compare LT, %arg0, %0, FLOAT : (tensor<5x6xf32>, tensor<5x6xf32>) -> tensor<5x6xi1>
    %2 = stablehlo.ceil %arg0 : tensor<5x6xf32>
    %3 = stablehlo.floor %arg0 : tensor<5x6xf32>
    %4 = call @_where(%1, %2, %3) : (tensor<5x6xi1>, tensor<5x6xf32>, tensor<5x6xf32>) -> tensor<5x6xf32>
    return %4 : tensor<5x6xf32>
  }
  func.func private @_where(%arg0: tensor<5x6xi1>, %arg1: tensor<5x6xf32>, %arg2: tensor<5x6xf32>) -> tensor<5x6xf32> {
    %0 = stablehlo.select %arg0, %arg1, %arg2 : tensor<5x6xi1>, tensor<5x6xf32>
    return %0 : tensor<5x6xf32>
  }
  func.func private @arccosh(%arg0: tensor<5x6xf32>) -> tensor<5x6xf32> {
    %0 = chlo.acosh %arg0 : tensor<5x6xf32> -> tensor<5x6xf32>
    return %0 : tensor<5x6xf32>
  }
  func.func private @remainder(%arg0: tensor<5x6xf32>, %arg1: tensor<f32>) -> tensor<5x6xf32> {
    %0 = stablehlo.convert %arg1 : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<5x6xf32>
    %2 = stablehlo.remainder %arg0, %1 : tensor<5x6xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %3 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<5x6xf32>
    %4 = stablehlo.compare NE, %2, %3, FLOAT : (tensor<5x6xf32>, tensor<5x6xf32>) -> tensor<5x6xi1>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %5 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<5x6xf32>
    %6 = stablehlo.compare LT, %2, %5, FLOAT : (tensor<5x6xf32>, tensor<5x6xf32>) -> tensor<5x6xi1>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %7 = stablehlo.compare LT, %0, %cst_1, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %8 = stablehlo.broadcast_in_dim %7, dims = [] : (tensor<i1>) -> tensor<5x6xi1>
    %9 = stablehlo.compare NE, %6, %8, UNSIGNED : (tensor<5x6xi1>, tensor<5x6xi1>) -> tensor<5x6xi1>
    %10 = stablehlo.and %9, %4 : tensor<5x6xi1>
    %11 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<5x6xf32>
    %12 = stablehlo.add %2, %11 : tensor<5x6xf32>
    %13 = stablehlo.select %10, %12, %2 : tensor<5x6xi1>, tensor<5x6xf32>
    return %13 : tensor<5x6xf32>
  }
  func.func private @fmod(%arg0: tensor<5x6xf32>, %arg1: tensor<f32>) -> tensor<5x6xf32> {
    %0 = stablehlo.convert %arg1 : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<5x6xf32>
    %2 = stablehlo.remainder %arg0, %1 : tensor<5x6xf32>
    return %2 : tensor<5x6xf32>
  }
  func.func private @softplus(%arg0: tensor<5x6xf32>) -> tensor<5x6xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<5x6xf32>
    %1 = stablehlo.maximum %arg0, %0 : tensor<5x6xf32>
    %2 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<5x6xf32>
    %3 = stablehlo.subtract %arg0, %2 : tensor<5x6xf32>
    %4 = stablehlo.compare NE, %3, %3, FLOAT : (tensor<5x6xf32>, tensor<5x6xf32>) -> tensor<5x6xi1>
    %5 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<5x6xf32>
    %6 = stablehlo.add %arg0, %5 : tensor<5x6xf32>
    %7 = stablehlo.abs %3 : tensor<5x6xf32>
    %8 = stablehlo.negate %7 : tensor<5x6xf32>
    %9 = stablehlo.exponential %8 : tensor<5x6xf32>
    %10 = stablehlo.log_plus_one %9 : tensor<5x6xf32>
    %11 = stablehlo.add %1, %10 : tensor<5x6xf32>
    %12 = stablehlo.select %4, %6, %11 : tensor<5x6xi1>, tensor<5x6xf32>
    return %12 : tensor<5x6xf32>
  }
  func.func private @silu(%arg0: tensor<5x6xf32>) -> tensor<5x6xf32> {
    %0 = stablehlo.negate %arg0 : tensor<5x6xf32>
    %1 = stablehlo.exponential %0 : tensor<5x6xf32>
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %2 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<5x6xf32>
    %3 = stablehlo.add %2, %1 : tensor<5x6xf32>
    %cst_0 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %4 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<5x6xf32>
    %5 = stablehlo.divide %4, %3 : tensor<5x6xf32>
    %6 = stablehlo.multiply %arg0, %5 : tensor<5x6xf32>
    return %6 : tensor<5x6xf32>
  }
  func.func private @elu(%arg0: tensor<5x6xf32>) -> tensor<5x6xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<5x6xf32>
    %1 = stablehlo.compare GT, %arg0, %0, FLOAT : (tensor<5x6xf32>, tensor<5x6xf32>) -> tensor<5x6xi1>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %2 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<5x6xf32>
    %3 = stablehlo.compare GT, %arg0, %2, FLOAT : (tensor<5x6xf32>, tensor<5x6xf32>) -> tensor<5x6xi1>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %4 = call @_where_0(%3, %cst_1, %arg0) : (tensor<5x6xi1>, tensor<f32>, tensor<5x6xf32>) -> tensor<5x6xf32>
    %5 = stablehlo.exponential_minus_one %4 : tensor<5x6xf32>
    %cst_2 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %6 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<5x6xf32>
    %7 = stablehlo.multiply %6, %5 : tensor<5x6xf32>
    %8 = call @_where(%1, %arg0, %7) : (tensor<5x6xi1>, tensor<5x6xf32>, tensor<5x6xf32>) -> tensor<5x6xf32>
    return %8 : tensor<5x6xf32>
  }
  func.func private @_where_0(%arg0: tensor<5x6xi1>, %arg1: tensor<f32>, %arg2: tensor<5x6xf32>) -> tensor<5x6xf32> {
    %0 = stablehlo.convert %arg1 : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<5x6xf32>
    %2 = stablehlo.select %arg0, %1, %arg2 : tensor<5x6xi1>, tensor<5x6xf32>
    return %2 : tensor<5x6xf32>
  }
  func.func private @clip(%arg0: tensor<5x6xf32>, %arg1: tensor<i32>, %arg2: tensor<i32>) -> tensor<5x6xf32> {
    %0 = stablehlo.convert %arg1 : (tensor<i32>) -> tensor<f32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<5x6xf32>
    %2 = stablehlo.maximum %1, %arg0 : tensor<5x6xf32>
    %3 = stablehlo.convert %arg2 : (tensor<i32>) -> tensor<f32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [] : (tensor<f32>) -> tensor<5x6xf32>
    %5 = stablehlo.minimum %4, %2 : tensor<5x6xf32>
    return %5 : tensor<5x6xf32>
  }
}
