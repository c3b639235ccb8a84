// Tiles as IREE's data tiling makes them, padded to whole ones, and back.
func.func @packing(%x: tensor<5x7xf32>) -> (tensor<3x2x2x4xf32>, tensor<5x7xf32>, tensor<2x5x4xf32>) {
  %zero = arith.constant 2.5 : f32
  %empty = tensor.empty() : tensor<3x2x2x4xf32>
  %packed = linalg.pack %x padding_value(%zero : f32) inner_dims_pos = [0, 1] inner_tiles = [2, 4] into %empty : tensor<5x7xf32> -> tensor<3x2x2x4xf32>
  %plain = tensor.empty() : tensor<5x7xf32>
  %back = linalg.unpack %packed inner_dims_pos = [0, 1] inner_tiles = [2, 4] into %plain : tensor<3x2x2x4xf32> -> tensor<5x7xf32>
  %columns = tensor.empty() : tensor<2x5x4xf32>
  %turned = tensor.pack %x padding_value(%zero : f32) outer_dims_perm = [1, 0] inner_dims_pos = [1] inner_tiles = [4] into %columns : tensor<5x7xf32> -> tensor<2x5x4xf32>
  return %packed, %back, %turned : tensor<3x2x2x4xf32>, tensor<5x7xf32>, tensor<2x5x4xf32>
}
