module @jit_int8 attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<4x6xi8>, %arg1: tensor<6x4xi8>) -> (tensor<4x4xi32> {jax.result_info = "result[0]"}, tensor<4x6xi8> {jax.result_info = "result[1]"}, tensor<4x6xi1> {jax.result_info = "result[2]"}) {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4x6xi8>, tensor<6x4xi8>) -> tensor<4x4xi32>
    %1 = stablehlo.add %arg0, %arg0 : tensor<4x6xi8>
    %c = stablehlo.constant dense<3> : tensor<i8>
    %2 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i8>) -> tensor<4x6xi8>
    %3 = stablehlo.compare GT, %arg0, %2, SIGNED : (tensor<4x6xi8>, tensor<4x6xi8>) -> tensor<4x6xi1>
    %4 = stablehlo.transpose %arg1, dims = [1, 0] : (tensor<6x4xi8>) -> tensor<4x6xi8>
    %c_0 = stablehlo.constant dense<3> : tensor<i8>
    %5 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i8>) -> tensor<4x6xi8>
    %6 = stablehlo.compare GT, %4, %5, SIGNED : (tensor<4x6xi8>, tensor<4x6xi8>) -> tensor<4x6xi1>
    %7 = stablehlo.and %3, %6 : tensor<4x6xi1>
    return %0, %1, %7 : tensor<4x4xi32>, tensor<4x6xi8>, tensor<4x6xi1>
  }
}
