// Reads and writes at places, splats and generated tensors.
func.func @places(%x: tensor<10x10x3xf32>, %i: tensor<4x2xindex>, %s: f32) -> (tensor<4x3xf32>, tensor<4x1x10x3xf32>, tensor<2x3xf32>, tensor<2x3xindex>) {
  %rows = tensor.gather %x[%i] gather_dims([0, 1]) : (tensor<10x10x3xf32>, tensor<4x2xindex>) -> tensor<4x3xf32>
  %first = tensor.extract_slice %i[0, 1] [4, 1] [1, 1] : tensor<4x2xindex> to tensor<4x1xindex>
  %blocks = tensor.gather %x[%first] gather_dims([0]) unique : (tensor<10x10x3xf32>, tensor<4x1xindex>) -> tensor<4x1x10x3xf32>
  %whole = tensor.splat %s : tensor<2x3xf32>
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %c = arith.constant 7.0 : f32
  %put = tensor.insert %c into %whole[%one, %two] : tensor<2x3xf32>
  %made = tensor.generate {
  ^bb0(%a: index, %b: index):
    %p = arith.muli %a, %two : index
    %q = arith.addi %p, %b : index
    tensor.yield %q : index
  } : tensor<2x3xindex>
  return %rows, %blocks, %put, %made : tensor<4x3xf32>, tensor<4x1x10x3xf32>, tensor<2x3xf32>, tensor<2x3xindex>
}
