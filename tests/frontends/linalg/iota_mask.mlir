#map = affine_map<(d0, d1) -> (d0, d1)>
func.func @mask(%x: tensor<5x5xf32>) -> tensor<5x5xf32> {
  %low = arith.constant -1.000000e+09 : f32
  %e = tensor.empty() : tensor<5x5xf32>
  %y = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<5x5xf32>) outs(%e : tensor<5x5xf32>) {
  ^bb0(%in: f32, %out: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %c = arith.cmpi sge, %i, %j : index
    %s = arith.select %c, %in, %low : f32
    linalg.yield %s : f32
  } -> tensor<5x5xf32>
  return %y : tensor<5x5xf32>
}
