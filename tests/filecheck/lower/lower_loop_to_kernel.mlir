// RUN: xdsl-opt %s -p lw-lower-loop-to-kernel --split-input-file --verify-diagnostics --parsing-diagnostics | filecheck %s

// An address is a sum whose parts are computed in the outermost loop where they are known: `i * 36` in the loop over i,
// the whole of it but constants in the one over j. Constants go into the load; floordiv and mod that the ranges of the
// loops settle are gone (j1 is below 6, so `(j0 * 6 + j1) floordiv 6` is j0).

func.func @addresses(%a: memref<4x9x4xf32> {lw.name = "a"}, %out: memref<4x3x6xf32> {lw.name = "out", lw.output}) {
  lw_loop.for i in 4 {
    lw_loop.for j0 in 3 {
      lw_loop.for j1 in 6 {
        lw_loop.block out (i in 4 = i, j in 18 = j0 * 6 + j1) writes %out[i, j floordiv 6, j mod 6] : memref<4x3x6xf32> {
          %0 = lw_loop.load %a[i, j floordiv 2, 1] : memref<4x9x4xf32>
          %1 = lw_loop.load %a[i, j floordiv 6 + 1, 2] : memref<4x9x4xf32>
          %2 = arith.addf %0, %1 : f32
          lw_te.yield %2 : f32
        }
      }
    }
  }
  func.return
}

// CHECK: func.func @addresses(%a: memref<4x9x4xf32> {lw.name = "a"}, %out: memref<4x3x6xf32> {lw.name = "out", lw.output}) {
// CHECK-NEXT: %[[C4:[0-9]+]] = arith.constant 4 : index
// CHECK-NEXT: %[[C3:[0-9]+]] = arith.constant 3 : index
// CHECK-NEXT: %[[C6:[0-9]+]] = arith.constant 6 : index
// CHECK-NEXT: %[[C36:[0-9]+]] = arith.constant 36 : index
// CHECK-NEXT: %[[C12:[0-9]+]] = arith.constant 12 : index
// CHECK-NEXT: %[[C2:[0-9]+]] = arith.constant 2 : index
// CHECK-NEXT: %[[C18:[0-9]+]] = arith.constant 18 : index
// CHECK-NEXT: %[[C0:[0-9]+]] = arith.constant 0 : index
// CHECK-NEXT: %[[C1:[0-9]+]] = arith.constant 1 : index
// CHECK-NEXT: scf.for %i = %[[C0]] to %[[C4]] step %[[C1]] {
// CHECK-NEXT: %[[V0:[0-9]+]] = arith.muli %i, %[[C36]] : index
// CHECK-NEXT: %[[V1:[0-9]+]] = arith.muli %i, %[[C18]] : index
// CHECK-NEXT: scf.for %j0 = %[[C0]] to %[[C3]] step %[[C1]] {
// CHECK-NEXT: %[[V2:[0-9]+]] = arith.muli %j0, %[[C12]] : index
// CHECK-NEXT: %[[V3:[0-9]+]] = arith.addi %[[V0]], %[[V2]] : index
// CHECK-NEXT: %[[V4:[0-9]+]] = arith.muli %j0, %[[C4]] : index
// CHECK-NEXT: %[[V5:[0-9]+]] = arith.addi %[[V0]], %[[V4]] : index
// CHECK-NEXT: %[[V6:[0-9]+]] = arith.muli %j0, %[[C6]] : index
// CHECK-NEXT: %[[V7:[0-9]+]] = arith.addi %[[V1]], %[[V6]] : index
// CHECK-NEXT: scf.for %j1 = %[[C0]] to %[[C6]] step %[[C1]] {
// CHECK-NEXT: %[[V8:[0-9]+]] = arith.divui %j1, %[[C2]] : index
// CHECK-NEXT: %[[V9:[0-9]+]] = arith.muli %[[V8]], %[[C4]] : index
// CHECK-NEXT: %[[V10:[0-9]+]] = arith.addi %[[V3]], %[[V9]] : index
// CHECK-NEXT: %[[V11:[0-9]+]] = lw_kernel.load %a[%[[V10]] + 1] stride 0 : memref<4x9x4xf32> -> f32
// CHECK-NEXT: %[[V12:[0-9]+]] = lw_kernel.load %a[%[[V5]] + 6] stride 0 : memref<4x9x4xf32> -> f32
// CHECK-NEXT: %[[V13:[0-9]+]] = arith.addf %[[V11]], %[[V12]] : f32
// CHECK-NEXT: %[[V14:[0-9]+]] = arith.addi %[[V7]], %j1 : index
// CHECK-NEXT: lw_kernel.store %[[V13]], %out[%[[V14]]] stride 0 : f32, memref<4x3x6xf32>
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: func.return
// CHECK-NEXT: }

