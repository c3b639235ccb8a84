#map = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#last = affine_map<(d0, d1, d2) -> (d1, d0)>
func.func @reductions(%x: tensor<3x4x5xf32>) -> (tensor<4x3xf32>, tensor<3x5xf32>, tensor<f32>, tensor<3xi1>) {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %false = arith.constant false
  %e0 = tensor.empty() : tensor<4x3xf32>
  %i0 = linalg.fill ins(%one : f32) outs(%e0 : tensor<4x3xf32>) -> tensor<4x3xf32>
  %0 = linalg.generic {indexing_maps = [#map, #last], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x : tensor<3x4x5xf32>) outs(%i0 : tensor<4x3xf32>) {
  ^bb0(%in: f32, %out: f32):
    %4 = math.absf %in : f32
    %5 = arith.addf %out, %4 : f32
    linalg.yield %5 : f32
  } -> tensor<4x3xf32>
  %e1 = tensor.empty() : tensor<3x5xf32>
  %i1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<3x5xf32>) -> tensor<3x5xf32>
  %1 = linalg.reduce ins(%x : tensor<3x4x5xf32>) outs(%i1 : tensor<3x5xf32>) dimensions = [1]
    (%in: f32, %init: f32) {
      %4 = arith.maximumf %in, %init : f32
      linalg.yield %4 : f32
    }
  %e2 = tensor.empty() : tensor<f32>
  %i2 = linalg.fill ins(%one : f32) outs(%e2 : tensor<f32>) -> tensor<f32>
  %2 = linalg.reduce { arith.mulf } ins(%x : tensor<3x4x5xf32>) outs(%i2 : tensor<f32>) dimensions = [0, 1, 2]
  %e3 = tensor.empty() : tensor<3xi1>
  %i3 = linalg.fill ins(%false : i1) outs(%e3 : tensor<3xi1>) -> tensor<3xi1>
  %3 = linalg.generic {indexing_maps = [#map, affine_map<(d0, d1, d2) -> (d0)>], iterator_types = ["parallel", "reduction", "reduction"]} ins(%x : tensor<3x4x5xf32>) outs(%i3 : tensor<3xi1>) {
  ^bb0(%in: f32, %out: i1):
    %4 = arith.cmpf ogt, %in, %one : f32
    %5 = arith.ori %4, %out : i1
    linalg.yield %5 : i1
  } -> tensor<3xi1>
  return %0, %1, %2, %3 : tensor<4x3xf32>, tensor<3x5xf32>, tensor<f32>, tensor<3xi1>
}
