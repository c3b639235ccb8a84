module @jit_branches attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<i32>, %arg1: tensor<3x3xf32>) -> (tensor<3x3xf32> {jax.result_info = "result[0]"}, tensor<3x3xf32> {jax.result_info = "result[1]"}) {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<2> : tensor<i32>
    %0 = stablehlo.clamp %c, %arg0, %c_0 : tensor<i32>
    %1 = "stablehlo.case"(%0) ({
      stablehlo.return %arg1 : tensor<3x3xf32>
    }, {
      %5 = stablehlo.negate %arg1 : tensor<3x3xf32>
      stablehlo.return %5 : tensor<3x3xf32>
    }, {
      %5 = stablehlo.multiply %arg1, %arg1 : tensor<3x3xf32>
      stablehlo.return %5 : tensor<3x3xf32>
    }) : (tensor<i32>) -> tensor<3x3xf32>
    %c_1 = stablehlo.constant dense<0> : tensor<i32>
    %2 = stablehlo.compare GT, %arg0, %c_1, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %3 = stablehlo.convert %2 : (tensor<i1>) -> tensor<i32>
    %4 = "stablehlo.case"(%3) ({
      %cst = stablehlo.constant dense<2.000000e+00> : tensor<f32>
      %5 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<3x3xf32>
      %6 = stablehlo.multiply %arg1, %5 : tensor<3x3xf32>
      stablehlo.return %6 : tensor<3x3xf32>
    }, {
      %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
      %5 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<3x3xf32>
      %6 = stablehlo.add %arg1, %5 : tensor<3x3xf32>
      stablehlo.return %6 : tensor<3x3xf32>
    }) : (tensor<i32>) -> tensor<3x3xf32>
    return %1, %4 : tensor<3x3xf32>, tensor<3x3xf32>
  }
}