// -----

// A tail in a loop that stays a loop: the loop ends earlier, nothing is tested inside.

func.func @shorter(%a: memref<10xf32> {lw.name = "a"}, %out: memref<10xf32> {lw.name = "out", lw.output}) {
  lw_loop.for i0 in 3 {
    lw_loop.for i1 in 4 {
      lw_loop.block out (i in 10 = i0 * 4 + i1) where (9 - i0 * 4 - i1 >= 0) writes %out[i] : memref<10xf32> {
        %0 = lw_loop.load %a[i] : memref<10xf32>
        lw_te.yield %0 : f32
      }
    }
  }
  func.return
}

// CHECK: func.func @shorter(%a: memref<10xf32> {lw.name = "a"}, %out: memref<10xf32> {lw.name = "out", lw.output}) {
// CHECK-NEXT: %[[C3:[0-9]+]] = arith.constant 3 : index
// CHECK-NEXT: %[[C4:[0-9]+]] = arith.constant 4 : index
// CHECK-NEXT: %[[C10:[0-9]+]] = arith.constant 10 : index
// CHECK-NEXT: %[[CM4:[0-9]+]] = arith.constant -4 : index
// CHECK-NEXT: %[[C0:[0-9]+]] = arith.constant 0 : index
// CHECK-NEXT: %[[C1:[0-9]+]] = arith.constant 1 : index
// CHECK-NEXT: scf.for %i0 = %[[C0]] to %[[C3]] step %[[C1]] {
// CHECK-NEXT: %[[V0:[0-9]+]] = arith.muli %i0, %[[CM4]] : index
// CHECK-NEXT: %[[V1:[0-9]+]] = arith.addi %[[C10]], %[[V0]] : index
// CHECK-NEXT: %[[V2:[0-9]+]] = arith.minsi %[[C4]], %[[V1]] : index
// CHECK-NEXT: %[[V3:[0-9]+]] = arith.muli %i0, %[[C4]] : index
// CHECK-NEXT: scf.for %i1 = %[[C0]] to %[[V2]] step %[[C1]] {
// CHECK-NEXT: %[[V4:[0-9]+]] = arith.addi %[[V3]], %i1 : index
// CHECK-NEXT: %[[V5:[0-9]+]] = lw_kernel.load %a[%[[V4]]] stride 0 : memref<10xf32> -> f32
// CHECK-NEXT: lw_kernel.store %[[V5]], %out[%[[V4]]] stride 0 : f32, memref<10xf32>
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: func.return
// CHECK-NEXT: }

// -----

// A tail in lanes: whole vectors in a loop, and a last one with a mask; loads and stores that are off touch nothing.

func.func @masked(%a: memref<10xf32> {lw.name = "a"}, %out: memref<10xf32> {lw.name = "out", lw.output}) {
  lw_loop.for i0 in 3 {
    lw_loop.for i1 in 4 vectorized {
      lw_loop.block out (i in 10 = i0 * 4 + i1) where (9 - i0 * 4 - i1 >= 0) writes %out[i] : memref<10xf32> {
        %0 = lw_loop.load %a[9 - i] : memref<10xf32>
        lw_te.yield %0 : f32
      }
    }
  }
  func.return
}

// CHECK: func.func @masked(%a: memref<10xf32> {lw.name = "a"}, %out: memref<10xf32> {lw.name = "out", lw.output}) {
// CHECK-NEXT: %[[C2:[0-9]+]] = arith.constant 2 : index
// CHECK-NEXT: %[[CM4:[0-9]+]] = arith.constant -4 : index
// CHECK-NEXT: %[[C4:[0-9]+]] = arith.constant 4 : index
// CHECK-NEXT: %[[C0:[0-9]+]] = arith.constant 0 : index
// CHECK-NEXT: %[[C1:[0-9]+]] = arith.constant 1 : index
// CHECK-NEXT: scf.for %i0 = %[[C0]] to %[[C2]] step %[[C1]] {
// CHECK-NEXT: %[[V0:[0-9]+]] = arith.muli %i0, %[[CM4]] : index
// CHECK-NEXT: %[[V1:[0-9]+]] = lw_kernel.load %a[%[[V0]] + 9] stride -1 : memref<10xf32> -> vector<4xf32>
// CHECK-NEXT: %[[V2:[0-9]+]] = arith.muli %i0, %[[C4]] : index
// CHECK-NEXT: lw_kernel.store %[[V1]], %out[%[[V2]]] : vector<4xf32>, memref<10xf32>
// CHECK-NEXT: }
// CHECK-NEXT: %[[V3:[0-9]+]] = lw_kernel.mask %[[C1]] step -1 : vector<4xi1>
// CHECK-NEXT: %[[V4:[0-9]+]] = lw_kernel.load %a[%[[C0]] + 1] stride -1 mask %[[V3]] : memref<10xf32> -> vector<4xf32>
// CHECK-NEXT: lw_kernel.store %[[V4]], %out[%[[C0]] + 8] mask %[[V3]] : vector<4xf32>, memref<10xf32>
// CHECK-NEXT: func.return
// CHECK-NEXT: }

