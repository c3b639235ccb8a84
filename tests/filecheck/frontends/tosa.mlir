// RUN: xdsl-opt %s --allow-unregistered-dialect -p 'lw-convert-tosa-to-graph' | filecheck %s

// CHECK-LABEL: func.func @layer
// CHECK-NEXT: %y = lw_graph.apply "add" (%x, %b) : (tensor<4x8xf32>, tensor<1x8xf32>) -> tensor<4x8xf32>
// CHECK-NEXT: %z = lw_graph.apply "tanh" (%y) : (tensor<4x8xf32>) -> tensor<4x8xf32>
func.func @layer(%x: tensor<4x8xf32>, %b: tensor<1x8xf32>) -> tensor<4x8xf32> {
  %y = "tosa.add"(%x, %b) : (tensor<4x8xf32>, tensor<1x8xf32>) -> tensor<4x8xf32>
  %z = "tosa.tanh"(%y) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  func.return %z : tensor<4x8xf32>
}

// CHECK-LABEL: func.func @of_others
// CHECK-NEXT: arith.mulf
func.func @of_others(%a: f32) -> f32 {
  %b = arith.mulf %a, %a : f32
  func.return %b : f32
}
