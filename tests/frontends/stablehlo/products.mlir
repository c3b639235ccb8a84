module @jit_products attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2x3x4x5xf32>, %arg1: tensor<2x5x3x6xf32>) -> (tensor<2x3x4x6xf32> {jax.result_info = "result[0]"}, tensor<2x4x6xf32> {jax.result_info = "result[1]"}, tensor<2x3x4x6xf32> {jax.result_info = "result[2]"}, tensor<5x5xf32> {jax.result_info = "result[3]"}, tensor<4xf32> {jax.result_info = "result[4]"}, tensor<f32> {jax.result_info = "result[5]"}, tensor<5x6xf32> {jax.result_info = "result[6]"}, tensor<2x3x4x2x3x6xf32> {jax.result_info = "result[7]"}) {
    %0 = stablehlo.dot_general %arg0, %arg1, batching_dims = [0, 1] x [0, 2], contracting_dims = [3] x [1], precision = [DEFAULT, DEFAULT] : (tensor<2x3x4x5xf32>, tensor<2x5x3x6xf32>) -> tensor<2x3x4x6xf32>
    %1 = stablehlo.dot_general %arg0, %arg1, batching_dims = [0] x [0], contracting_dims = [1, 3] x [2, 1], precision = [DEFAULT, DEFAULT] : (tensor<2x3x4x5xf32>, tensor<2x5x3x6xf32>) -> tensor<2x4x6xf32>
    %2 = stablehlo.transpose %arg1, dims = [0, 2, 1, 3] : (tensor<2x5x3x6xf32>) -> tensor<2x3x5x6xf32>
    %3 = stablehlo.dot_general %arg0, %2, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2], precision = [DEFAULT, DEFAULT] : (tensor<2x3x4x5xf32>, tensor<2x3x5x6xf32>) -> tensor<2x3x4x6xf32>
    %4 = stablehlo.slice %arg0 [0:1, 0:1, 0:4, 0:5] : (tensor<2x3x4x5xf32>) -> tensor<1x1x4x5xf32>
    %5 = stablehlo.reshape %4 : (tensor<1x1x4x5xf32>) -> tensor<4x5xf32>
    %6 = stablehlo.transpose %5, dims = [1, 0] : (tensor<4x5xf32>) -> tensor<5x4xf32>
    %7 = stablehlo.slice %arg0 [0:1, 0:1, 0:4, 0:5] : (tensor<2x3x4x5xf32>) -> tensor<1x1x4x5xf32>
    %8 = stablehlo.reshape %7 : (tensor<1x1x4x5xf32>) -> tensor<4x5xf32>
    %9 = stablehlo.dot_general %6, %8, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<5x4xf32>, tensor<4x5xf32>) -> tensor<5x5xf32>
    %10 = stablehlo.slice %arg0 [0:1, 0:1, 0:4, 0:5] : (tensor<2x3x4x5xf32>) -> tensor<1x1x4x5xf32>
    %11 = stablehlo.reshape %10 : (tensor<1x1x4x5xf32>) -> tensor<4x5xf32>
    %12 = stablehlo.slice %arg1 [0:1, 0:5, 0:1, 0:1] : (tensor<2x5x3x6xf32>) -> tensor<1x5x1x1xf32>
    %13 = stablehlo.reshape %12 : (tensor<1x5x1x1xf32>) -> tensor<5xf32>
    %14 = stablehlo.dot_general %11, %13, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4x5xf32>, tensor<5xf32>) -> tensor<4xf32>
    %15 = stablehlo.slice %arg0 [0:1, 0:1, 0:1, 0:5] : (tensor<2x3x4x5xf32>) -> tensor<1x1x1x5xf32>
    %16 = stablehlo.reshape %15 : (tensor<1x1x1x5xf32>) -> tensor<5xf32>
    %17 = stablehlo.slice %arg1 [0:1, 0:5, 0:1, 0:1] : (tensor<2x5x3x6xf32>) -> tensor<1x5x1x1xf32>
    %18 = stablehlo.reshape %17 : (tensor<1x5x1x1xf32>) -> tensor<5xf32>
    %19 = stablehlo.dot_general %16, %18, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<5xf32>, tensor<5xf32>) -> tensor<f32>
    %20 = stablehlo.slice %arg0 [0:1, 0:1, 0:1, 0:5] : (tensor<2x3x4x5xf32>) -> tensor<1x1x1x5xf32>
    %21 = stablehlo.reshape %20 : (tensor<1x1x1x5xf32>) -> tensor<5xf32>
    %22 = stablehlo.slice %arg1 [0:1, 0:1, 0:1, 0:6] : (tensor<2x5x3x6xf32>) -> tensor<1x1x1x6xf32>
    %23 = stablehlo.reshape %22 : (tensor<1x1x1x6xf32>) -> tensor<6xf32>
    %24 = stablehlo.broadcast_in_dim %21, dims = [0] : (tensor<5xf32>) -> tensor<5x1xf32>
    %25 = stablehlo.broadcast_in_dim %23, dims = [1] : (tensor<6xf32>) -> tensor<1x6xf32>
    %26 = stablehlo.broadcast_in_dim %24, dims = [0, 1] : (tensor<5x1xf32>) -> tensor<5x6xf32>
    %27 = stablehlo.broadcast_in_dim %25, dims = [0, 1] : (tensor<1x6xf32>) -> tensor<5x6xf32>
    %28 = stablehlo.multiply %26, %27 : tensor<5x6xf32>
    %29 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [3] x [1], precision = [DEFAULT, DEFAULT] : (tensor<2x3x4x5xf32>, tensor<2x5x3x6xf32>) -> tensor<2x3x4x2x3x6xf32>
    return %0, %1, %3, %9, %14, %19, %28, %29 : tensor<2x3x4x6xf32>, tensor<2x4x6xf32>, tensor<2x3x4x6xf32>, tensor<5x5xf32>, tensor<4xf32>, tensor<f32>, tensor<5x6xf32>, tensor<2x3x4x2x3x6xf32>
  }
}