// -----

// A tail of copies: whole tiles are written without a test, and once more the tile that is cut, of which one is left.

func.func @copies(%a: memref<10xf32> {lw.name = "a"}, %out: memref<10xf32> {lw.name = "out", lw.output}) {
  lw_loop.for i0 in 4 {
    lw_loop.for i1 in 3 unrolled {
      lw_loop.block out (i in 10 = i0 * 3 + i1) where (9 - i0 * 3 - i1 >= 0) writes %out[i] : memref<10xf32> {
        %0 = lw_loop.load %a[i] : memref<10xf32>
        lw_te.yield %0 : f32
      }
    }
  }
  func.return
}

// CHECK: func.func @copies(%a: memref<10xf32> {lw.name = "a"}, %out: memref<10xf32> {lw.name = "out", lw.output}) {
// CHECK-NEXT: %[[C4:[0-9]+]] = arith.constant 4 : index
// CHECK-NEXT: %[[C7:[0-9]+]] = arith.constant 7 : index
// CHECK-NEXT: %[[CM3:[0-9]+]] = arith.constant -3 : index
// CHECK-NEXT: %[[C0:[0-9]+]] = arith.constant 0 : index
// CHECK-NEXT: %[[C3:[0-9]+]] = arith.constant 3 : index
// CHECK-NEXT: %[[C1:[0-9]+]] = arith.constant 1 : index
// CHECK-NEXT: scf.for %i0 = %[[C0]] to %[[C4]] step %[[C1]] {
// CHECK-NEXT: %[[V0:[0-9]+]] = arith.muli %i0, %[[CM3]] : index
// CHECK-NEXT: %[[V1:[0-9]+]] = arith.addi %[[C7]], %[[V0]] : index
// CHECK-NEXT: %[[V2:[0-9]+]] = arith.cmpi sge, %[[V1]], %[[C0]] : index
// CHECK-NEXT: %[[V3:[0-9]+]] = arith.muli %i0, %[[C3]] : index
// CHECK-NEXT: scf.if %[[V2]] {
// CHECK-NEXT: %[[V6:[0-9]+]] = lw_kernel.load %a[%[[V3]]] stride 0 : memref<10xf32> -> f32
// CHECK-NEXT: lw_kernel.store %[[V6]], %out[%[[V3]]] stride 0 : f32, memref<10xf32>
// CHECK-NEXT: %[[V7:[0-9]+]] = lw_kernel.load %a[%[[V3]] + 1] stride 0 : memref<10xf32> -> f32
// CHECK-NEXT: lw_kernel.store %[[V7]], %out[%[[V3]] + 1] stride 0 : f32, memref<10xf32>
// CHECK-NEXT: %[[V8:[0-9]+]] = lw_kernel.load %a[%[[V3]] + 2] stride 0 : memref<10xf32> -> f32
// CHECK-NEXT: lw_kernel.store %[[V8]], %out[%[[V3]] + 2] stride 0 : f32, memref<10xf32>
// CHECK-NEXT: } else {
// CHECK-NEXT: %[[V9:[0-9]+]] = lw_kernel.load %a[%[[V3]]] stride 0 : memref<10xf32> -> f32
// CHECK-NEXT: lw_kernel.store %[[V9]], %out[%[[V3]]] stride 0 : f32, memref<10xf32>
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: func.return
// CHECK-NEXT: }

// -----

// Padding in a load: where a row lies inside, the loop over it carries no test, elsewhere the load is masked.

func.func @padding(%a: memref<6x8xf32> {lw.name = "a"}, %out: memref<6x8xf32> {lw.name = "out", lw.output}) {
  lw_loop.for i in 6 {
    lw_loop.for j in 8 {
      lw_loop.block out (i in 6 = i, j in 8 = j) writes %out[i, j] : memref<6x8xf32> {
        %0 = lw_loop.load %a[i - 1, j] where (i - 1 >= 0) : memref<6x8xf32>
        lw_te.yield %0 : f32
      }
    }
  }
  func.return
}

