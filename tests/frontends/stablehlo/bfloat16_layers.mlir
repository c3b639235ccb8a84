module @jit_bfloat16_layers attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2x6x4x8xbf16>, %arg1: tensor<8xbf16>) -> (tensor<2x6x4x8xbf16> {jax.result_info = "result[0]"}, tensor<2x6x4x8xbf16> {jax.result_info = "result[1]"}, tensor<2x6x4x8xbf16> {jax.result_info = "result[2]"}, tensor<2x6x4x8xbf16> {jax.result_info = "result[3]"}) {
    %0 = stablehlo.convert %arg0 : (tensor<2x6x4x8xbf16>) -> tensor<2x6x4x8xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %1 = stablehlo.reduce(%0 init: %cst) applies stablehlo.add across dimensions = [3] : (tensor<2x6x4x8xf32>, tensor<f32>) -> tensor<2x6x4xf32>
    %2 = stablehlo.broadcast_in_dim %1, dims = [0, 1, 2] : (tensor<2x6x4xf32>) -> tensor<2x6x4x1xf32>
    %cst_0 = stablehlo.constant dense<8.000000e+00> : tensor<f32>
    %3 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<2x6x4x1xf32>
    %4 = stablehlo.divide %2, %3 : tensor<2x6x4x1xf32>
    %5 = stablehlo.convert %4 : (tensor<2x6x4x1xf32>) -> tensor<2x6x4x1xbf16>
    %6 = stablehlo.broadcast_in_dim %5, dims = [0, 1, 2, 3] : (tensor<2x6x4x1xbf16>) -> tensor<2x6x4x8xbf16>
    %7 = stablehlo.subtract %arg0, %6 : tensor<2x6x4x8xbf16>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %8 = call @_var(%arg0, %c) : (tensor<2x6x4x8xbf16>, tensor<i32>) -> tensor<2x6x4x1xbf16>
    %cst_1 = stablehlo.constant dense<1.001360e-05> : tensor<bf16>
    %9 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<bf16>) -> tensor<2x6x4x1xbf16>
    %10 = stablehlo.add %8, %9 : tensor<2x6x4x1xbf16>
    %11 = stablehlo.rsqrt %10 : tensor<2x6x4x1xbf16>
    %12 = stablehlo.broadcast_in_dim %11, dims = [0, 1, 2, 3] : (tensor<2x6x4x1xbf16>) -> tensor<2x6x4x8xbf16>
    %13 = stablehlo.multiply %7, %12 : tensor<2x6x4x8xbf16>
    %14 = stablehlo.broadcast_in_dim %arg1, dims = [3] : (tensor<8xbf16>) -> tensor<1x1x1x8xbf16>
    %15 = stablehlo.broadcast_in_dim %14, dims = [0, 1, 2, 3] : (tensor<1x1x1x8xbf16>) -> tensor<2x6x4x8xbf16>
    %16 = stablehlo.multiply %13, %15 : tensor<2x6x4x8xbf16>
    %17 = stablehlo.convert %arg0 : (tensor<2x6x4x8xbf16>) -> tensor<2x6x4x8xf32>
    %18 = stablehlo.multiply %17, %17 : tensor<2x6x4x8xf32>
    %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %19 = stablehlo.reduce(%18 init: %cst_2) applies stablehlo.add across dimensions = [3] : (tensor<2x6x4x8xf32>, tensor<f32>) -> tensor<2x6x4xf32>
    %20 = stablehlo.broadcast_in_dim %19, dims = [0, 1, 2] : (tensor<2x6x4xf32>) -> tensor<2x6x4x1xf32>
    %cst_3 = stablehlo.constant dense<8.000000e+00> : tensor<f32>
    %21 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<2x6x4x1xf32>
    %22 = stablehlo.divide %20, %21 : tensor<2x6x4x1xf32>
    %cst_4 = stablehlo.constant dense<9.99999997E-7> : tensor<f32>
    %23 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<2x6x4x1xf32>
    %24 = stablehlo.add %22, %23 : tensor<2x6x4x1xf32>
    %25 = stablehlo.rsqrt %24 : tensor<2x6x4x1xf32>
    %26 = stablehlo.broadcast_in_dim %25, dims = [0, 1, 2, 3] : (tensor<2x6x4x1xf32>) -> tensor<2x6x4x8xf32>
    %27 = stablehlo.multiply %17, %26 : tensor<2x6x4x8xf32>
    %28 = stablehlo.convert %27 : (tensor<2x6x4x8xf32>) -> tensor<2x6x4x8xbf16>
    %29 = stablehlo.broadcast_in_dim %arg1, dims = [3] : (tensor<8xbf16>) -> tensor<1x1x1x8xbf16>
    %30 = stablehlo.broadcast_in_dim %29, dims = [0, 1, 2, 3] : (tensor<1x1x1x8xbf16>) -> tensor<2x6x4x8xbf16>
    %31 = stablehlo.multiply %28, %30 : tensor<2x6x4x8xbf16>
    %32 = stablehlo.reshape %arg0 : (tensor<2x6x4x8xbf16>) -> tensor<2x6x4x1x8xbf16>
    %33 = stablehlo.dot_general %32, %arg0, batching_dims = [0, 2] x [0, 2], contracting_dims = [4] x [3], precision = [DEFAULT, DEFAULT], algorithm = <lhs_precision_type = bf16, rhs_precision_type = bf16, accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 1, allow_imprecise_accumulation = false> : (tensor<2x6x4x1x8xbf16>, tensor<2x6x4x8xbf16>) -> tensor<2x4x6x1x6xf32>
    %cst_5 = stablehlo.constant dense<0.353553385> : tensor<f32>
    %34 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<2x4x6x1x6xf32>
    %35 = stablehlo.multiply %33, %34 : tensor<2x4x6x1x6xf32>
    %cst_6 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %36 = stablehlo.reduce(%35 init: %cst_6) applies stablehlo.maximum across dimensions = [4] : (tensor<2x4x6x1x6xf32>, tensor<f32>) -> tensor<2x4x6x1xf32>
    %cst_7 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %37 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<2x4x6x1xf32>
    %38 = stablehlo.maximum %37, %36 : tensor<2x4x6x1xf32>
    %39 = stablehlo.transpose %38, dims = [3, 0, 1, 2] : (tensor<2x4x6x1xf32>) -> tensor<1x2x4x6xf32>
    %40 = stablehlo.broadcast_in_dim %39, dims = [0, 1, 2, 3] : (tensor<1x2x4x6xf32>) -> tensor<1x2x4x6x1xf32>
    %41 = stablehlo.transpose %35, dims = [3, 0, 1, 2, 4] : (tensor<2x4x6x1x6xf32>) -> tensor<1x2x4x6x6xf32>
    %42 = stablehlo.broadcast_in_dim %40, dims = [0, 1, 2, 3, 4] : (tensor<1x2x4x6x1xf32>) -> tensor<1x2x4x6x6xf32>
    %43 = stablehlo.subtract %41, %42 : tensor<1x2x4x6x6xf32>
    %44 = stablehlo.exponential %43 : tensor<1x2x4x6x6xf32>
    %cst_8 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %45 = stablehlo.reduce(%44 init: %cst_8) applies stablehlo.add across dimensions = [4] : (tensor<1x2x4x6x6xf32>, tensor<f32>) -> tensor<1x2x4x6xf32>
    %46 = stablehlo.broadcast_in_dim %45, dims = [0, 1, 2, 3] : (tensor<1x2x4x6xf32>) -> tensor<1x2x4x6x1xf32>
    %47 = stablehlo.broadcast_in_dim %46, dims = [0, 1, 2, 3, 4] : (tensor<1x2x4x6x1xf32>) -> tensor<1x2x4x6x6xf32>
    %48 = stablehlo.divide %44, %47 : tensor<1x2x4x6x6xf32>
    %49 = stablehlo.convert %48 : (tensor<1x2x4x6x6xf32>) -> tensor<1x2x4x6x6xbf16>
    %50 = stablehlo.dot_general %arg0, %49, batching_dims = [0, 2] x [1, 2], contracting_dims = [1] x [4], precision = [DEFAULT, DEFAULT] : (tensor<2x6x4x8xbf16>, tensor<1x2x4x6x6xbf16>) -> tensor<2x4x8x1x6xbf16>
    %51 = stablehlo.transpose %50, dims = [3, 0, 4, 1, 2] : (tensor<2x4x8x1x6xbf16>) -> tensor<1x2x6x4x8xbf16>
    %52 = stablehlo.transpose %51, dims = [1, 2, 3, 0, 4] : (tensor<1x2x6x4x8xbf16>) -> tensor<2x6x4x1x8xbf16>
    %53 = stablehlo.reshape %52 : (tensor<2x6x4x1x8xbf16>) -> tensor<2x6x4x8xbf16>
    %54 = call @log_softmax(%arg0) : (tensor<2x6x4x8xbf16>) -> tensor<2x6x4x8xbf16>
    return %53, %16, %31, %54 : tensor<2x6x4x8xbf16>, tensor<2x6x4x8xbf16>, tensor<2x6x4x8xbf16>, tensor<2x6x4x8xbf16>
  }
  func.func private @_var(%arg0: tensor<2x6x4x8xbf16>, %arg1: tensor<i32>) -> tensor<2x6x4x1xbf16> {
    %0 = stablehlo.convert %arg0 : (tensor<2x6x4x8xbf16>) -> tensor<2x6x4x8xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %1 = stablehlo.reduce(%0 init: %cst) applies stablehlo.add across dimensions = [3] : (tensor<2x6x4x8xf32>, tensor<f32>) -> tensor<2x6x4xf32>
    %2 = stablehlo.broadcast_in_dim %1, dims = [0, 1, 2] : (tensor<2x6x4xf32>) -> tensor<2x6x4x1xf32>
    %cst_0 = stablehlo.constant dense<8.000000e+00> : tensor<f32>
    %3 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<2x6x4x1xf32>
    %4 = stablehlo.divide %2, %3 : tensor<2x6x4x1xf32>
    %5 = stablehlo.broadcast_in_dim %4, dims = [0, 1, 2, 3] : (tensor<2x6x4x1xf32>) -> tensor<2x6x4x8xf32>
    %6 = stablehlo.subtract %0, %5 : tensor<2x6x4x8xf32>
    %7 = chlo.square %6 : tensor<2x6x4x8xf32> -> tensor<2x6x4x8xf32>
    %8 = stablehlo.convert %arg1 : (tensor<i32>) -> tensor<f32>
    %cst_1 = stablehlo.constant dense<8.000000e+00> : tensor<f32>
    %9 = stablehlo.subtract %cst_1, %8 : tensor<f32>
    %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %10 = stablehlo.reduce(%7 init: %cst_2) applies stablehlo.add across dimensions = [3] : (tensor<2x6x4x8xf32>, tensor<f32>) -> tensor<2x6x4xf32>
    %11 = stablehlo.broadcast_in_dim %10, dims = [0, 1, 2] : (tensor<2x6x4xf32>) -> tensor<2x6x4x1xf32>
    %12 = stablehlo.broadcast_in_dim %9, dims = [] : (tensor<f32>) -> tensor<2x6x4x1xf32>
    %13 = stablehlo.divide %11, %12 : tensor<2x6x4x1xf32>
    %14 = stablehlo.convert %13 : (tensor<2x6x4x1xf32>) -> tensor<2x6x4x1xbf16>
    %cst_3 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %15 = stablehlo.compare GT, %9, %cst_3, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %cst_4 = stablehlo.constant dense<0x7FC00000> : tensor<f32>
    %16 = call @_where(%15, %14, %cst_4) : (tensor<i1>, tensor<2x6x4x1xbf16>, tensor<f32>) -> tensor<2x6x4x1xbf16>
    return %16 : tensor<2x6x4x1xbf16>
  }
  func.func private @_where(%arg0: tensor<i1>, %arg1: tensor<2x6x4x1xbf16>, %arg2: tensor<f32>) -> tensor<2x6x4x1xbf16> {
    %0 = stablehlo.convert %arg2 : (tensor<f32>) -> tensor<bf16>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<bf16>) -> tensor<2x6x4x1xbf16>
    %2 = stablehlo.select %arg0, %arg1, %1 : tensor<i1>, tensor<2x6x4x1xbf16>
    return %2 : tensor<2x6x4x1xbf16>
  }
  func.func private @log_softmax(%arg0: tensor<2x6x4x8xbf16>) -> tensor<2x6x4x8xbf16> {
    %cst = stablehlo.constant dense<0xFF80> : tensor<bf16>
    %0 = stablehlo.reduce(%arg0 init: %cst) applies stablehlo.maximum across dimensions = [3] : (tensor<2x6x4x8xbf16>, tensor<bf16>) -> tensor<2x6x4xbf16>
    %cst_0 = stablehlo.constant dense<0xFF80> : tensor<bf16>
    %1 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<bf16>) -> tensor<2x6x4xbf16>
    %2 = stablehlo.maximum %1, %0 : tensor<2x6x4xbf16>
    %3 = stablehlo.broadcast_in_dim %2, dims = [0, 1, 2] : (tensor<2x6x4xbf16>) -> tensor<2x6x4x1xbf16>
    %4 = stablehlo.broadcast_in_dim %3, dims = [0, 1, 2, 3] : (tensor<2x6x4x1xbf16>) -> tensor<2x6x4x8xbf16>
    %5 = stablehlo.subtract %arg0, %4 : tensor<2x6x4x8xbf16>
    %6 = stablehlo.exponential %5 : tensor<2x6x4x8xbf16>
    %7 = stablehlo.convert %6 : (tensor<2x6x4x8xbf16>) -> tensor<2x6x4x8xf32>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %8 = stablehlo.reduce(%7 init: %cst_1) applies stablehlo.add across dimensions = [3] : (tensor<2x6x4x8xf32>, tensor<f32>) -> tensor<2x6x4xf32>
    %9 = stablehlo.broadcast_in_dim %8, dims = [0, 1, 2] : (tensor<2x6x4xf32>) -> tensor<2x6x4x1xf32>
    %10 = stablehlo.convert %9 : (tensor<2x6x4x1xf32>) -> tensor<2x6x4x1xbf16>
    %11 = stablehlo.log %10 : tensor<2x6x4x1xbf16>
    %12 = stablehlo.broadcast_in_dim %11, dims = [0, 1, 2, 3] : (tensor<2x6x4x1xbf16>) -> tensor<2x6x4x8xbf16>
    %13 = stablehlo.subtract %5, %12 : tensor<2x6x4x8xbf16>
    return %13 : tensor<2x6x4x8xbf16>
  }
}
