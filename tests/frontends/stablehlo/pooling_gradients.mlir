module @jit_pooling_gradients attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2x7x7x3xf32>) -> (tensor<2x7x7x3xf32> {jax.result_info = "result[0]"}, tensor<2x7x7x3xf32> {jax.result_info = "result[1]"}, tensor<2x7x7x3xf32> {jax.result_info = "result[2]"}, tensor<2x7x7x3xf32> {jax.result_info = "result[3]"}) {
    %0 = call @round(%arg0) : (tensor<2x7x7x3xf32>) -> tensor<2x7x7x3xf32>
    %cst = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<f32>
    %2 = "stablehlo.reduce_window"(%0, %1) <{base_dilations = array<i64: 1, 1, 1, 1>, padding = dense<[[0, 0], [1, 1], [1, 1], [0, 0]]> : tensor<4x2xi64>, window_dilations = array<i64: 1, 1, 1, 1>, window_dimensions = array<i64: 1, 3, 3, 1>, window_strides = array<i64: 1, 2, 2, 1>}> ({
    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
      %40 = stablehlo.maximum %arg1, %arg2 : tensor<f32>
      stablehlo.return %40 : tensor<f32>
    }) : (tensor<2x7x7x3xf32>, tensor<f32>) -> tensor<2x4x4x3xf32>
    %cst_0 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %3 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<2x4x4x3xf32>
    %4 = stablehlo.multiply %3, %2 : tensor<2x4x4x3xf32>
    %cst_1 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %5 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<2x4x4x3xf32>
    %6 = stablehlo.multiply %5, %4 : tensor<2x4x4x3xf32>
    %cst_2 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %7 = stablehlo.pad %0, %cst_2, low = [0, 1, 1, 0], high = [0, 1, 1, 0], interior = [0, 0, 0, 0] : (tensor<2x7x7x3xf32>, tensor<f32>) -> tensor<2x9x9x3xf32>
    %cst_3 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %8 = "stablehlo.select_and_scatter"(%7, %6, %cst_3) <{padding = dense<0> : tensor<4x2xi64>, window_dimensions = array<i64: 1, 3, 3, 1>, window_strides = array<i64: 1, 2, 2, 1>}> ({
    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
      %40 = stablehlo.compare GE, %arg1, %arg2, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %40 : tensor<i1>
    }, {
    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
      %40 = stablehlo.add %arg1, %arg2 : tensor<f32>
      stablehlo.return %40 : tensor<f32>
    }) : (tensor<2x9x9x3xf32>, tensor<2x4x4x3xf32>, tensor<f32>) -> tensor<2x9x9x3xf32>
    %9 = stablehlo.slice %8 [0:2, 1:8, 1:8, 0:3] : (tensor<2x9x9x3xf32>) -> tensor<2x7x7x3xf32>
    %10 = call @round(%arg0) : (tensor<2x7x7x3xf32>) -> tensor<2x7x7x3xf32>
    %cst_4 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %11 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<f32>
    %12 = "stablehlo.reduce_window"(%10, %11) <{base_dilations = array<i64: 1, 1, 1, 1>, padding = dense<[[0, 0], [1, 1], [2, 1], [0, 0]]> : tensor<4x2xi64>, window_dilations = array<i64: 1, 1, 1, 1>, window_dimensions = array<i64: 1, 2, 3, 1>, window_strides = array<i64: 1, 3, 2, 1>}> ({
    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
      %40 = stablehlo.maximum %arg1, %arg2 : tensor<f32>
      stablehlo.return %40 : tensor<f32>
    }) : (tensor<2x7x7x3xf32>, tensor<f32>) -> tensor<2x3x4x3xf32>
    %cst_5 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %13 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<2x3x4x3xf32>
    %14 = stablehlo.multiply %13, %12 : tensor<2x3x4x3xf32>
    %cst_6 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %15 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<2x3x4x3xf32>
    %16 = stablehlo.multiply %15, %14 : tensor<2x3x4x3xf32>
    %cst_7 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %17 = stablehlo.pad %10, %cst_7, low = [0, 1, 2, 0], high = [0, 1, 1, 0], interior = [0, 0, 0, 0] : (tensor<2x7x7x3xf32>, tensor<f32>) -> tensor<2x9x10x3xf32>
    %cst_8 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %18 = "stablehlo.select_and_scatter"(%17, %16, %cst_8) <{padding = dense<0> : tensor<4x2xi64>, window_dimensions = array<i64: 1, 2, 3, 1>, window_strides = array<i64: 1, 3, 2, 1>}> ({
    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
      %40 = stablehlo.compare GE, %arg1, %arg2, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %40 : tensor<i1>
    }, {
    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
      %40 = stablehlo.add %arg1, %arg2 : tensor<f32>
      stablehlo.return %40 : tensor<f32>
    }) : (tensor<2x9x10x3xf32>, tensor<2x3x4x3xf32>, tensor<f32>) -> tensor<2x9x10x3xf32>
    %19 = stablehlo.slice %18 [0:2, 1:8, 2:9, 0:3] : (tensor<2x9x10x3xf32>) -> tensor<2x7x7x3xf32>
    %20 = call @round(%arg0) : (tensor<2x7x7x3xf32>) -> tensor<2x7x7x3xf32>
    %cst_9 = stablehlo.constant dense<0x7F800000> : tensor<f32>
    %21 = stablehlo.broadcast_in_dim %cst_9, dims = [] : (tensor<f32>) -> tensor<f32>
    %22 = "stablehlo.reduce_window"(%20, %21) <{base_dilations = array<i64: 1, 1, 1, 1>, padding = dense<0> : tensor<4x2xi64>, window_dilations = array<i64: 1, 1, 1, 1>, window_dimensions = array<i64: 1, 3, 2, 1>, window_strides = array<i64: 1, 1, 1, 1>}> ({
    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
      %40 = stablehlo.minimum %arg1, %arg2 : tensor<f32>
      stablehlo.return %40 : tensor<f32>
    }) : (tensor<2x7x7x3xf32>, tensor<f32>) -> tensor<2x5x6x3xf32>
    %cst_10 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %23 = stablehlo.broadcast_in_dim %cst_10, dims = [] : (tensor<f32>) -> tensor<2x5x6x3xf32>
    %24 = stablehlo.multiply %23, %22 : tensor<2x5x6x3xf32>
    %cst_11 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %25 = stablehlo.broadcast_in_dim %cst_11, dims = [] : (tensor<f32>) -> tensor<2x5x6x3xf32>
    %26 = stablehlo.multiply %25, %24 : tensor<2x5x6x3xf32>
    %cst_12 = stablehlo.constant dense<0x7F800000> : tensor<f32>
    %27 = stablehlo.pad %20, %cst_12, low = [0, 0, 0, 0], high = [0, 0, 0, 0], interior = [0, 0, 0, 0] : (tensor<2x7x7x3xf32>, tensor<f32>) -> tensor<2x7x7x3xf32>
    %cst_13 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %28 = "stablehlo.select_and_scatter"(%27, %26, %cst_13) <{padding = dense<0> : tensor<4x2xi64>, window_dimensions = array<i64: 1, 3, 2, 1>, window_strides = array<i64: 1, 1, 1, 1>}> ({
    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
      %40 = stablehlo.compare LE, %arg1, %arg2, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %40 : tensor<i1>
    }, {
    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
      %40 = stablehlo.add %arg1, %arg2 : tensor<f32>
      stablehlo.return %40 : tensor<f32>
    }) : (tensor<2x7x7x3xf32>, tensor<2x5x6x3xf32>, tensor<f32>) -> tensor<2x7x7x3xf32>
    %29 = stablehlo.slice %28 [0:2, 0:7, 0:7, 0:3] : (tensor<2x7x7x3xf32>) -> tensor<2x7x7x3xf32>
    %30 = call @round(%arg0) : (tensor<2x7x7x3xf32>) -> tensor<2x7x7x3xf32>
    %cst_14 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %31 = stablehlo.broadcast_in_dim %cst_14, dims = [] : (tensor<f32>) -> tensor<f32>
    %32 = "stablehlo.reduce_window"(%30, %31) <{base_dilations = array<i64: 1, 1, 1, 1>, padding = dense<[[0, 0], [1, 1], [1, 1], [0, 0]]> : tensor<4x2xi64>, window_dilations = array<i64: 1, 1, 1, 1>, window_dimensions = array<i64: 1, 3, 3, 1>, window_strides = array<i64: 1, 2, 2, 1>}> ({
    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
      %40 = stablehlo.add %arg1, %arg2 : tensor<f32>
      stablehlo.return %40 : tensor<f32>
    }) : (tensor<2x7x7x3xf32>, tensor<f32>) -> tensor<2x4x4x3xf32>
    %cst_15 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %33 = stablehlo.broadcast_in_dim %cst_15, dims = [] : (tensor<f32>) -> tensor<2x4x4x3xf32>
    %34 = stablehlo.multiply %33, %32 : tensor<2x4x4x3xf32>
    %cst_16 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %35 = stablehlo.broadcast_in_dim %cst_16, dims = [] : (tensor<f32>) -> tensor<2x4x4x3xf32>
    %36 = stablehlo.multiply %35, %34 : tensor<2x4x4x3xf32>
    %cst_17 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %37 = stablehlo.pad %36, %cst_17, low = [0, 1, 1, 0], high = [0, 1, 1, 0], interior = [0, 1, 1, 0] : (tensor<2x4x4x3xf32>, tensor<f32>) -> tensor<2x9x9x3xf32>
    %cst_18 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %38 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<f32>
    %39 = "stablehlo.reduce_window"(%37, %38) <{base_dilations = array<i64: 1, 1, 1, 1>, padding = dense<0> : tensor<4x2xi64>, window_dilations = array<i64: 1, 1, 1, 1>, window_dimensions = array<i64: 1, 3, 3, 1>, window_strides = array<i64: 1, 1, 1, 1>}> ({
    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
      %40 = stablehlo.add %arg1, %arg2 : tensor<f32>
      stablehlo.return %40 : tensor<f32>
    }) : (tensor<2x9x9x3xf32>, tensor<f32>) -> tensor<2x7x7x3xf32>
    return %9, %19, %29, %39 : tensor<2x7x7x3xf32>, tensor<2x7x7x3xf32>, tensor<2x7x7x3xf32>, tensor<2x7x7x3xf32>
  }
  func.func private @round(%arg0: tensor<2x7x7x3xf32>) -> tensor<2x7x7x3xf32> {
    %0 = stablehlo.round_nearest_even %arg0 : tensor<2x7x7x3xf32>
    return %0 : tensor<2x7x7x3xf32>
  }
}