// CHECK: func.func @padding(%a: memref<6x8xf32> {lw.name = "a"}, %out: memref<6x8xf32> {lw.name = "out", lw.output}) {
// CHECK-NEXT: %[[C6:[0-9]+]] = arith.constant 6 : index
// CHECK-NEXT: %[[CM1:[0-9]+]] = arith.constant -1 : index
// CHECK-NEXT: %[[C0:[0-9]+]] = arith.constant 0 : index
// CHECK-NEXT: %[[C8:[0-9]+]] = arith.constant 8 : index
// CHECK-NEXT: %[[C1:[0-9]+]] = arith.constant 1 : index
// CHECK-NEXT: scf.for %i = %[[C0]] to %[[C6]] step %[[C1]] {
// CHECK-NEXT: %[[V0:[0-9]+]] = arith.addi %[[CM1]], %i : index
// CHECK-NEXT: %[[V1:[0-9]+]] = arith.cmpi sge, %[[V0]], %[[C0]] : index
// CHECK-NEXT: %[[V2:[0-9]+]] = arith.muli %i, %[[C8]] : index
// CHECK-NEXT: scf.if %[[V1]] {
// CHECK-NEXT: scf.for %j = %[[C0]] to %[[C8]] step %[[C1]] {
// CHECK-NEXT: %[[V3:[0-9]+]] = arith.addi %[[V2]], %j : index
// CHECK-NEXT: %[[V4:[0-9]+]] = lw_kernel.load %a[%[[V3]] - 8] stride 0 : memref<6x8xf32> -> f32
// CHECK-NEXT: lw_kernel.store %[[V4]], %out[%[[V3]]] stride 0 : f32, memref<6x8xf32>
// CHECK-NEXT: }
// CHECK-NEXT: } else {
// CHECK-NEXT: scf.for %j_1 = %[[C0]] to %[[C8]] step %[[C1]] {
// CHECK-NEXT: %[[V5:[0-9]+]] = arith.addi %[[V2]], %j_1 : index
// CHECK-NEXT: %[[V6:[0-9]+]] = lw_kernel.load %a[%[[V5]] - 8] stride 0 mask %[[V1]] : memref<6x8xf32> -> f32
// CHECK-NEXT: lw_kernel.store %[[V6]], %out[%[[V5]]] stride 0 : f32, memref<6x8xf32>
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: func.return
// CHECK-NEXT: }

// -----

// A tile of sums: the buffer holds the tile alone, it starts at zero before the outermost reduce loop, products are
// fused into the sums, and each vector of b is loaded once for both rows.

func.func @tile(%a: memref<8x5xf32> {lw.name = "a"}, %b: memref<5x8xf32> {lw.name = "b"}, %out: memref<8x8xf32> {lw.name = "out", lw.output}) {
  %c = lw_loop.alloc "c" : memref<8x8xf32, "local">
  lw_loop.for i0 in 4 parallel {
    lw_loop.for j0 in 2 {
      lw_loop.for k in 5 {
        lw_loop.for i1 in 2 unrolled {
          lw_loop.for j1 in 4 vectorized {
            lw_loop.block c (i in 8 = i0 * 2 + i1, j in 8 = j0 * 4 + j1, reduce k in 5 = k) writes %c[i, j] : memref<8x8xf32, "local"> add {
              %0 = lw_loop.load %a[i, k] : memref<8x5xf32>
              %1 = lw_loop.load %b[k, j] : memref<5x8xf32>
              %2 = arith.mulf %0, %1 : f32
              lw_te.yield %2 : f32
            }
          }
        }
      }
      lw_loop.for i1 in 2 unrolled {
        lw_loop.for j1 in 4 vectorized {
          lw_loop.block out (i in 8 = i0 * 2 + i1, j in 8 = j0 * 4 + j1) writes %out[i, j] : memref<8x8xf32> {
            %0 = lw_loop.load %c[i, j] : memref<8x8xf32, "local">
            lw_te.yield %0 : f32
          }
        }
      }
    }
  }
  func.return
}

