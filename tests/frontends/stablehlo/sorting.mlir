module @jit_sorting attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<3x9xf32>, %arg1: tensor<9xi32>) -> (tensor<3x9xf32> {jax.result_info = "result[0]"}, tensor<3x9xi32> {jax.result_info = "result[1]"}, tensor<3x9xf32> {jax.result_info = "result[2]"}, tensor<9xi32> {jax.result_info = "result[3]"}, tensor<3x9xf32> {jax.result_info = "result[4][0]"}, tensor<3x9xf32> {jax.result_info = "result[4][1]"}, tensor<3x9xi1> {jax.result_info = "result[4][2]"}, tensor<9xi32> {jax.result_info = "result[5][0]"}, tensor<9xi32> {jax.result_info = "result[5][1]"}, tensor<4xf32> {jax.result_info = "result[6][0]"}, tensor<4xi32> {jax.result_info = "result[6][1]"}, tensor<18xi32> {jax.result_info = "result[7]"}) {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<1xi32>
    %c_0 = stablehlo.constant dense<2> : tensor<i32>
    %1 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<1xi32>
    %2 = stablehlo.concatenate %0, %1, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %cst = stablehlo.constant dense<0x7FC00000> : tensor<f32>
    %3 = "stablehlo.scatter"(%arg0, %2, %cst) <{indices_are_sorted = true, scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0, 1], scatter_dims_to_operand_dims = [0, 1]>, unique_indices = true}> ({
    ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
      stablehlo.return %arg3 : tensor<f32>
    }) : (tensor<3x9xf32>, tensor<2xi32>, tensor<f32>) -> tensor<3x9xf32>
    %c_1 = stablehlo.constant dense<1> : tensor<i32>
    %4 = stablehlo.broadcast_in_dim %c_1, dims = [] : (tensor<i32>) -> tensor<1xi32>
    %c_2 = stablehlo.constant dense<1> : tensor<i32>
    %5 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i32>) -> tensor<1xi32>
    %6 = stablehlo.concatenate %4, %5, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %cst_3 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %7 = "stablehlo.scatter"(%3, %6, %cst_3) <{indices_are_sorted = true, scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0, 1], scatter_dims_to_operand_dims = [0, 1]>, unique_indices = true}> ({
    ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
      stablehlo.return %arg3 : tensor<f32>
    }) : (tensor<3x9xf32>, tensor<2xi32>, tensor<f32>) -> tensor<3x9xf32>
    %8 = call @sort(%7) : (tensor<3x9xf32>) -> tensor<3x9xf32>
    %9 = call @argsort(%7) : (tensor<3x9xf32>) -> tensor<3x9xi32>
    %10 = call @sort_0(%7) : (tensor<3x9xf32>) -> tensor<3x9xf32>
    %11 = call @argsort_1(%arg1) : (tensor<9xi32>) -> tensor<9xi32>
    %cst_4 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %12 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<3x9xf32>
    %13 = stablehlo.add %7, %12 : tensor<3x9xf32>
    %cst_5 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %14 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<3x9xf32>
    %15 = stablehlo.compare GT, %7, %14, FLOAT : (tensor<3x9xf32>, tensor<3x9xf32>) -> tensor<3x9xi1>
    %16:3 = "stablehlo.sort"(%7, %13, %15) <{dimension = 1 : i64, is_stable = true}> ({
    ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>, %arg4: tensor<f32>, %arg5: tensor<f32>, %arg6: tensor<i1>, %arg7: tensor<i1>):
      %cst_6 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %27 = stablehlo.compare EQ, %arg2, %cst_6, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %cst_7 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %28 = stablehlo.select %27, %cst_7, %arg2 : tensor<i1>, tensor<f32>
      %29 = stablehlo.compare NE, %arg2, %arg2, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %cst_8 = stablehlo.constant dense<0x7FC00000> : tensor<f32>
      %30 = stablehlo.select %29, %cst_8, %28 : tensor<i1>, tensor<f32>
      %cst_9 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %31 = stablehlo.compare EQ, %arg3, %cst_9, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %cst_10 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %32 = stablehlo.select %31, %cst_10, %arg3 : tensor<i1>, tensor<f32>
      %33 = stablehlo.compare NE, %arg3, %arg3, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %cst_11 = stablehlo.constant dense<0x7FC00000> : tensor<f32>
      %34 = stablehlo.select %33, %cst_11, %32 : tensor<i1>, tensor<f32>
      %cst_12 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %35 = stablehlo.compare EQ, %arg4, %cst_12, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %cst_13 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %36 = stablehlo.select %35, %cst_13, %arg4 : tensor<i1>, tensor<f32>
      %37 = stablehlo.compare NE, %arg4, %arg4, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %cst_14 = stablehlo.constant dense<0x7FC00000> : tensor<f32>
      %38 = stablehlo.select %37, %cst_14, %36 : tensor<i1>, tensor<f32>
      %cst_15 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %39 = stablehlo.compare EQ, %arg5, %cst_15, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %cst_16 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %40 = stablehlo.select %39, %cst_16, %arg5 : tensor<i1>, tensor<f32>
      %41 = stablehlo.compare NE, %arg5, %arg5, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %cst_17 = stablehlo.constant dense<0x7FC00000> : tensor<f32>
      %42 = stablehlo.select %41, %cst_17, %40 : tensor<i1>, tensor<f32>
      %43 = stablehlo.compare LT, %38, %42, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %44 = stablehlo.compare LT, %30, %34, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %45 = stablehlo.compare EQ, %30, %34, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %46 = stablehlo.and %45, %43 : tensor<i1>
      %47 = stablehlo.or %44, %46 : tensor<i1>
      stablehlo.return %47 : tensor<i1>
    }) : (tensor<3x9xf32>, tensor<3x9xf32>, tensor<3x9xi1>) -> (tensor<3x9xf32>, tensor<3x9xf32>, tensor<3x9xi1>)
    %17 = stablehlo.iota dim = 0 : tensor<9xi32>
    %18:2 = "stablehlo.sort"(%arg1, %17) <{dimension = 0 : i64, is_stable = true}> ({
    ^bb0(%arg2: tensor<i32>, %arg3: tensor<i32>, %arg4: tensor<i32>, %arg5: tensor<i32>):
      %27 = stablehlo.compare LT, %arg2, %arg3, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %27 : tensor<i1>
    }) : (tensor<9xi32>, tensor<9xi32>) -> (tensor<9xi32>, tensor<9xi32>)
    %19 = stablehlo.slice %7 [2:3, 0:9] : (tensor<3x9xf32>) -> tensor<1x9xf32>
    %20 = stablehlo.reshape %19 : (tensor<1x9xf32>) -> tensor<9xf32>
    %values, %indices = chlo.top_k(%20, k = 4) : tensor<9xf32> -> (tensor<4xf32>, tensor<4xi32>)
    %21 = stablehlo.slice %7 [2:3, 0:9] : (tensor<3x9xf32>) -> tensor<1x9xf32>
    %22 = stablehlo.reshape %21 : (tensor<1x9xf32>) -> tensor<9xf32>
    %23 = call @sort_2(%22) : (tensor<9xf32>) -> tensor<9xf32>
    %24 = stablehlo.slice %7 [1:3, 0:9] : (tensor<3x9xf32>) -> tensor<2x9xf32>
    %25 = stablehlo.reshape %24 : (tensor<2x9xf32>) -> tensor<18xf32>
    %26 = call @searchsorted(%23, %25) : (tensor<9xf32>, tensor<18xf32>) -> tensor<18xi32>
    return %8, %9, %10, %11, %16#0, %16#1, %16#2, %18#0, %18#1, %values, %indices, %26 : tensor<3x9xf32>, tensor<3x9xi32>, tensor<3x9xf32>, tensor<9xi32>, tensor<3x9xf32>, tensor<3x9xf32>, tensor<3x9xi1>, tensor<9xi32>, tensor<9xi32>, tensor<4xf32>, tensor<4xi32>, tensor<18xi32>
  }
  func.func private @sort(%arg0: tensor<3x9xf32>) -> tensor<3x9xf32> {
    %0 = "stablehlo.sort"(%arg0) <{dimension = 1 : i64, is_stable = true}> ({
    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
      %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %1 = stablehlo.compare EQ, %arg1, %cst, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %2 = stablehlo.select %1, %cst_0, %arg1 : tensor<i1>, tensor<f32>
      %3 = stablehlo.compare NE, %arg1, %arg1, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %cst_1 = stablehlo.constant dense<0x7FC00000> : tensor<f32>
      %4 = stablehlo.select %3, %cst_1, %2 : tensor<i1>, tensor<f32>
      %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %5 = stablehlo.compare EQ, %arg2, %cst_2, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %cst_3 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %6 = stablehlo.select %5, %cst_3, %arg2 : tensor<i1>, tensor<f32>
      %7 = stablehlo.compare NE, %arg2, %arg2, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %cst_4 = stablehlo.constant dense<0x7FC00000> : tensor<f32>
      %8 = stablehlo.select %7, %cst_4, %6 : tensor<i1>, tensor<f32>
      %9 = stablehlo.compare LT, %4, %8, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %9 : tensor<i1>
    }) : (tensor<3x9xf32>) -> tensor<3x9xf32>
    return %0 : tensor<3x9xf32>
  }
  func.func private @argsort(%arg0: tensor<3x9xf32>) -> tensor<3x9xi32> {
    %0 = stablehlo.iota dim = 0 : tensor<3x9xi32>
    %1:2 = "stablehlo.sort"(%arg0, %0) <{dimension = 0 : i64, is_stable = true}> ({
    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>, %arg3: tensor<i32>, %arg4: tensor<i32>):
      %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %2 = stablehlo.compare EQ, %arg1, %cst, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %3 = stablehlo.select %2, %cst_0, %arg1 : tensor<i1>, tensor<f32>
      %4 = stablehlo.compare NE, %arg1, %arg1, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %cst_1 = stablehlo.constant dense<0x7FC00000> : tensor<f32>
      %5 = stablehlo.select %4, %cst_1, %3 : tensor<i1>, tensor<f32>
      %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %6 = stablehlo.compare EQ, %arg2, %cst_2, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %cst_3 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %7 = stablehlo.select %6, %cst_3, %arg2 : tensor<i1>, tensor<f32>
      %8 = stablehlo.compare NE, %arg2, %arg2, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %cst_4 = stablehlo.constant dense<0x7FC00000> : tensor<f32>
      %9 = stablehlo.select %8, %cst_4, %7 : tensor<i1>, tensor<f32>
      %10 = stablehlo.compare LT, %5, %9, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %10 : tensor<i1>
    }) : (tensor<3x9xf32>, tensor<3x9xi32>) -> (tensor<3x9xf32>, tensor<3x9xi32>)
    return %1#1 : tensor<3x9xi32>
  }
  func.func private @sort_0(%arg0: tensor<3x9xf32>) -> tensor<3x9xf32> {
    %0 = "stablehlo.sort"(%arg0) <{dimension = 1 : i64, is_stable = true}> ({
    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
      %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %2 = stablehlo.compare EQ, %arg1, %cst, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %3 = stablehlo.select %2, %cst_0, %arg1 : tensor<i1>, tensor<f32>
      %4 = stablehlo.compare NE, %arg1, %arg1, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %cst_1 = stablehlo.constant dense<0x7FC00000> : tensor<f32>
      %5 = stablehlo.select %4, %cst_1, %3 : tensor<i1>, tensor<f32>
      %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %6 = stablehlo.compare EQ, %arg2, %cst_2, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %cst_3 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %7 = stablehlo.select %6, %cst_3, %arg2 : tensor<i1>, tensor<f32>
      %8 = stablehlo.compare NE, %arg2, %arg2, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %cst_4 = stablehlo.constant dense<0x7FC00000> : tensor<f32>
      %9 = stablehlo.select %8, %cst_4, %7 : tensor<i1>, tensor<f32>
      %10 = stablehlo.compare LT, %5, %9, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %10 : tensor<i1>
    }) : (tensor<3x9xf32>) -> tensor<3x9xf32>
    %1 = stablehlo.reverse %0, dims = [1] : tensor<3x9xf32>
    return %1 : tensor<3x9xf32>
  }
  func.func private @argsort_1(%arg0: tensor<9xi32>) -> tensor<9xi32> {
    %0 = stablehlo.iota dim = 0 : tensor<9xi32>
    %1 = stablehlo.reverse %arg0, dims = [0] : tensor<9xi32>
    %2 = stablehlo.reverse %0, dims = [0] : tensor<9xi32>
    %3:2 = "stablehlo.sort"(%1, %2) <{dimension = 0 : i64, is_stable = true}> ({
    ^bb0(%arg1: tensor<i32>, %arg2: tensor<i32>, %arg3: tensor<i32>, %arg4: tensor<i32>):
      %5 = stablehlo.compare LT, %arg1, %arg2, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %5 : tensor<i1>
    }) : (tensor<9xi32>, tensor<9xi32>) -> (tensor<9xi32>, tensor<9xi32>)
    %4 = stablehlo.reverse %3#1, dims = [0] : tensor<9xi32>
    return %4 : tensor<9xi32>
  }
  func.func private @sort_2(%arg0: tensor<9xf32>) -> tensor<9xf32> {
    %0 = "stablehlo.sort"(%arg0) <{dimension = 0 : i64, is_stable = true}> ({
    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
      %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %1 = stablehlo.compare EQ, %arg1, %cst, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %2 = stablehlo.select %1, %cst_0, %arg1 : tensor<i1>, tensor<f32>
      %3 = stablehlo.compare NE, %arg1, %arg1, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %cst_1 = stablehlo.constant dense<0x7FC00000> : tensor<f32>
      %4 = stablehlo.select %3, %cst_1, %2 : tensor<i1>, tensor<f32>
      %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %5 = stablehlo.compare EQ, %arg2, %cst_2, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %cst_3 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %6 = stablehlo.select %5, %cst_3, %arg2 : tensor<i1>, tensor<f32>
      %7 = stablehlo.compare NE, %arg2, %arg2, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %cst_4 = stablehlo.constant dense<0x7FC00000> : tensor<f32>
      %8 = stablehlo.select %7, %cst_4, %6 : tensor<i1>, tensor<f32>
      %9 = stablehlo.compare LT, %4, %8, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %9 : tensor<i1>
    }) : (tensor<9xf32>) -> tensor<9xf32>
    return %0 : tensor<9xf32>
  }
  func.func private @searchsorted(%arg0: tensor<9xf32>, %arg1: tensor<18xf32>) -> tensor<18xi32> {
    %0 = call @_searchsorted_scan_impl(%arg0, %arg1) : (tensor<9xf32>, tensor<18xf32>) -> tensor<18xi32>
    return %0 : tensor<18xi32>
  }
  func.func private @_searchsorted_scan_impl(%arg0: tensor<9xf32>, %arg1: tensor<18xf32>) -> tensor<18xi32> {
    %0 = call @_searchsorted_scan_impl_3(%arg0, %arg1) : (tensor<9xf32>, tensor<18xf32>) -> tensor<18xi32>
    return %0 : tensor<18xi32>
  }
  func.func private @_searchsorted_scan_impl_3(%arg0: tensor<9xf32>, %arg1: tensor<18xf32>) -> tensor<18xi32> {
    %c = stablehlo.constant dense<0> : tensor<ui32>
    %0 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<ui32>) -> tensor<18xui32>
    %c_0 = stablehlo.constant dense<9> : tensor<ui32>
    %1 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<ui32>) -> tensor<18xui32>
    %c_1 = stablehlo.constant dense<0> : tensor<i32>
    %2:5 = stablehlo.while(%iterArg = %arg0, %iterArg_2 = %arg1, %iterArg_3 = %c_1, %iterArg_4 = %0, %iterArg_5 = %1) : tensor<9xf32>, tensor<18xf32>, tensor<i32>, tensor<18xui32>, tensor<18xui32>
    cond {
      %c_6 = stablehlo.constant dense<4> : tensor<i32>
      %4 = stablehlo.compare LT, %iterArg_3, %c_6, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %4 : tensor<i1>
    } do {
      %4:2 = func.call @closed_call(%iterArg, %iterArg_2, %iterArg_4, %iterArg_5) : (tensor<9xf32>, tensor<18xf32>, tensor<18xui32>, tensor<18xui32>) -> (tensor<18xui32>, tensor<18xui32>)
      %c_6 = stablehlo.constant dense<1> : tensor<i32>
      %5 = stablehlo.add %iterArg_3, %c_6 : tensor<i32>
      stablehlo.return %iterArg, %iterArg_2, %5, %4#0, %4#1 : tensor<9xf32>, tensor<18xf32>, tensor<i32>, tensor<18xui32>, tensor<18xui32>
    }
    %3 = stablehlo.convert %2#4 : (tensor<18xui32>) -> tensor<18xi32>
    return %3 : tensor<18xi32>
  }
  func.func private @closed_call(%arg0: tensor<9xf32>, %arg1: tensor<18xf32>, %arg2: tensor<18xui32>, %arg3: tensor<18xui32>) -> (tensor<18xui32>, tensor<18xui32>) {
    %0 = stablehlo.subtract %arg3, %arg2 : tensor<18xui32>
    %c = stablehlo.constant dense<2> : tensor<i32>
    %1 = call @floor_divide(%0, %c) : (tensor<18xui32>, tensor<i32>) -> tensor<18xui32>
    %2 = stablehlo.add %arg2, %1 : tensor<18xui32>
    %3 = stablehlo.broadcast_in_dim %2, dims = [0] : (tensor<18xui32>) -> tensor<18x1xui32>
    %4 = "stablehlo.gather"(%arg0, %3) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1>}> : (tensor<9xf32>, tensor<18x1xui32>) -> tensor<18x1xf32>
    %5 = stablehlo.reshape %4 : (tensor<18x1xf32>) -> tensor<18xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %6 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<18xf32>
    %7 = stablehlo.compare EQ, %arg1, %6, FLOAT : (tensor<18xf32>, tensor<18xf32>) -> tensor<18xi1>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %8 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<18xf32>
    %9 = stablehlo.select %7, %8, %arg1 : tensor<18xi1>, tensor<18xf32>
    %10 = stablehlo.compare NE, %arg1, %arg1, FLOAT : (tensor<18xf32>, tensor<18xf32>) -> tensor<18xi1>
    %cst_1 = stablehlo.constant dense<0x7FC00000> : tensor<f32>
    %11 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<18xf32>
    %12 = stablehlo.select %10, %11, %9 : tensor<18xi1>, tensor<18xf32>
    %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %13 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<18xf32>
    %14 = stablehlo.compare EQ, %5, %13, FLOAT : (tensor<18xf32>, tensor<18xf32>) -> tensor<18xi1>
    %cst_3 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %15 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<18xf32>
    %16 = stablehlo.select %14, %15, %5 : tensor<18xi1>, tensor<18xf32>
    %17 = stablehlo.compare NE, %5, %5, FLOAT : (tensor<18xf32>, tensor<18xf32>) -> tensor<18xi1>
    %cst_4 = stablehlo.constant dense<0x7FC00000> : tensor<f32>
    %18 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<18xf32>
    %19 = stablehlo.select %17, %18, %16 : tensor<18xi1>, tensor<18xf32>
    %20 = stablehlo.compare LE, %12, %19, TOTALORDER : (tensor<18xf32>, tensor<18xf32>) -> tensor<18xi1>
    %21 = stablehlo.select %20, %arg2, %2 : tensor<18xi1>, tensor<18xui32>
    %22 = stablehlo.select %20, %2, %arg3 : tensor<18xi1>, tensor<18xui32>
    return %21, %22 : tensor<18xui32>, tensor<18xui32>
  }
  func.func private @floor_divide(%arg0: tensor<18xui32>, %arg1: tensor<i32>) -> tensor<18xui32> {
    %0 = stablehlo.convert %arg1 : (tensor<i32>) -> tensor<ui32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<ui32>) -> tensor<18xui32>
    %2 = stablehlo.divide %arg0, %1 : tensor<18xui32>
    return %2 : tensor<18xui32>
  }
}
