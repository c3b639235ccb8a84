#map = affine_map<(d0, d1, d2) -> (d0, d1)>
#map1 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
func.func @embedding(%table: tensor<10x4xf32>, %ids: tensor<2x3xi64>) -> tensor<2x3x4xf32> {
  %c10 = arith.constant 10 : i64
  %c0 = arith.constant 0 : i64
  %e = tensor.empty() : tensor<2x3x4xf32>
  %y = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%ids : tensor<2x3xi64>) outs(%e : tensor<2x3x4xf32>) {
  ^bb0(%in: i64, %out: f32):
    %0 = arith.cmpi slt, %in, %c10 : i64
    cf.assert %0, "index must be smaller than dim size"
    %1 = arith.cmpi sge, %in, %c0 : i64
    cf.assert %1, "index must be larger or equal to 0"
    %2 = arith.index_cast %in : i64 to index
    %3 = linalg.index 2 : index
    %extracted = tensor.extract %table[%2, %3] : tensor<10x4xf32>
    linalg.yield %extracted : f32
  } -> tensor<2x3x4xf32>
  return %y : tensor<2x3x4xf32>
}