// CHECK: func.func @tile(%a: memref<8x5xf32> {lw.name = "a"}, %b: memref<5x8xf32> {lw.name = "b"}, %out: memref<8x8xf32> {lw.name = "out", lw.output}) {
// CHECK-NEXT: %[[C2:[0-9]+]] = arith.constant 2 : index
// CHECK-NEXT: %[[ZERO:[0-9]+]] = arith.constant 0.000000e+00 : f32
// CHECK-NEXT: %[[C0:[0-9]+]] = arith.constant 0 : index
// CHECK-NEXT: %[[C5:[0-9]+]] = arith.constant 5 : index
// CHECK-NEXT: %[[C10:[0-9]+]] = arith.constant 10 : index
// CHECK-NEXT: %[[C4:[0-9]+]] = arith.constant 4 : index
// CHECK-NEXT: %[[C8:[0-9]+]] = arith.constant 8 : index
// CHECK-NEXT: %[[C1:[0-9]+]] = arith.constant 1 : index
// CHECK-NEXT: %[[C16:[0-9]+]] = arith.constant 16 : index
// CHECK-NEXT: lw_kernel.parallel %i0 in 4 {
// CHECK-NEXT: %c = lw_kernel.alloc "c" : memref<8xf32, "local">
// CHECK-NEXT: %[[V0:[0-9]+]] = arith.muli %i0, %[[C10]] : index
// CHECK-NEXT: %[[V1:[0-9]+]] = arith.muli %i0, %[[C16]] : index
// CHECK-NEXT: scf.for %j0 = %[[C0]] to %[[C2]] step %[[C1]] {
// CHECK-NEXT: %[[V2:[0-9]+]] = vector.broadcast %[[ZERO]] : f32 to vector<4xf32>
// CHECK-NEXT: lw_kernel.store %[[V2]], %c[%[[C0]]] : vector<4xf32>, memref<8xf32, "local">
// CHECK-NEXT: lw_kernel.store %[[V2]], %c[%[[C0]] + 4] : vector<4xf32>, memref<8xf32, "local">
// CHECK-NEXT: %[[V3:[0-9]+]] = arith.muli %j0, %[[C4]] : index
// CHECK-NEXT: scf.for %k = %[[C0]] to %[[C5]] step %[[C1]] {
// CHECK-NEXT: %[[V4:[0-9]+]] = arith.addi %[[V0]], %k : index
// CHECK-NEXT: %[[V5:[0-9]+]] = lw_kernel.load %a[%[[V4]]] stride 0 : memref<8x5xf32> -> f32
// CHECK-NEXT: %[[V6:[0-9]+]] = arith.muli %k, %[[C8]] : index
// CHECK-NEXT: %[[V7:[0-9]+]] = arith.addi %[[V3]], %[[V6]] : index
// CHECK-NEXT: %[[V8:[0-9]+]] = lw_kernel.load %b[%[[V7]]] : memref<5x8xf32> -> vector<4xf32>
// CHECK-NEXT: %[[V9:[0-9]+]] = lw_kernel.load %c[%[[C0]]] : memref<8xf32, "local"> -> vector<4xf32>
// CHECK-NEXT: %[[V10:[0-9]+]] = vector.broadcast %[[V5]] : f32 to vector<4xf32>
// CHECK-NEXT: %[[V11:[0-9]+]] = math.fma %[[V10]], %[[V8]], %[[V9]] : vector<4xf32>
// CHECK-NEXT: lw_kernel.store %[[V11]], %c[%[[C0]]] : vector<4xf32>, memref<8xf32, "local">
// CHECK-NEXT: %[[V12:[0-9]+]] = lw_kernel.load %a[%[[V4]] + 5] stride 0 : memref<8x5xf32> -> f32
// CHECK-NEXT: %[[V13:[0-9]+]] = lw_kernel.load %c[%[[C0]] + 4] : memref<8xf32, "local"> -> vector<4xf32>
// CHECK-NEXT: %[[V14:[0-9]+]] = vector.broadcast %[[V12]] : f32 to vector<4xf32>
// CHECK-NEXT: %[[V15:[0-9]+]] = math.fma %[[V14]], %[[V8]], %[[V13]] : vector<4xf32>
// CHECK-NEXT: lw_kernel.store %[[V15]], %c[%[[C0]] + 4] : vector<4xf32>, memref<8xf32, "local">
// CHECK-NEXT: }
// CHECK-NEXT: %[[V16:[0-9]+]] = lw_kernel.load %c[%[[C0]]] : memref<8xf32, "local"> -> vector<4xf32>
// CHECK-NEXT: %[[V17:[0-9]+]] = arith.addi %[[V1]], %[[V3]] : index
// CHECK-NEXT: lw_kernel.store %[[V16]], %out[%[[V17]]] : vector<4xf32>, memref<8x8xf32>
// CHECK-NEXT: %[[V18:[0-9]+]] = lw_kernel.load %c[%[[C0]] + 4] : memref<8xf32, "local"> -> vector<4xf32>
// CHECK-NEXT: lw_kernel.store %[[V18]], %out[%[[V17]] + 8] : vector<4xf32>, memref<8x8xf32>
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: func.return
// CHECK-NEXT: }

// -----

// A tile over the edge of its output: in the buffer, nobody reads what lies beyond, so it is computed without a mask;
// only what goes out is masked. It is what was just stored, and is not loaded.

