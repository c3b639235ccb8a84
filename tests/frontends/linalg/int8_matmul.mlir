#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>
func.func @quantized(%x: tensor<4x8xi8>, %y: tensor<8x6xi8>) -> (tensor<4x6xi32>, tensor<4x6xi32>) {
  %c0 = arith.constant 0 : i32
  %c3 = arith.constant 3 : i32
  %cm2 = arith.constant -2 : i32
  %e = tensor.empty() : tensor<4x6xi32>
  %i = linalg.fill ins(%c0 : i32) outs(%e : tensor<4x6xi32>) -> tensor<4x6xi32>
  %r = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %y : tensor<4x8xi8>, tensor<8x6xi8>) outs(%i : tensor<4x6xi32>) {
  ^bb0(%p: i8, %q: i8, %acc: i32):
    %0 = arith.extsi %p : i8 to i32
    %1 = arith.extsi %q : i8 to i32
    %2 = arith.muli %0, %1 : i32
    %3 = arith.addi %acc, %2 : i32
    linalg.yield %3 : i32
  } -> tensor<4x6xi32>
  %z = linalg.quantized_matmul ins(%x, %y, %c3, %cm2 : tensor<4x8xi8>, tensor<8x6xi8>, i32, i32) outs(%i : tensor<4x6xi32>) -> tensor<4x6xi32>
  return %r, %z : tensor<4x6xi32>, tensor<4x6xi32>
}
