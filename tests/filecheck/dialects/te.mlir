// RUN: xdsl-opt %s --split-input-file --verify-diagnostics --parsing-diagnostics | filecheck %s

// What the te dialect prints parses back: axes, reads under conditions, combiners of all kinds, index values.

func.func @conv(%data: tensor<1x2x5xf32> {lw.name = "data"}, %w: tensor<3x2x3xf32> {lw.name = "w", lw.constant}) -> tensor<1x3x5xf32> {
  %pad = lw_te.compute "pad" [n = 1, c = 2, x = 7] -> tensor<1x2x7xf32> {
    %0 = lw_te.read %data[n, c, x - 1] where (x - 1 >= 0, 5 - x >= 0) : tensor<1x2x5xf32>
    lw_te.yield %0 : f32
  }
  %conv = lw_te.compute "conv" [n = 1, f = 3, x = 5, reduce c = 2, reduce r = 3] add -> tensor<1x3x5xf32> {
    %0 = lw_te.read %pad[n, c, x + r] : tensor<1x2x7xf32>
    %1 = lw_te.read %w[f, c, r] : tensor<3x2x3xf32>
    %2 = arith.mulf %0, %1 : f32
    lw_te.yield %2 : f32
  }
  func.return %conv : tensor<1x3x5xf32>
}

// CHECK: func.func @conv(%data: tensor<1x2x5xf32> {lw.name = "data"}, %w: tensor<3x2x3xf32> {lw.name = "w", lw.constant}) -> tensor<1x3x5xf32> {
// CHECK-NEXT: %pad = lw_te.compute "pad" [n = 1, c = 2, x = 7] -> tensor<1x2x7xf32> {
// CHECK-NEXT: %[[V0:[0-9]+]] = lw_te.read %data[n, c, x - 1] where (x - 1 >= 0, 5 - x >= 0) : tensor<1x2x5xf32>
// CHECK-NEXT: lw_te.yield %[[V0]] : f32
// CHECK-NEXT: }
// CHECK-NEXT: %conv = lw_te.compute "conv" [n = 1, f = 3, x = 5, reduce c = 2, reduce r = 3] add -> tensor<1x3x5xf32> {
// CHECK-NEXT: %[[V1:[0-9]+]] = lw_te.read %pad[n, c, x + r] : tensor<1x2x7xf32>
// CHECK-NEXT: %[[V2:[0-9]+]] = lw_te.read %w[f, c, r] : tensor<3x2x3xf32>
// CHECK-NEXT: %[[V3:[0-9]+]] = arith.mulf %[[V1]], %[[V2]] : f32
// CHECK-NEXT: lw_te.yield %[[V3]] : f32
// CHECK-NEXT: }
// CHECK-NEXT: func.return %conv : tensor<1x3x5xf32>
// CHECK-NEXT: }

// -----

// Index values, predicates, floordiv and mod; an order of writing that is kept.

func.func @indices(%x: tensor<12xf32>) -> tensor<3x4xf32> {
  %y = lw_te.compute "y" [i = 3, j = 4] -> tensor<3x4xf32> {
    %0 = lw_te.read %x[(i * 4 + j) mod 5] : tensor<12xf32>
    %1 = lw_te.read %x[j floordiv 2 + 6] : tensor<12xf32>
    %2 = lw_te.predicate (j - i >= 0, i * 2 - 1 >= 0)
    %3 = arith.select %2, %0, %1 : f32
    %4 = lw_te.index 3 - i * 2 : i32
    %5 = arith.sitofp %4 : i32 to f32
    %6 = arith.addf %3, %5 : f32
    lw_te.yield %6 : f32
  }
  func.return %y : tensor<3x4xf32>
}

// CHECK: func.func @indices(%x: tensor<12xf32>) -> tensor<3x4xf32> {
// CHECK-NEXT: %y = lw_te.compute "y" [i = 3, j = 4] -> tensor<3x4xf32> {
// CHECK-NEXT: %[[V0:[0-9]+]] = lw_te.read %x[(i * 4 + j) mod 5] : tensor<12xf32>
// CHECK-NEXT: %[[V1:[0-9]+]] = lw_te.read %x[j floordiv 2 + 6] : tensor<12xf32>
// CHECK-NEXT: %[[V2:[0-9]+]] = lw_te.predicate (j - i >= 0, i * 2 - 1 >= 0)
// CHECK-NEXT: %[[V3:[0-9]+]] = arith.select %[[V2]], %[[V0]], %[[V1]] : f32
// CHECK-NEXT: %[[V4:[0-9]+]] = lw_te.index 3 - i * 2 : i32
// CHECK-NEXT: %[[V5:[0-9]+]] = arith.sitofp %[[V4]] : i32 to f32
// CHECK-NEXT: %[[V6:[0-9]+]] = arith.addf %[[V3]], %[[V5]] : f32
// CHECK-NEXT: lw_te.yield %[[V6]] : f32
// CHECK-NEXT: }
// CHECK-NEXT: func.return %y : tensor<3x4xf32>
// CHECK-NEXT: }

// -----

// A combiner of its own, and an output without dimensions.

func.func @argmax(%x: tensor<7xf32>) -> tensor<i32> {
  %best:2 = lw_te.compute "best" [reduce k = 7] custom [-1 : i32, -1.000000e+30 : f32] -> tensor<i32>, tensor<f32> {
    %0 = lw_te.index k : i32
    %1 = lw_te.read %x[k] : tensor<7xf32>
    lw_te.yield %0, %1 : i32, f32
  } combine {
  ^bb0(%p0: i32, %v0: f32, %p1: i32, %v1: f32):
    %2 = arith.cmpf oge, %v0, %v1 : f32
    %3 = arith.select %2, %p0, %p1 : i32
    %4 = arith.select %2, %v0, %v1 : f32
    lw_te.yield %3, %4 : i32, f32
  }
  func.return %best#0 : tensor<i32>
}