func.func @edge(%a: memref<6xf32> {lw.name = "a"}, %out: memref<6xf32> {lw.name = "out", lw.output}) {
  %c = lw_loop.alloc "c" : memref<6xf32, "local">
  lw_loop.for i0 in 2 {
    lw_loop.for i1 in 4 vectorized {
      lw_loop.block c (i in 6 = i0 * 4 + i1) where (5 - i0 * 4 - i1 >= 0) writes %c[i] : memref<6xf32, "local"> {
        %0 = lw_loop.load %a[i] : memref<6xf32>
        %1 = arith.addf %0, %0 : f32
        lw_te.yield %1 : f32
      }
    }
    lw_loop.for i1 in 4 vectorized {
      lw_loop.block out (i in 6 = i0 * 4 + i1) where (5 - i0 * 4 - i1 >= 0) writes %out[i] : memref<6xf32> {
        %0 = lw_loop.load %c[i] : memref<6xf32, "local">
        lw_te.yield %0 : f32
      }
    }
  }
  func.return
}

// CHECK: func.func @edge(%a: memref<6xf32> {lw.name = "a"}, %out: memref<6xf32> {lw.name = "out", lw.output}) {
// CHECK-NEXT: %c = lw_kernel.alloc "c" : memref<4xf32, "local">
// CHECK-NEXT: %[[C2:[0-9]+]] = arith.constant 2 : index
// CHECK-NEXT: %[[C5:[0-9]+]] = arith.constant 5 : index
// CHECK-NEXT: %[[CM4:[0-9]+]] = arith.constant -4 : index
// CHECK-NEXT: %[[C4:[0-9]+]] = arith.constant 4 : index
// CHECK-NEXT: %[[C0:[0-9]+]] = arith.constant 0 : index
// CHECK-NEXT: %[[C1:[0-9]+]] = arith.constant 1 : index
// CHECK-NEXT: scf.for %i0 = %[[C0]] to %[[C2]] step %[[C1]] {
// CHECK-NEXT: %[[V0:[0-9]+]] = arith.muli %i0, %[[CM4]] : index
// CHECK-NEXT: %[[V1:[0-9]+]] = arith.addi %[[C5]], %[[V0]] : index
// CHECK-NEXT: %[[V2:[0-9]+]] = lw_kernel.mask %[[V1]] step -1 : vector<4xi1>
// CHECK-NEXT: %[[V3:[0-9]+]] = arith.muli %i0, %[[C4]] : index
// CHECK-NEXT: %[[V4:[0-9]+]] = lw_kernel.load %a[%[[V3]]] mask %[[V2]] : memref<6xf32> -> vector<4xf32>
// CHECK-NEXT: %[[V5:[0-9]+]] = arith.addf %[[V4]], %[[V4]] : vector<4xf32>
// CHECK-NEXT: lw_kernel.store %[[V5]], %c[%[[C0]]] : vector<4xf32>, memref<4xf32, "local">
// CHECK-NEXT: lw_kernel.store %[[V5]], %out[%[[V3]]] mask %[[V2]] : vector<4xf32>, memref<6xf32>
// CHECK-NEXT: }
// CHECK-NEXT: func.return
// CHECK-NEXT: }

// -----

// A reduction over lanes: those that are off count as the identity, the others are joined and added to the element.

func.func @lanes(%a: memref<6xf32> {lw.name = "a"}, %out: memref<f32> {lw.name = "out", lw.output}) {
  lw_loop.for k0 in 2 {
    lw_loop.for k1 in 4 vectorized {
      lw_loop.block out (reduce k in 6 = k0 * 4 + k1) where (5 - k0 * 4 - k1 >= 0) writes %out[] : memref<f32> max {
        %0 = lw_loop.load %a[k] : memref<6xf32>
        lw_te.yield %0 : f32
      }
    }
  }
  func.return
}

