#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> (d0, 0)>
func.func @softmax(%arg0: tensor<3x7xf32>) -> tensor<3x7xf32> {
  %cst = arith.constant 0.000000e+00 : f32
  %cst_0 = arith.constant 0xFF800000 : f32
  %c0_i64 = arith.constant 0 : i64
  %0 = tensor.empty() : tensor<3x1xi64>
  %1 = linalg.fill ins(%c0_i64 : i64) outs(%0 : tensor<3x1xi64>) -> tensor<3x1xi64>
  %2 = tensor.empty() : tensor<3x1xf32>
  %3 = linalg.fill ins(%cst_0 : f32) outs(%2 : tensor<3x1xf32>) -> tensor<3x1xf32>
  %4:2 = linalg.generic {indexing_maps = [#map, #map1, #map1], iterator_types = ["parallel", "reduction"]} ins(%arg0 : tensor<3x7xf32>) outs(%3, %1 : tensor<3x1xf32>, tensor<3x1xi64>) {
  ^bb0(%in: f32, %out: f32, %out_1: i64):
    %10 = linalg.index 1 : index
    %11 = arith.index_cast %10 : index to i64
    %12 = arith.maximumf %in, %out : f32
    %13 = arith.cmpf ogt, %in, %out : f32
    %14 = arith.select %13, %11, %out_1 : i64
    linalg.yield %12, %14 : f32, i64
  } -> (tensor<3x1xf32>, tensor<3x1xi64>)
  %5 = tensor.empty() : tensor<3x7xf32>
  %6 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel"]} ins(%arg0, %4#0 : tensor<3x7xf32>, tensor<3x1xf32>) outs(%5 : tensor<3x7xf32>) {
  ^bb0(%in: f32, %in_1: f32, %out: f32):
    %10 = arith.subf %in, %in_1 : f32
    %11 = math.exp %10 : f32
    linalg.yield %11 : f32
  } -> tensor<3x7xf32>
  %7 = linalg.fill ins(%cst : f32) outs(%2 : tensor<3x1xf32>) -> tensor<3x1xf32>
  %8 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "reduction"]} ins(%6 : tensor<3x7xf32>) outs(%7 : tensor<3x1xf32>) {
  ^bb0(%in: f32, %out: f32):
    %10 = arith.addf %in, %out : f32
    linalg.yield %10 : f32
  } -> tensor<3x1xf32>
  %9 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel"]} ins(%6, %8 : tensor<3x7xf32>, tensor<3x1xf32>) outs(%5 : tensor<3x7xf32>) {
  ^bb0(%in: f32, %in_1: f32, %out: f32):
    %10 = arith.divf %in, %in_1 : f32
    linalg.yield %10 : f32
  } -> tensor<3x7xf32>
  return %9 : tensor<3x7xf32>
}