// CHECK: func.func @argmax(%x: tensor<7xf32>) -> tensor<i32> {
// CHECK-NEXT: %best, %best_1 = lw_te.compute "best" [reduce k = 7] custom [-1 : i32, -1.000000e+30 : f32] -> tensor<i32>, tensor<f32> {
// CHECK-NEXT: %[[V0:[0-9]+]] = lw_te.index k : i32
// CHECK-NEXT: %[[V1:[0-9]+]] = lw_te.read %x[k] : tensor<7xf32>
// CHECK-NEXT: lw_te.yield %[[V0]], %[[V1]] : i32, f32
// CHECK-NEXT: } combine {
// CHECK-NEXT: ^bb0(%p0: i32, %v0: f32, %p1: i32, %v1: f32):
// CHECK-NEXT: %[[V2:[0-9]+]] = arith.cmpf oge, %v0, %v1 : f32
// CHECK-NEXT: %[[V3:[0-9]+]] = arith.select %[[V2]], %p0, %p1 : i32
// CHECK-NEXT: %[[V4:[0-9]+]] = arith.select %[[V2]], %v0, %v1 : f32
// CHECK-NEXT: lw_te.yield %[[V3]], %[[V4]] : i32, f32
// CHECK-NEXT: }
// CHECK-NEXT: func.return %best : tensor<i32>
// CHECK-NEXT: }

// -----

func.func @bad(%x: tensor<4x5xf32>) -> tensor<4xf32> {
  %y = lw_te.compute "y" [i = 4] -> tensor<4xf32> {
    %0 = lw_te.read %x[i] : tensor<4x5xf32>
    lw_te.yield %0 : f32
  }
  func.return %y : tensor<4xf32>
}

// CHECK: 1 indices for a tensor of rank 2

// -----

func.func @bad(%x: tensor<4xf32>) -> tensor<5xf32> {
  %y = lw_te.compute "y" [i = 4] -> tensor<5xf32> {
    %0 = lw_te.read %x[i] : tensor<4xf32>
    lw_te.yield %0 : f32
  }
  func.return %y : tensor<5xf32>
}

// CHECK: 'y': axes give shape (4,), result is tensor<5xf32>

// -----

func.func @bad(%x: tensor<4xf32>) -> tensor<4x4xf32> {
  %y = lw_te.compute "y" [i = 4, i = 4] -> tensor<4x4xf32> {
    %0 = lw_te.read %x[i] : tensor<4xf32>
    lw_te.yield %0 : f32
  }
  func.return %y : tensor<4x4xf32>
}

// CHECK: 'y': axis names repeat: i, i

// -----

func.func @bad(%x: tensor<4xf32>) -> tensor<f32> {
  %y = lw_te.compute "y" [reduce k = 4] -> tensor<f32> {
    %0 = lw_te.read %x[k] : tensor<4xf32>
    lw_te.yield %0 : f32
  }
  func.return %y : tensor<f32>
}

// CHECK: 'y': reduction axes and a combiner go together

// -----

func.func @bad(%x: tensor<4xf32>) -> tensor<f32> {
  %y = lw_te.compute "y" [reduce k = 4] custom [0.0 : f32] -> tensor<f32> {
    %0 = lw_te.read %x[k] : tensor<4xf32>
    lw_te.yield %0 : f32
  }
  func.return %y : tensor<f32>
}

// CHECK: 'y': a custom combiner has identities and a region, others do not

// -----

func.func @bad(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = lw_te.compute "y" [i = 4] -> tensor<4xf32> {
    %0 = lw_te.read %x[i] : tensor<4xf32>
    lw_te.yield %0, %0 : f32, f32
  }
  func.return %y : tensor<4xf32>
}

// CHECK: 'y': the body yields one value per result

// -----

func.func @bad(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = lw_te.compute "y" [i = 4] -> tensor<4xf32> {
    %0 = lw_te.read %x[i * i] : tensor<4xf32>
    lw_te.yield %0 : f32
  }
  func.return %y : tensor<4xf32>
}

// CHECK: index expressions multiply by constants only

// -----

func.func @bad(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = lw_te.compute "y" [i = 0] -> tensor<4xf32> {
    %0 = lw_te.read %x[i] : tensor<4xf32>
    lw_te.yield %0 : f32
  }
  func.return %y : tensor<4xf32>
}

// CHECK: 'y': axis 'i' has extent 0, at least 1 is needed

// -----

func.func @bad(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = lw_te.compute "y" [i = 3] -> tensor<4xf32> {
    %0 = lw_te.read %x[i] : tensor<4xf32>
    lw_te.yield %0 : f32
  }
  func.return %y : tensor<4xf32>
}

// CHECK: 'y': axes give shape (3,), result is tensor<4xf32>

// -----

func.func @bad(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = lw_te.compute "y" [i = 4] -> tensor<4xf32> {
    %0 = lw_te.read %x[j] : tensor<4xf32>
    lw_te.yield %0 : f32
  }
  func.return %y : tensor<4xf32>
}

// CHECK: 'y': the body names 'j', which is no axis of it

// -----

func.func @bad(%x: tensor<4xf32>) -> tensor<4xi32> {
  %y = lw_te.compute "y" [i = 4] -> tensor<4xi32> {
    %0 = lw_te.read %x[i] : tensor<4xf32>
    lw_te.yield %0 : f32
  }
  func.return %y : tensor<4xi32>
}

// CHECK: 'y': the body yields f32 where i32 is kept
