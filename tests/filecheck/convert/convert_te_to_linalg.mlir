// RUN: xdsl-opt %s -p lw-convert-te-to-linalg | filecheck %s
// RUN: xdsl-opt %s -p lw-convert-te-to-linalg | xdsl-opt | filecheck %s

// Reads by sums of axes are operands, a guarded one is an element at computed indices, and a sum starts from zeros.

builtin.module attributes {lw.target = #lw.target<"llvm cores=2">} {
  func.func @conv(%data: tensor<5xf32> {lw.name = "data"}, %w: tensor<3xf32> {lw.name = "w"}) -> tensor<5xf32> {
    %pad = lw_te.compute "pad" [x = 7] -> tensor<7xf32> {
      %0 = lw_te.read %data[x - 1] where (x - 1 >= 0, 5 - x >= 0) : tensor<5xf32>
      lw_te.yield %0 : f32
    }
    %conv = lw_te.compute "conv" [x = 5, reduce r = 3] add -> tensor<5xf32> {
      %0 = lw_te.read %pad[x + r] : tensor<7xf32>
      %1 = lw_te.read %w[r] : tensor<3xf32>
      %2 = arith.mulf %0, %1 : f32
      lw_te.yield %2 : f32
    }
    func.return %conv : tensor<5xf32>
  }
}

// CHECK: builtin.module {
// CHECK-NEXT: func.func @conv(%data: tensor<5xf32>, %w: tensor<3xf32>) -> tensor<5xf32> {
// CHECK: %[[E:[0-9]+]] = tensor.empty() : tensor<7xf32>
// CHECK-NEXT: %pad = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} outs(%[[E]] : tensor<7xf32>) {
// CHECK: %[[X:[0-9]+]] = linalg.index 0 : index
// CHECK: %[[AT:[0-9]+]] = arith.addi %[[X]]
// CHECK: %[[IN:[0-9]+]] = arith.andi
// CHECK-NEXT: %[[SAFE:[0-9]+]] = arith.select %[[IN]]
// CHECK-NEXT: %[[V:[0-9]+]] = tensor.extract %data[%[[SAFE]]] : tensor<5xf32>
// CHECK-NEXT: %[[R:[0-9]+]] = arith.select %[[IN]], %[[V]]
// CHECK-NEXT: linalg.yield %[[R]] : f32
// CHECK: %[[F:[0-9]+]] = linalg.fill ins(%{{[0-9]+}} : f32) outs(%{{[0-9]+}} : tensor<5xf32>) -> tensor<5xf32>
// CHECK-NEXT: %conv = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> ((d0 + d1))>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]} ins(%pad, %w : tensor<7xf32>, tensor<3xf32>) outs(%[[F]] : tensor<5xf32>) {
// CHECK-NEXT: ^bb{{[0-9]+}}(%[[A:[0-9]+]]: f32, %[[B:[0-9]+]]: f32, %[[ACC:[0-9]+]]: f32):
// CHECK-NEXT: %[[P:[0-9]+]] = arith.mulf %[[A]], %[[B]] : f32
// CHECK-NEXT: %[[S:[0-9]+]] = arith.addf %[[ACC]], %[[P]] : f32
// CHECK-NEXT: linalg.yield %[[S]] : f32
// CHECK: func.return %conv : tensor<5xf32>
