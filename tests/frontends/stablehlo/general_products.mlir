module @jit_general_products attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2x3x4x5xf32>, %arg1: tensor<5x2x3x6xf32>, %arg2: tensor<9x3xf32>) -> (tensor<2x4x6xf32> {jax.result_info = "result[0]"}, tensor<5x4x3xf32> {jax.result_info = "result[1]"}, tensor<3x4x5x4x5xf32> {jax.result_info = "result[2]"}, tensor<9x3xf32> {jax.result_info = "result[3]"}) {
    %0 = stablehlo.dot_general %arg0, %arg1, batching_dims = [0] x [1], contracting_dims = [1, 3] x [2, 0], precision = [DEFAULT, DEFAULT] : (tensor<2x3x4x5xf32>, tensor<5x2x3x6xf32>) -> tensor<2x4x6xf32>
    %1 = stablehlo.slice %arg0 [0:1, 0:3, 0:4, 0:5] : (tensor<2x3x4x5xf32>) -> tensor<1x3x4x5xf32>
    %2 = stablehlo.reshape %1 : (tensor<1x3x4x5xf32>) -> tensor<3x4x5xf32>
    %3 = stablehlo.slice %arg0 [1:2, 0:3, 0:4, 0:5] : (tensor<2x3x4x5xf32>) -> tensor<1x3x4x5xf32>
    %4 = stablehlo.reshape %3 : (tensor<1x3x4x5xf32>) -> tensor<3x4x5xf32>
    %5 = stablehlo.transpose %4, dims = [0, 2, 1] : (tensor<3x4x5xf32>) -> tensor<3x5x4xf32>
    %6 = stablehlo.slice %arg0 [0:1, 0:1, 0:4, 0:5] : (tensor<2x3x4x5xf32>) -> tensor<1x1x4x5xf32>
    %7 = stablehlo.reshape %6 : (tensor<1x1x4x5xf32>) -> tensor<4x5xf32>
    %8 = stablehlo.dot_general %5, %2, batching_dims = [0] x [0], contracting_dims = [1] x [2], precision = [DEFAULT, DEFAULT] : (tensor<3x5x4xf32>, tensor<3x4x5xf32>) -> tensor<3x4x4xf32>
    %9 = stablehlo.dot_general %8, %7, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<3x4x4xf32>, tensor<4x5xf32>) -> tensor<3x4x5xf32>
    %10 = stablehlo.transpose %9, dims = [2, 1, 0] : (tensor<3x4x5xf32>) -> tensor<5x4x3xf32>
    %11 = stablehlo.slice %arg0 [0:1, 0:3, 0:4, 0:5] : (tensor<2x3x4x5xf32>) -> tensor<1x3x4x5xf32>
    %12 = stablehlo.reshape %11 : (tensor<1x3x4x5xf32>) -> tensor<3x4x5xf32>
    %13 = stablehlo.slice %arg0 [1:2, 0:1, 0:4, 0:5] : (tensor<2x3x4x5xf32>) -> tensor<1x1x4x5xf32>
    %14 = stablehlo.reshape %13 : (tensor<1x1x4x5xf32>) -> tensor<4x5xf32>
    %15 = stablehlo.dot_general %12, %14, contracting_dims = [] x [], precision = [DEFAULT, DEFAULT] : (tensor<3x4x5xf32>, tensor<4x5xf32>) -> tensor<3x4x5x4x5xf32>
    %16 = stablehlo.slice %arg2 [0:8:2, 0:3] : (tensor<9x3xf32>) -> tensor<4x3xf32>
    %17 = stablehlo.slice %arg2 [1:9:2, 0:3] : (tensor<9x3xf32>) -> tensor<4x3xf32>
    %18 = stablehlo.add %16, %17 : tensor<4x3xf32>
    %19 = stablehlo.slice %18 [0:3:2, 0:3] : (tensor<4x3xf32>) -> tensor<2x3xf32>
    %20 = stablehlo.slice %18 [1:4:2, 0:3] : (tensor<4x3xf32>) -> tensor<2x3xf32>
    %21 = stablehlo.add %19, %20 : tensor<2x3xf32>
    %22 = stablehlo.slice %21 [0:1:2, 0:3] : (tensor<2x3xf32>) -> tensor<1x3xf32>
    %23 = stablehlo.slice %21 [1:2:2, 0:3] : (tensor<2x3xf32>) -> tensor<1x3xf32>
    %24 = stablehlo.add %22, %23 : tensor<1x3xf32>
    %25 = stablehlo.slice %24 [0:0, 0:3] : (tensor<1x3xf32>) -> tensor<0x3xf32>
    %26 = stablehlo.slice %21 [2:2:2, 0:3] : (tensor<2x3xf32>) -> tensor<0x3xf32>
    %27 = stablehlo.add %25, %26 : tensor<0x3xf32>
    %28 = stablehlo.slice %21 [0:1, 0:3] : (tensor<2x3xf32>) -> tensor<1x3xf32>
    %29 = stablehlo.concatenate %28, %27, dim = 0 : (tensor<1x3xf32>, tensor<0x3xf32>) -> tensor<1x3xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %30 = stablehlo.pad %29, %cst, low = [0, 0], high = [1, 0], interior = [1, 0] : (tensor<1x3xf32>, tensor<f32>) -> tensor<2x3xf32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %31 = stablehlo.pad %24, %cst_0, low = [1, 0], high = [0, 0], interior = [1, 0] : (tensor<1x3xf32>, tensor<f32>) -> tensor<2x3xf32>
    %32 = stablehlo.add %30, %31 : tensor<2x3xf32>
    %33 = stablehlo.slice %32 [0:1, 0:3] : (tensor<2x3xf32>) -> tensor<1x3xf32>
    %34 = stablehlo.slice %18 [2:4:2, 0:3] : (tensor<4x3xf32>) -> tensor<1x3xf32>
    %35 = stablehlo.add %33, %34 : tensor<1x3xf32>
    %36 = stablehlo.slice %18 [0:1, 0:3] : (tensor<4x3xf32>) -> tensor<1x3xf32>
    %37 = stablehlo.concatenate %36, %35, dim = 0 : (tensor<1x3xf32>, tensor<1x3xf32>) -> tensor<2x3xf32>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %38 = stablehlo.pad %37, %cst_1, low = [0, 0], high = [1, 0], interior = [1, 0] : (tensor<2x3xf32>, tensor<f32>) -> tensor<4x3xf32>
    %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %39 = stablehlo.pad %32, %cst_2, low = [1, 0], high = [0, 0], interior = [1, 0] : (tensor<2x3xf32>, tensor<f32>) -> tensor<4x3xf32>
    %40 = stablehlo.add %38, %39 : tensor<4x3xf32>
    %41 = stablehlo.slice %arg2 [2:9:2, 0:3] : (tensor<9x3xf32>) -> tensor<4x3xf32>
    %42 = stablehlo.add %40, %41 : tensor<4x3xf32>
    %43 = stablehlo.slice %arg2 [0:1, 0:3] : (tensor<9x3xf32>) -> tensor<1x3xf32>
    %44 = stablehlo.concatenate %43, %42, dim = 0 : (tensor<1x3xf32>, tensor<4x3xf32>) -> tensor<5x3xf32>
    %cst_3 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %45 = stablehlo.pad %44, %cst_3, low = [0, 0], high = [0, 0], interior = [1, 0] : (tensor<5x3xf32>, tensor<f32>) -> tensor<9x3xf32>
    %cst_4 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %46 = stablehlo.pad %40, %cst_4, low = [1, 0], high = [1, 0], interior = [1, 0] : (tensor<4x3xf32>, tensor<f32>) -> tensor<9x3xf32>
    %47 = stablehlo.add %45, %46 : tensor<9x3xf32>
    return %0, %10, %15, %47 : tensor<2x4x6xf32>, tensor<5x4x3xf32>, tensor<3x4x5x4x5xf32>, tensor<9x3xf32>
  }
}