// CHECK: func.func @lanes(%a: memref<6xf32> {lw.name = "a"}, %out: memref<f32> {lw.name = "out", lw.output}) {
// CHECK-NEXT: %[[INF:[0-9]+]] = arith.constant 0xff800000 : f32
// CHECK-NEXT: %[[C0:[0-9]+]] = arith.constant 0 : index
// CHECK-NEXT: lw_kernel.store %[[INF]], %out[%[[C0]]] stride 0 : f32, memref<f32>
// CHECK-NEXT: %[[C1:[0-9]+]] = arith.constant 1 : index
// CHECK-NEXT: %[[C4:[0-9]+]] = arith.constant 4 : index
// CHECK-NEXT: scf.for %k0 = %[[C0]] to %[[C1]] step %[[C1]] {
// CHECK-NEXT: %[[V0:[0-9]+]] = arith.muli %k0, %[[C4]] : index
// CHECK-NEXT: %[[V1:[0-9]+]] = lw_kernel.load %a[%[[V0]]] : memref<6xf32> -> vector<4xf32>
// CHECK-NEXT: %[[V2:[0-9]+]] = vector.reduction <maximumf>, %[[V1]] : vector<4xf32> into f32
// CHECK-NEXT: %[[V3:[0-9]+]] = lw_kernel.load %out[%[[C0]]] stride 0 : memref<f32> -> f32
// CHECK-NEXT: %[[V4:[0-9]+]] = arith.maximumf %[[V3]], %[[V2]] : f32
// CHECK-NEXT: lw_kernel.store %[[V4]], %out[%[[C0]]] stride 0 : f32, memref<f32>
// CHECK-NEXT: }
// CHECK-NEXT: %[[V5:[0-9]+]] = lw_kernel.mask %[[C1]] step -1 : vector<4xi1>
// CHECK-NEXT: %[[V6:[0-9]+]] = lw_kernel.load %a[%[[C0]] + 4] mask %[[V5]] : memref<6xf32> -> vector<4xf32>
// CHECK-NEXT: %[[V7:[0-9]+]] = vector.broadcast %[[INF]] : f32 to vector<4xf32>
// CHECK-NEXT: %[[V8:[0-9]+]] = lw_kernel.select %[[V5]], %[[V6]], %[[V7]] : vector<4xf32>
// CHECK-NEXT: %[[V9:[0-9]+]] = vector.reduction <maximumf>, %[[V8]] : vector<4xf32> into f32
// CHECK-NEXT: %[[V10:[0-9]+]] = lw_kernel.load %out[%[[C0]]] stride 0 : memref<f32> -> f32
// CHECK-NEXT: %[[V11:[0-9]+]] = arith.maximumf %[[V10]], %[[V9]] : f32
// CHECK-NEXT: lw_kernel.store %[[V11]], %out[%[[C0]]] stride 0 : f32, memref<f32>
// CHECK-NEXT: func.return
// CHECK-NEXT: }

// -----

// Lanes that do not step evenly are gathered; lane by lane are comparisons, choices and conversions.

func.func @uneven(%a: memref<8xi8> {lw.name = "a"}, %out: memref<8xf32> {lw.name = "out", lw.output}) {
  lw_loop.for i in 8 vectorized {
    lw_loop.block out (i in 8 = i) writes %out[i] : memref<8xf32> {
      %0 = lw_loop.load %a[(i * 3) mod 8] : memref<8xi8>
      %1 = lw_loop.load %a[i] : memref<8xi8>
      %2 = arith.cmpi slt, %0, %1 : i8
      %3 = arith.select %2, %0, %1 : i8
      %4 = arith.sitofp %3 : i8 to f32
      lw_te.yield %4 : f32
    }
  }
  func.return
}

// CHECK: func.func @uneven(%a: memref<8xi8> {lw.name = "a"}, %out: memref<8xf32> {lw.name = "out", lw.output}) {
// CHECK-NEXT: %[[C0:[0-9]+]] = arith.constant 0 : index
// CHECK-NEXT: %[[V0:[0-9]+]] = vector.broadcast %[[C0]] : index to vector<8xindex>
// CHECK-NEXT: %[[V1:[0-9]+]] = lw_kernel.lanes : vector<8xindex>
// CHECK-NEXT: %[[C3:[0-9]+]] = arith.constant 3 : index
// CHECK-NEXT: %[[V2:[0-9]+]] = vector.broadcast %[[C3]] : index to vector<8xindex>
// CHECK-NEXT: %[[V3:[0-9]+]] = arith.muli %[[V1]], %[[V2]] : vector<8xindex>
// CHECK-NEXT: %[[V4:[0-9]+]] = arith.addi %[[V0]], %[[V3]] : vector<8xindex>
// CHECK-NEXT: %[[C8:[0-9]+]] = arith.constant 8 : index
// CHECK-NEXT: %[[V5:[0-9]+]] = vector.broadcast %[[C8]] : index to vector<8xindex>
// CHECK-NEXT: %[[V6:[0-9]+]] = arith.remui %[[V4]], %[[V5]] : vector<8xindex>
// CHECK-NEXT: %[[V7:[0-9]+]] = arith.addi %[[V0]], %[[V6]] : vector<8xindex>
// CHECK-NEXT: %[[TRUE:[0-9]+]] = arith.constant true
// CHECK-NEXT: %[[V8:[0-9]+]] = vector.broadcast %[[TRUE]] : i1 to vector<8xi1>
// CHECK-NEXT: %[[V9:[0-9]+]] = lw_kernel.gather %a[%[[V7]]] mask %[[V8]] {near = array<i64: 0, 3, 6, 1, 4, 7, 2, 5>} : memref<8xi8>, vector<8xindex>, vector<8xi1> -> vector<8xi8>
// CHECK-NEXT: %[[V10:[0-9]+]] = lw_kernel.load %a[%[[C0]]] : memref<8xi8> -> vector<8xi8>
// CHECK-NEXT: %[[V11:[0-9]+]] = lw_kernel.compare "slt" %[[V9]], %[[V10]] : vector<8xi8>
// CHECK-NEXT: %[[V12:[0-9]+]] = lw_kernel.select %[[V11]], %[[V9]], %[[V10]] : vector<8xi8>
// CHECK-NEXT: %[[V13:[0-9]+]] = lw_kernel.convert "sitofp" %[[V12]] : vector<8xi8> -> vector<8xf32>
// CHECK-NEXT: lw_kernel.store %[[V13]], %out[%[[C0]]] : vector<8xf32>, memref<8xf32>
// CHECK-NEXT: func.return
// CHECK-NEXT: }

