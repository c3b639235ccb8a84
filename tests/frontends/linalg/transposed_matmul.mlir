#a = affine_map<(m, n, k) -> (k, m)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (n, m)>
func.func @product(%x: tensor<8x4xf32>, %y: tensor<6x8xf32>, %z: tensor<6x4xf32>) -> tensor<6x4xf32> {
  %r = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %y : tensor<8x4xf32>, tensor<6x8xf32>) outs(%z : tensor<6x4xf32>) attrs = {lowering_config = #iree_codegen.lowering_config<tile_sizes = [[4, 4, 0]]>} {
  ^bb0(%p: f32, %q: f32, %acc: f32):
    %0 = arith.mulf %p, %q : f32
    %1 = arith.addf %acc, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<6x4xf32>
  return %r : tensor<6x4xf32>
}
