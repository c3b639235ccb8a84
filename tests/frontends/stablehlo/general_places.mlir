module @jit_general_places attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<5x6x7xf32>, %arg1: tensor<5x3xi32>, %arg2: tensor<5x3x7xf32>, %arg3: tensor<1x2x3x7xf32>) -> (tensor<5x3x6xf32> {jax.result_info = "result[0]"}, tensor<4x6x7xf32> {jax.result_info = "result[1]"}, tensor<3x6x7xf32> {jax.result_info = "result[2]"}, tensor<4x6x7xf32> {jax.result_info = "result[3]"}, tensor<5x3x7xf32> {jax.result_info = "result[4]"}, tensor<5x3x7xf32> {jax.result_info = "result[5]"}, tensor<5x2x7xf32> {jax.result_info = "result[6]"}, tensor<5x6x7xf32> {jax.result_info = "result[7]"}, tensor<5x6x7xf32> {jax.result_info = "result[8]"}, tensor<5x6x7xf32> {jax.result_info = "result[9]"}, tensor<5x6x7xf32> {jax.result_info = "result[10]"}, tensor<6x7xf32> {jax.result_info = "result[11]"}, tensor<5x6x7xf32> {jax.result_info = "result[12]"}, tensor<5x6x7xi1> {jax.result_info = "result[13]"}, tensor<4x7xf32> {jax.result_info = "result[14]"}, tensor<5x6x7xf32> {jax.result_info = "result[15]"}) {
    %c = stablehlo.constant dense<[-9, 2, 8, -1]> : tensor<4xi32>
    %c_0 = stablehlo.constant dense<[true, false, false, true]> : tensor<4xi1>
    %c_1 = stablehlo.constant dense<[2, 8, -1]> : tensor<3xi32>
    %c_2 = stablehlo.constant dense<[false, false, true]> : tensor<3xi1>
    %c_3 = stablehlo.constant dense<[true, false, false, true]> : tensor<4xi1>
    %c_4 = stablehlo.constant dense<[[1, 2]]> : tensor<1x2xi32>
    %c_5 = stablehlo.constant dense<[true, false, false, true]> : tensor<4xi1>
    %c_6 = stablehlo.constant dense<[true, false, false, true]> : tensor<4xi1>
    %c_7 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.broadcast_in_dim %c_7, dims = [] : (tensor<i32>) -> tensor<5x3xi32>
    %1 = stablehlo.compare LT, %arg1, %0, SIGNED : (tensor<5x3xi32>, tensor<5x3xi32>) -> tensor<5x3xi1>
    %c_8 = stablehlo.constant dense<5> : tensor<i32>
    %2 = stablehlo.broadcast_in_dim %c_8, dims = [] : (tensor<i32>) -> tensor<5x3xi32>
    %3 = stablehlo.add %arg1, %2 : tensor<5x3xi32>
    %4 = stablehlo.select %1, %3, %arg1 : tensor<5x3xi1>, tensor<5x3xi32>
    %c_9 = stablehlo.constant dense<0> : tensor<i32>
    %5 = stablehlo.broadcast_in_dim %c_9, dims = [] : (tensor<i32>) -> tensor<5x3xi32>
    %6 = stablehlo.compare LT, %arg1, %5, SIGNED : (tensor<5x3xi32>, tensor<5x3xi32>) -> tensor<5x3xi1>
    %c_10 = stablehlo.constant dense<7> : tensor<i32>
    %7 = stablehlo.broadcast_in_dim %c_10, dims = [] : (tensor<i32>) -> tensor<5x3xi32>
    %8 = stablehlo.add %arg1, %7 : tensor<5x3xi32>
    %9 = stablehlo.select %6, %8, %arg1 : tensor<5x3xi1>, tensor<5x3xi32>
    %10 = stablehlo.broadcast_in_dim %4, dims = [0, 1] : (tensor<5x3xi32>) -> tensor<5x3x1xi32>
    %11 = stablehlo.broadcast_in_dim %9, dims = [0, 1] : (tensor<5x3xi32>) -> tensor<5x3x1xi32>
    %12 = stablehlo.concatenate %10, %11, dim = 2 : (tensor<5x3x1xi32>, tensor<5x3x1xi32>) -> tensor<5x3x2xi32>
    %13 = "stablehlo.gather"(%arg0, %12) <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [0, 2], start_index_map = [0, 2], index_vector_dim = 2>, indices_are_sorted = false, slice_sizes = array<i64: 1, 6, 1>}> : (tensor<5x6x7xf32>, tensor<5x3x2xi32>) -> tensor<5x3x6xf32>
    %c_11 = stablehlo.constant dense<5> : tensor<i32>
    %14 = stablehlo.broadcast_in_dim %c_11, dims = [] : (tensor<i32>) -> tensor<4xi32>
    %15 = stablehlo.add %c, %14 : tensor<4xi32>
    %16 = stablehlo.select %c_0, %15, %c : tensor<4xi1>, tensor<4xi32>
    %17 = stablehlo.broadcast_in_dim %16, dims = [0] : (tensor<4xi32>) -> tensor<4x1xi32>
    %c_12 = stablehlo.constant dense<4> : tensor<1xi32>
    %c_13 = stablehlo.constant dense<0> : tensor<i32>
    %18 = stablehlo.broadcast_in_dim %c_13, dims = [] : (tensor<i32>) -> tensor<4x1xi32>
    %19 = stablehlo.compare GE, %17, %18, SIGNED : (tensor<4x1xi32>, tensor<4x1xi32>) -> tensor<4x1xi1>
    %20 = stablehlo.broadcast_in_dim %c_12, dims = [1] : (tensor<1xi32>) -> tensor<1x1xi32>
    %21 = stablehlo.broadcast_in_dim %20, dims = [0, 1] : (tensor<1x1xi32>) -> tensor<4x1xi32>
    %22 = stablehlo.compare LE, %17, %21, SIGNED : (tensor<4x1xi32>, tensor<4x1xi32>) -> tensor<4x1xi1>
    %23 = stablehlo.and %19, %22 : tensor<4x1xi1>
    %c_14 = stablehlo.constant dense<true> : tensor<i1>
    %24 = stablehlo.reduce(%23 init: %c_14) applies stablehlo.and across dimensions = [1] : (tensor<4x1xi1>, tensor<i1>) -> tensor<4xi1>
    %25 = "stablehlo.gather"(%arg0, %17) <{dimension_numbers = #stablehlo.gather<offset_dims = [1, 2], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 6, 7>}> : (tensor<5x6x7xf32>, tensor<4x1xi32>) -> tensor<4x6x7xf32>
    %26 = stablehlo.broadcast_in_dim %24, dims = [0] : (tensor<4xi1>) -> tensor<4x6x7xi1>
    %cst = stablehlo.constant dense<7.000000e+00> : tensor<f32>
    %27 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4x6x7xf32>
    %28 = stablehlo.select %26, %25, %27 : tensor<4x6x7xi1>, tensor<4x6x7xf32>
    %c_15 = stablehlo.constant dense<5> : tensor<i32>
    %29 = stablehlo.broadcast_in_dim %c_15, dims = [] : (tensor<i32>) -> tensor<3xi32>
    %30 = stablehlo.add %c_1, %29 : tensor<3xi32>
    %31 = stablehlo.select %c_2, %30, %c_1 : tensor<3xi1>, tensor<3xi32>
    %32 = stablehlo.broadcast_in_dim %31, dims = [0] : (tensor<3xi32>) -> tensor<3x1xi32>
    %33 = "stablehlo.gather"(%arg0, %32) <{dimension_numbers = #stablehlo.gather<offset_dims = [1, 2], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 6, 7>}> : (tensor<5x6x7xf32>, tensor<3x1xi32>) -> tensor<3x6x7xf32>
    %c_16 = stablehlo.constant dense<5> : tensor<i32>
    %34 = stablehlo.broadcast_in_dim %c_16, dims = [] : (tensor<i32>) -> tensor<4xi32>
    %35 = stablehlo.add %c, %34 : tensor<4xi32>
    %36 = stablehlo.select %c_3, %35, %c : tensor<4xi1>, tensor<4xi32>
    %37 = stablehlo.broadcast_in_dim %36, dims = [0] : (tensor<4xi32>) -> tensor<4x1xi32>
    %38 = "stablehlo.gather"(%arg0, %37) <{dimension_numbers = #stablehlo.gather<offset_dims = [1, 2], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 6, 7>}> : (tensor<5x6x7xf32>, tensor<4x1xi32>) -> tensor<4x6x7xf32>
    %39 = stablehlo.slice %arg1 [0:1, 0:3] : (tensor<5x3xi32>) -> tensor<1x3xi32>
    %40 = stablehlo.reshape %39 : (tensor<1x3xi32>) -> tensor<1x1x1x3xi32>
    %41 = stablehlo.broadcast_in_dim %40, dims = [0, 1, 2, 3] : (tensor<1x1x1x3xi32>) -> tensor<5x1x1x3xi32>
    %42 = stablehlo.reshape %41 : (tensor<5x1x1x3xi32>) -> tensor<5x3xi32>
    %c_17 = stablehlo.constant dense<0> : tensor<i32>
    %43 = stablehlo.broadcast_in_dim %c_17, dims = [] : (tensor<i32>) -> tensor<5x3xi32>
    %44 = stablehlo.compare LT, %42, %43, SIGNED : (tensor<5x3xi32>, tensor<5x3xi32>) -> tensor<5x3xi1>
    %c_18 = stablehlo.constant dense<6> : tensor<i32>
    %45 = stablehlo.broadcast_in_dim %c_18, dims = [] : (tensor<i32>) -> tensor<5x3xi32>
    %46 = stablehlo.add %42, %45 : tensor<5x3xi32>
    %47 = stablehlo.select %44, %46, %42 : tensor<5x3xi1>, tensor<5x3xi32>
    %48 = stablehlo.broadcast_in_dim %47, dims = [0, 1] : (tensor<5x3xi32>) -> tensor<5x3x1xi32>
    %49 = "stablehlo.gather"(%arg0, %48) <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 2>, indices_are_sorted = false, slice_sizes = array<i64: 1, 1, 7>}> : (tensor<5x6x7xf32>, tensor<5x3x1xi32>) -> tensor<5x3x7xf32>
    %50 = stablehlo.broadcast_in_dim %arg1, dims = [0, 1] : (tensor<5x3xi32>) -> tensor<5x3x1xi32>
    %51 = stablehlo.reshape %50 : (tensor<5x3x1xi32>) -> tensor<1x5x1x3x1x1xi32>
    %52 = stablehlo.broadcast_in_dim %51, dims = [0, 1, 2, 3, 4, 5] : (tensor<1x5x1x3x1x1xi32>) -> tensor<1x5x1x3x7x1xi32>
    %53 = stablehlo.reshape %52 : (tensor<1x5x1x3x7x1xi32>) -> tensor<5x3x7xi32>
    %54 = call @take_along_axis(%arg0, %53) : (tensor<5x6x7xf32>, tensor<5x3x7xi32>) -> tensor<5x3x7xf32>
    %55 = stablehlo.slice %arg1 [0:5, 0:1] : (tensor<5x3xi32>) -> tensor<5x1xi32>
    %56 = stablehlo.reshape %55 : (tensor<5x1xi32>) -> tensor<5xi32>
    %c_19 = stablehlo.constant dense<0> : tensor<i32>
    %57 = stablehlo.broadcast_in_dim %c_19, dims = [] : (tensor<i32>) -> tensor<5xi32>
    %58 = stablehlo.compare LT, %56, %57, SIGNED : (tensor<5xi32>, tensor<5xi32>) -> tensor<5xi1>
    %c_20 = stablehlo.constant dense<6> : tensor<i32>
    %59 = stablehlo.broadcast_in_dim %c_20, dims = [] : (tensor<i32>) -> tensor<5xi32>
    %60 = stablehlo.add %56, %59 : tensor<5xi32>
    %61 = stablehlo.select %58, %60, %56 : tensor<5xi1>, tensor<5xi32>
    %62 = stablehlo.broadcast_in_dim %61, dims = [0] : (tensor<5xi32>) -> tensor<5x1xi32>
    %c_21 = stablehlo.constant dense<0> : tensor<i32>
    %63 = stablehlo.broadcast_in_dim %c_21, dims = [] : (tensor<i32>) -> tensor<5x1xi32>
    %64 = stablehlo.concatenate %62, %63, dim = 1 : (tensor<5x1xi32>, tensor<5x1xi32>) -> tensor<5x2xi32>
    %65 = "stablehlo.gather"(%arg0, %64) <{dimension_numbers = #stablehlo.gather<offset_dims = [1, 2], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1, 2], index_vector_dim = 1>, indices_are_sorted = true, slice_sizes = array<i64: 1, 2, 7>}> : (tensor<5x6x7xf32>, tensor<5x2xi32>) -> tensor<5x2x7xf32>
    %66 = stablehlo.slice %arg1 [0:5, 0:1] : (tensor<5x3xi32>) -> tensor<5x1xi32>
    %67 = stablehlo.reshape %66 : (tensor<5x1xi32>) -> tensor<5xi32>
    %c_22 = stablehlo.constant dense<0> : tensor<i32>
    %68 = stablehlo.broadcast_in_dim %c_22, dims = [] : (tensor<i32>) -> tensor<5xi32>
    %69 = stablehlo.compare LT, %67, %68, SIGNED : (tensor<5xi32>, tensor<5xi32>) -> tensor<5xi1>
    %c_23 = stablehlo.constant dense<6> : tensor<i32>
    %70 = stablehlo.broadcast_in_dim %c_23, dims = [] : (tensor<i32>) -> tensor<5xi32>
    %71 = stablehlo.add %67, %70 : tensor<5xi32>
    %72 = stablehlo.select %69, %71, %67 : tensor<5xi1>, tensor<5xi32>
    %73 = stablehlo.broadcast_in_dim %72, dims = [0] : (tensor<5xi32>) -> tensor<5x1xi32>
    %c_24 = stablehlo.constant dense<0> : tensor<i32>
    %74 = stablehlo.broadcast_in_dim %c_24, dims = [] : (tensor<i32>) -> tensor<5x1xi32>
    %75 = stablehlo.concatenate %73, %74, dim = 1 : (tensor<5x1xi32>, tensor<5x1xi32>) -> tensor<5x2xi32>
    %c_25 = stablehlo.constant dense<[3, 0]> : tensor<2xi32>
    %c_26 = stablehlo.constant dense<2147483647> : tensor<i32>
    %76 = stablehlo.broadcast_in_dim %c_26, dims = [] : (tensor<i32>) -> tensor<2xi32>
    %77 = stablehlo.minimum %c_25, %76 : tensor<2xi32>
    %78 = stablehlo.broadcast_in_dim %77, dims = [1] : (tensor<2xi32>) -> tensor<5x2xi32>
    %c_27 = stablehlo.constant dense<0> : tensor<i32>
    %79 = stablehlo.broadcast_in_dim %c_27, dims = [] : (tensor<i32>) -> tensor<5x2xi32>
    %80 = stablehlo.clamp %79, %75, %78 : tensor<5x2xi32>
    %81 = "stablehlo.scatter"(%arg0, %80, %arg2) <{indices_are_sorted = true, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1, 2], input_batching_dims = [0], scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1, 2], index_vector_dim = 1>, unique_indices = true}> ({
    ^bb0(%arg4: tensor<f32>, %arg5: tensor<f32>):
      stablehlo.return %arg5 : tensor<f32>
    }) : (tensor<5x6x7xf32>, tensor<5x2xi32>, tensor<5x3x7xf32>) -> tensor<5x6x7xf32>
    %c_28 = stablehlo.constant dense<0> : tensor<i32>
    %82 = stablehlo.broadcast_in_dim %c_28, dims = [] : (tensor<i32>) -> tensor<5x3xi32>
    %83 = stablehlo.compare LT, %42, %82, SIGNED : (tensor<5x3xi32>, tensor<5x3xi32>) -> tensor<5x3xi1>
    %c_29 = stablehlo.constant dense<6> : tensor<i32>
    %84 = stablehlo.broadcast_in_dim %c_29, dims = [] : (tensor<i32>) -> tensor<5x3xi32>
    %85 = stablehlo.add %42, %84 : tensor<5x3xi32>
    %86 = stablehlo.select %83, %85, %42 : tensor<5x3xi1>, tensor<5x3xi32>
    %87 = stablehlo.broadcast_in_dim %86, dims = [0, 1] : (tensor<5x3xi32>) -> tensor<5x3x1xi32>
    %88 = "stablehlo.scatter"(%arg0, %87, %arg2) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [2], inserted_window_dims = [1], input_batching_dims = [0], scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 2>, unique_indices = false}> ({
    ^bb0(%arg4: tensor<f32>, %arg5: tensor<f32>):
      %156 = stablehlo.add %arg4, %arg5 : tensor<f32>
      stablehlo.return %156 : tensor<f32>
    }) : (tensor<5x6x7xf32>, tensor<5x3x1xi32>, tensor<5x3x7xf32>) -> tensor<5x6x7xf32>
    %89 = "stablehlo.scatter"(%arg0, %c_4, %arg3) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1, 2, 3], scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 1>, unique_indices = false}> ({
    ^bb0(%arg4: tensor<f32>, %arg5: tensor<f32>):
      %156 = stablehlo.add %arg4, %arg5 : tensor<f32>
      stablehlo.return %156 : tensor<f32>
    }) : (tensor<5x6x7xf32>, tensor<1x2xi32>, tensor<1x2x3x7xf32>) -> tensor<5x6x7xf32>
    %c_30 = stablehlo.constant dense<0> : tensor<i32>
    %90 = stablehlo.broadcast_in_dim %c_30, dims = [] : (tensor<i32>) -> tensor<5x3xi32>
    %91 = stablehlo.compare LT, %arg1, %90, SIGNED : (tensor<5x3xi32>, tensor<5x3xi32>) -> tensor<5x3xi1>
    %c_31 = stablehlo.constant dense<5> : tensor<i32>
    %92 = stablehlo.broadcast_in_dim %c_31, dims = [] : (tensor<i32>) -> tensor<5x3xi32>
    %93 = stablehlo.add %arg1, %92 : tensor<5x3xi32>
    %94 = stablehlo.select %91, %93, %arg1 : tensor<5x3xi1>, tensor<5x3xi32>
    %c_32 = stablehlo.constant dense<0> : tensor<i32>
    %95 = stablehlo.broadcast_in_dim %c_32, dims = [] : (tensor<i32>) -> tensor<5x3xi32>
    %96 = stablehlo.compare LT, %arg1, %95, SIGNED : (tensor<5x3xi32>, tensor<5x3xi32>) -> tensor<5x3xi1>
    %c_33 = stablehlo.constant dense<6> : tensor<i32>
    %97 = stablehlo.broadcast_in_dim %c_33, dims = [] : (tensor<i32>) -> tensor<5x3xi32>
    %98 = stablehlo.add %arg1, %97 : tensor<5x3xi32>
    %99 = stablehlo.select %96, %98, %arg1 : tensor<5x3xi1>, tensor<5x3xi32>
    %100 = stablehlo.broadcast_in_dim %94, dims = [0, 1] : (tensor<5x3xi32>) -> tensor<5x3x1xi32>
    %101 = stablehlo.broadcast_in_dim %99, dims = [0, 1] : (tensor<5x3xi32>) -> tensor<5x3x1xi32>
    %102 = stablehlo.concatenate %100, %101, dim = 2 : (tensor<5x3x1xi32>, tensor<5x3x1xi32>) -> tensor<5x3x2xi32>
    %cst_34 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %103 = stablehlo.broadcast_in_dim %cst_34, dims = [] : (tensor<f32>) -> tensor<5x3x7xf32>
    %104 = "stablehlo.scatter"(%arg0, %102, %103) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [2], inserted_window_dims = [0, 1], scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 2>, unique_indices = false}> ({
    ^bb0(%arg4: tensor<f32>, %arg5: tensor<f32>):
      %156 = stablehlo.subtract %arg4, %arg5 : tensor<f32>
      stablehlo.return %156 : tensor<f32>
    }) : (tensor<5x6x7xf32>, tensor<5x3x2xi32>, tensor<5x3x7xf32>) -> tensor<5x6x7xf32>
    %105 = stablehlo.slice %arg0 [0:1, 0:6, 0:7] : (tensor<5x6x7xf32>) -> tensor<1x6x7xf32>
    %106 = stablehlo.reshape %105 : (tensor<1x6x7xf32>) -> tensor<6x7xf32>
    %c_35 = stablehlo.constant dense<0> : tensor<i32>
    %107 = stablehlo.broadcast_in_dim %c_35, dims = [] : (tensor<i32>) -> tensor<5x3xi32>
    %108 = stablehlo.compare LT, %arg1, %107, SIGNED : (tensor<5x3xi32>, tensor<5x3xi32>) -> tensor<5x3xi1>
    %c_36 = stablehlo.constant dense<6> : tensor<i32>
    %109 = stablehlo.broadcast_in_dim %c_36, dims = [] : (tensor<i32>) -> tensor<5x3xi32>
    %110 = stablehlo.add %arg1, %109 : tensor<5x3xi32>
    %111 = stablehlo.select %108, %110, %arg1 : tensor<5x3xi1>, tensor<5x3xi32>
    %c_37 = stablehlo.constant dense<0> : tensor<i32>
    %112 = stablehlo.broadcast_in_dim %c_37, dims = [] : (tensor<i32>) -> tensor<5x3xi32>
    %113 = stablehlo.compare LT, %arg1, %112, SIGNED : (tensor<5x3xi32>, tensor<5x3xi32>) -> tensor<5x3xi1>
    %c_38 = stablehlo.constant dense<7> : tensor<i32>
    %114 = stablehlo.broadcast_in_dim %c_38, dims = [] : (tensor<i32>) -> tensor<5x3xi32>
    %115 = stablehlo.add %arg1, %114 : tensor<5x3xi32>
    %116 = stablehlo.select %113, %115, %arg1 : tensor<5x3xi1>, tensor<5x3xi32>
    %117 = stablehlo.broadcast_in_dim %111, dims = [0, 1] : (tensor<5x3xi32>) -> tensor<5x3x1xi32>
    %118 = stablehlo.broadcast_in_dim %116, dims = [0, 1] : (tensor<5x3xi32>) -> tensor<5x3x1xi32>
    %119 = stablehlo.concatenate %117, %118, dim = 2 : (tensor<5x3x1xi32>, tensor<5x3x1xi32>) -> tensor<5x3x2xi32>
    %cst_39 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %120 = stablehlo.broadcast_in_dim %cst_39, dims = [] : (tensor<f32>) -> tensor<5x3xf32>
    %121 = "stablehlo.scatter"(%106, %119, %120) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0, 1], scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 2>, unique_indices = false}> ({
    ^bb0(%arg4: tensor<f32>, %arg5: tensor<f32>):
      %156 = stablehlo.multiply %arg4, %arg5 : tensor<f32>
      stablehlo.return %156 : tensor<f32>
    }) : (tensor<6x7xf32>, tensor<5x3x2xi32>, tensor<5x3xf32>) -> tensor<6x7xf32>
    %c_40 = stablehlo.constant dense<5> : tensor<i32>
    %122 = stablehlo.broadcast_in_dim %c_40, dims = [] : (tensor<i32>) -> tensor<4xi32>
    %123 = stablehlo.add %c, %122 : tensor<4xi32>
    %124 = stablehlo.select %c_5, %123, %c : tensor<4xi1>, tensor<4xi32>
    %125 = stablehlo.broadcast_in_dim %124, dims = [0] : (tensor<4xi32>) -> tensor<4x1xi32>
    %cst_41 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %126 = stablehlo.broadcast_in_dim %cst_41, dims = [] : (tensor<f32>) -> tensor<4x6x7xf32>
    %127 = "stablehlo.scatter"(%arg0, %125, %126) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1, 2], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false}> ({
    ^bb0(%arg4: tensor<f32>, %arg5: tensor<f32>):
      %156 = stablehlo.add %arg4, %arg5 : tensor<f32>
      stablehlo.return %156 : tensor<f32>
    }) : (tensor<5x6x7xf32>, tensor<4x1xi32>, tensor<4x6x7xf32>) -> tensor<5x6x7xf32>
    %cst_42 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %128 = stablehlo.broadcast_in_dim %cst_42, dims = [] : (tensor<f32>) -> tensor<5x6x7xf32>
    %129 = stablehlo.compare GT, %arg0, %128, FLOAT : (tensor<5x6x7xf32>, tensor<5x6x7xf32>) -> tensor<5x6x7xi1>
    %c_43 = stablehlo.constant dense<5> : tensor<i32>
    %130 = stablehlo.broadcast_in_dim %c_43, dims = [] : (tensor<i32>) -> tensor<4xi32>
    %131 = stablehlo.add %c, %130 : tensor<4xi32>
    %132 = stablehlo.select %c_6, %131, %c : tensor<4xi1>, tensor<4xi32>
    %133 = stablehlo.broadcast_in_dim %132, dims = [0] : (tensor<4xi32>) -> tensor<4x1xi32>
    %c_44 = stablehlo.constant dense<true> : tensor<i1>
    %134 = stablehlo.broadcast_in_dim %c_44, dims = [] : (tensor<i1>) -> tensor<4x6x7xi1>
    %135 = "stablehlo.scatter"(%129, %133, %134) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1, 2], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false}> ({
    ^bb0(%arg4: tensor<i1>, %arg5: tensor<i1>):
      stablehlo.return %arg5 : tensor<i1>
    }) : (tensor<5x6x7xi1>, tensor<4x1xi32>, tensor<4x6x7xi1>) -> tensor<5x6x7xi1>
    %136 = stablehlo.slice %arg0 [0:5, 0:1, 0:7] : (tensor<5x6x7xf32>) -> tensor<5x1x7xf32>
    %137 = stablehlo.reshape %136 : (tensor<5x1x7xf32>) -> tensor<5x7xf32>
    %138 = stablehlo.slice %arg1 [0:5, 0:1] : (tensor<5x3xi32>) -> tensor<5x1xi32>
    %139 = stablehlo.reshape %138 : (tensor<5x1xi32>) -> tensor<5xi32>
    %cst_45 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %140 = stablehlo.broadcast_in_dim %cst_45, dims = [] : (tensor<f32>) -> tensor<4x7xf32>
    %141 = stablehlo.broadcast_in_dim %139, dims = [0] : (tensor<5xi32>) -> tensor<5x1xi32>
    %142 = "stablehlo.scatter"(%140, %141, %137) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false}> ({
    ^bb0(%arg4: tensor<f32>, %arg5: tensor<f32>):
      %156 = stablehlo.maximum %arg4, %arg5 : tensor<f32>
      stablehlo.return %156 : tensor<f32>
    }) : (tensor<4x7xf32>, tensor<5x1xi32>, tensor<5x7xf32>) -> tensor<4x7xf32>
    %c_46 = stablehlo.constant dense<0> : tensor<i32>
    %143 = stablehlo.broadcast_in_dim %c_46, dims = [] : (tensor<i32>) -> tensor<5x3xi32>
    %144 = stablehlo.compare LT, %arg1, %143, SIGNED : (tensor<5x3xi32>, tensor<5x3xi32>) -> tensor<5x3xi1>
    %c_47 = stablehlo.constant dense<5> : tensor<i32>
    %145 = stablehlo.broadcast_in_dim %c_47, dims = [] : (tensor<i32>) -> tensor<5x3xi32>
    %146 = stablehlo.add %arg1, %145 : tensor<5x3xi32>
    %147 = stablehlo.select %144, %146, %arg1 : tensor<5x3xi1>, tensor<5x3xi32>
    %148 = stablehlo.broadcast_in_dim %147, dims = [0, 1] : (tensor<5x3xi32>) -> tensor<5x3x1xi32>
    %149 = "stablehlo.gather"(%arg0, %148) <{dimension_numbers = #stablehlo.gather<offset_dims = [2, 3], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2>, indices_are_sorted = false, slice_sizes = array<i64: 1, 6, 7>}> : (tensor<5x6x7xf32>, tensor<5x3x1xi32>) -> tensor<5x3x6x7xf32>
    %cst_48 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %150 = stablehlo.broadcast_in_dim %cst_48, dims = [] : (tensor<f32>) -> tensor<5x3x6x7xf32>
    %151 = stablehlo.multiply %150, %149 : tensor<5x3x6x7xf32>
    %cst_49 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %152 = stablehlo.broadcast_in_dim %cst_49, dims = [] : (tensor<f32>) -> tensor<5x3x6x7xf32>
    %153 = stablehlo.multiply %152, %151 : tensor<5x3x6x7xf32>
    %cst_50 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %154 = stablehlo.broadcast_in_dim %cst_50, dims = [] : (tensor<f32>) -> tensor<5x6x7xf32>
    %155 = "stablehlo.scatter"(%154, %148, %153) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [2, 3], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 2>, unique_indices = false}> ({
    ^bb0(%arg4: tensor<f32>, %arg5: tensor<f32>):
      %156 = stablehlo.add %arg4, %arg5 : tensor<f32>
      stablehlo.return %156 : tensor<f32>
    }) : (tensor<5x6x7xf32>, tensor<5x3x1xi32>, tensor<5x3x6x7xf32>) -> tensor<5x6x7xf32>
    return %13, %28, %33, %38, %49, %54, %65, %81, %88, %89, %104, %121, %127, %135, %142, %155 : tensor<5x3x6xf32>, tensor<4x6x7xf32>, tensor<3x6x7xf32>, tensor<4x6x7xf32>, tensor<5x3x7xf32>, tensor<5x3x7xf32>, tensor<5x2x7xf32>, tensor<5x6x7xf32>, tensor<5x6x7xf32>, tensor<5x6x7xf32>, tensor<5x6x7xf32>, tensor<6x7xf32>, tensor<5x6x7xf32>, tensor<5x6x7xi1>, tensor<4x7xf32>, tensor<5x6x7xf32>
  }
  func.func private @take_along_axis(%arg0: tensor<5x6x7xf32>, %arg1: tensor<5x3x7xi32>) -> tensor<5x3x7xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<5x3x7xi32>
    %1 = stablehlo.compare LT, %arg1, %0, SIGNED : (tensor<5x3x7xi32>, tensor<5x3x7xi32>) -> tensor<5x3x7xi1>
    %c_0 = stablehlo.constant dense<6> : tensor<i32>
    %2 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<5x3x7xi32>
    %3 = stablehlo.add %arg1, %2 : tensor<5x3x7xi32>
    %4 = stablehlo.select %1, %3, %arg1 : tensor<5x3x7xi1>, tensor<5x3x7xi32>
    %5 = stablehlo.reshape %4 : (tensor<5x3x7xi32>) -> tensor<5x3x7x1xi32>
    %c_1 = stablehlo.constant dense<5> : tensor<1xi32>
    %c_2 = stablehlo.constant dense<0> : tensor<i32>
    %6 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i32>) -> tensor<5x3x7x1xi32>
    %7 = stablehlo.compare GE, %5, %6, SIGNED : (tensor<5x3x7x1xi32>, tensor<5x3x7x1xi32>) -> tensor<5x3x7x1xi1>
    %8 = stablehlo.broadcast_in_dim %c_1, dims = [3] : (tensor<1xi32>) -> tensor<1x1x1x1xi32>
    %9 = stablehlo.broadcast_in_dim %8, dims = [0, 1, 2, 3] : (tensor<1x1x1x1xi32>) -> tensor<5x3x7x1xi32>
    %10 = stablehlo.compare LE, %5, %9, SIGNED : (tensor<5x3x7x1xi32>, tensor<5x3x7x1xi32>) -> tensor<5x3x7x1xi1>
    %11 = stablehlo.and %7, %10 : tensor<5x3x7x1xi1>
    %c_3 = stablehlo.constant dense<true> : tensor<i1>
    %12 = stablehlo.reduce(%11 init: %c_3) applies stablehlo.and across dimensions = [3] : (tensor<5x3x7x1xi1>, tensor<i1>) -> tensor<5x3x7xi1>
    %13 = "stablehlo.gather"(%arg0, %5) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [1], operand_batching_dims = [0, 2], start_indices_batching_dims = [0, 2], start_index_map = [1], index_vector_dim = 3>, indices_are_sorted = false, slice_sizes = array<i64: 1, 1, 1>}> : (tensor<5x6x7xf32>, tensor<5x3x7x1xi32>) -> tensor<5x3x7xf32>
    %cst = stablehlo.constant dense<0x7FC00000> : tensor<f32>
    %14 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<5x3x7xf32>
    %15 = stablehlo.select %12, %13, %14 : tensor<5x3x7xi1>, tensor<5x3x7xf32>
    return %15 : tensor<5x3x7xf32>
  }
}