// -----

// A buffer that one iteration uses: just what it needs, for each thread, in memory unless its scope is local.

func.func @scratch(%a: memref<16x16xf32> {lw.name = "a"}, %out: memref<16x15xf32> {lw.name = "out", lw.output}) {
  %t = lw_loop.alloc "t" : memref<16x16xf32>
  lw_loop.for i in 16 parallel {
    lw_loop.for j in 16 {
      lw_loop.block t (i in 16 = i, j in 16 = j) writes %t[i, j] : memref<16x16xf32> {
        %0 = lw_loop.load %a[i, j] : memref<16x16xf32>
        lw_te.yield %0 : f32
      }
    }
    lw_loop.for j in 15 {
      lw_loop.block out (i in 16 = i, j in 15 = j) writes %out[i, j] : memref<16x15xf32> {
        %0 = lw_loop.load %t[i, j] : memref<16x16xf32>
        %1 = lw_loop.load %t[i, j + 1] : memref<16x16xf32>
        %2 = arith.subf %1, %0 : f32
        lw_te.yield %2 : f32
      }
    }
  }
  func.return
}

// CHECK: func.func @scratch(%a: memref<16x16xf32> {lw.name = "a"}, %out: memref<16x15xf32> {lw.name = "out", lw.output}) {
// CHECK-NEXT: %[[C16:[0-9]+]] = arith.constant 16 : index
// CHECK-NEXT: %[[C0:[0-9]+]] = arith.constant 0 : index
// CHECK-NEXT: %[[C1:[0-9]+]] = arith.constant 1 : index
// CHECK-NEXT: %[[C15:[0-9]+]] = arith.constant 15 : index
// CHECK-NEXT: lw_kernel.parallel %i in 16 {
// CHECK-NEXT: %t = lw_kernel.alloc "t" : memref<16xf32>
// CHECK-NEXT: %[[V0:[0-9]+]] = arith.muli %i, %[[C16]] : index
// CHECK-NEXT: scf.for %j = %[[C0]] to %[[C16]] step %[[C1]] {
// CHECK-NEXT: %[[V1:[0-9]+]] = arith.addi %[[V0]], %j : index
// CHECK-NEXT: %[[V2:[0-9]+]] = lw_kernel.load %a[%[[V1]]] stride 0 : memref<16x16xf32> -> f32
// CHECK-NEXT: lw_kernel.store %[[V2]], %t[%j] stride 0 : f32, memref<16xf32>
// CHECK-NEXT: }
// CHECK-NEXT: %[[V3:[0-9]+]] = arith.muli %i, %[[C15]] : index
// CHECK-NEXT: scf.for %j_1 = %[[C0]] to %[[C15]] step %[[C1]] {
// CHECK-NEXT: %[[V4:[0-9]+]] = lw_kernel.load %t[%j_1] stride 0 : memref<16xf32> -> f32
// CHECK-NEXT: %[[V5:[0-9]+]] = lw_kernel.load %t[%j_1 + 1] stride 0 : memref<16xf32> -> f32
// CHECK-NEXT: %[[V6:[0-9]+]] = arith.subf %[[V5]], %[[V4]] : f32
// CHECK-NEXT: %[[V7:[0-9]+]] = arith.addi %[[V3]], %j_1 : index
// CHECK-NEXT: lw_kernel.store %[[V6]], %out[%[[V7]]] stride 0 : f32, memref<16x15xf32>
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: func.return
// CHECK-NEXT: }

// -----

// Loops of a GPU have no place on a CPU.

func.func @grid(%out: memref<4xi32> {lw.name = "out", lw.output}) {
  lw_loop.for i in 4 blockIdx.x {
    lw_loop.block out (i in 4 = i) writes %out[i] : memref<4xi32> {
      %0 = lw_te.index i : i32
      lw_te.yield %0 : i32
    }
  }
  func.return
}

// CHECK: lw-lower-loop-to-kernel: loop 'i' is bound to blockIdx.x, which a CPU does not have; mark it parallel instead
