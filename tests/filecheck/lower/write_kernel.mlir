// RUN: xdsl-opt %s -p lw-write-kernel --split-input-file --verify-diagnostics --parsing-diagnostics | filecheck %s

// An element's position is relative to the first one that the layout keeps; the mark of placed buffers goes.

func.func @placed(%x: memref<8x64xf32> {lw.name = "x"}, %b: memref<8x64xf32> {lw.name = "b", lw.output}) attributes {lw.lowered_by = "lw-vectorize-loops"} {
  lw_loop.for i in 8 {
    %r = lw_loop.alloc "r" placed [i, 0] of [1, 32] strides [32, 1] steps [1, 2] : memref<8x64xf32, "local">
    lw_loop.for k in 32 {
      lw_loop.block r (i in 8 = i, k in 64 = k * 2) writes %r[i, k] : memref<8x64xf32, "local"> {
        %0 = lw_loop.load %x[i, k] : memref<8x64xf32>
        lw_te.yield %0 : f32
      }
      lw_loop.block b (i in 8 = i, k in 64 = k * 2) writes %b[i, k] : memref<8x64xf32> {
        %0 = lw_loop.load %r[i, k] : memref<8x64xf32, "local">
        lw_te.yield %0 : f32
      }
    }
  }
  func.return
}

// CHECK: func.func @placed(%x: memref<8x64xf32> {lw.name = "x"}, %b: memref<8x64xf32> {lw.name = "b", lw.output}) {
// CHECK: %r = lw_kernel.alloc "r" : memref<32xf32, "local">
// CHECK: scf.for %i
// CHECK: scf.for %k
// CHECK: %[[V:[0-9]+]] = lw_kernel.load %x
// CHECK-NEXT: lw_kernel.store %[[V]], %r[%k] stride 0 : f32, memref<32xf32, "local">

// -----

func.func @forgotten(%x: memref<8xf32> {lw.name = "x"}, %b: memref<8xf32> {lw.name = "b", lw.output}) attributes {lw.lowered_by = "lw-place-buffers"} {
  lw_loop.for i in 8 {
    lw_loop.block b (i in 8 = i) writes %b[i] : memref<8xf32> {
      %0 = lw_loop.load %x[i] : memref<8xf32>
      lw_te.yield %0 : f32
    }
  }
  func.return
}

// CHECK: lw-write-kernel: function 'forgotten': run lw-vectorize-loops right before this, lw-place-buffers was the last step

// -----

func.func @inside(%b: memref<8xf32> {lw.name = "b", lw.output}) {
  lw_loop.for i in 8 {
    %r = lw_loop.alloc "r" : memref<8xf32, "local">
  }
  func.return
}

// CHECK: loop 'i' holds 'lw_loop.alloc', only loops and blocks belong there

// -----

func.func @short(%b: memref<8xf32> {lw.name = "b", lw.output}) attributes {lw.lowered_by = "lw-vectorize-loops"} {
  %r = lw_loop.alloc "r" placed [0, 0] of [1] strides [1, 1] : memref<8x8xf32, "local">
  func.return
}

// CHECK: a layout has as many extents, strides and steps as indices

// -----

// A nest in two versions has those of nests in it in both: where rows are tested, columns of whole tiles still are not.

func.func @padded(%x: memref<16x16xf32> {lw.name = "x"}, %b: memref<16x16xf32> {lw.name = "b", lw.output}) attributes {lw.lowered_by = "lw-vectorize-loops"} {
  lw_loop.for o in 2 {
    lw_loop.versions (o * 8 + i - 1 >= 0) {
      lw_loop.for i in 8 {
        lw_loop.for p in 2 {
          lw_loop.versions (p * 8 + j - 1 >= 0) {
            lw_loop.for j in 8 {
              lw_loop.block b (h in 16 = o * 8 + i, w in 16 = p * 8 + j) writes %b[h, w] : memref<16x16xf32> {
                %0 = lw_loop.load %x[h - 1, w - 1] where (h - 1 >= 0, w - 1 >= 0) : memref<16x16xf32>
                lw_te.yield %0 : f32
              }
            }
          }
        }
      }
    }
  }
  func.return
}

// CHECK: func.func @padded(
// CHECK: scf.for %o
// CHECK: %[[ROWS:[0-9]+]] = arith.cmpi sge
// CHECK: scf.if %[[ROWS]] {
// CHECK: scf.for %i =
// CHECK: %[[COLUMNS:[0-9]+]] = arith.cmpi sge
// CHECK: scf.if %[[COLUMNS]] {
// CHECK: lw_kernel.load %x[%{{[0-9]+}} - 17] stride 0 : memref
// CHECK: } else {
// CHECK: lw_kernel.load %x[%{{[0-9]+}} - 17] stride 0 mask %{{[0-9]+}} : memref
// CHECK: } else {
// CHECK: scf.for %i_1
// CHECK: %[[ROW:[0-9]+]] = arith.cmpi sge
// CHECK: %[[AGAIN:[0-9]+]] = arith.cmpi sge
// CHECK: scf.if %[[AGAIN]] {
// CHECK: lw_kernel.load %x[%{{[0-9]+}} - 17] stride 0 mask %[[ROW]] : memref
// CHECK: } else {
// CHECK: %[[BOTH:[0-9]+]] = arith.andi %[[ROW]]
// CHECK: lw_kernel.load %x[%{{[0-9]+}} - 17] stride 0 mask %[[BOTH]] : memref

// -----

// Vectors are what is said to be vectors, and what is computed of them; a scalar meets them in a vector of itself.

func.func @vectors(%x: memref<8x8xf32> {lw.name = "x"}, %y: memref<16xf32> {lw.name = "y"}, %b: memref<8x8xf32> {lw.name = "b", lw.output}) attributes {lw.lowered_by = "lw-vectorize-loops"} {
  lw_loop.for i in 8 {
    lw_loop.for j in 8 vectorized {
      lw_loop.block b (i in 8 = i, j in 8 = j) writes %b[j, i] as strided 8 : memref<8x8xf32> {
        %0 = lw_loop.load %x[i, j] as vector : memref<8x8xf32>
        %1 = lw_loop.load %y[i] as scalar : memref<16xf32>
        %2 = lw_loop.load %y[i + j] as scattered : memref<16xf32>
        %3 = math.exp %1 : f32
        %4 = arith.mulf %0, %3 : f32
        %5 = arith.addf %4, %2 : f32
        lw_te.yield %5 : f32
      }
    }
  }
  func.return
}

// CHECK: func.func @vectors(
// CHECK: %[[X:[0-9]+]] = lw_kernel.load %x[%{{[0-9]+}}] : memref<8x8xf32> -> vector<8xf32>
// CHECK: %[[S:[0-9]+]] = lw_kernel.load %y[%i] stride 0 : memref<16xf32> -> f32
// CHECK: %[[G:[0-9]+]] = lw_kernel.gather %y
// CHECK: %[[E:[0-9]+]] = math.exp %[[S]] : f32
// CHECK: %[[W:[0-9]+]] = vector.broadcast %[[E]] : f32 to vector<8xf32>
// CHECK: arith.mulf %[[X]], %[[W]] : vector<8xf32>
// CHECK: lw_kernel.store %{{[0-9]+}}, %b[%i] stride 8 : vector<8xf32>

// -----

func.func @wrong(%x: memref<8x8xf32> {lw.name = "x"}, %b: memref<8x8xf32> {lw.name = "b", lw.output}) attributes {lw.lowered_by = "lw-vectorize-loops"} {
  lw_loop.for i in 8 {
    lw_loop.for j in 8 vectorized {
      lw_loop.block b (i in 8 = i, j in 8 = j) writes %b[i, j] as vector : memref<8x8xf32> {
        %0 = lw_loop.load %x[j, i] as vector : memref<8x8xf32>
        lw_te.yield %0 : f32
      }
    }
  }
  func.return
}

// CHECK: lw-write-kernel: lanes of loop 'j' are at {{.*}}, which is not 1 apart from lane to lane

// -----

func.func @undecided(%x: memref<8xf32> {lw.name = "x"}, %b: memref<8xf32> {lw.name = "b", lw.output}) attributes {lw.lowered_by = "lw-vectorize-loops"} {
  lw_loop.for j in 8 vectorized {
    lw_loop.block b (j in 8 = j) writes %b[j] as vector : memref<8xf32> {
      %0 = lw_loop.load %x[j] : memref<8xf32>
      lw_te.yield %0 : f32
    }
  }
  func.return
}

// CHECK: lw-write-kernel: which elements of 'x' the lanes of loop 'j' touch is not decided: run lw-vectorize-loops

// -----

func.func @unmasked(%x: memref<8xf32> {lw.name = "x"}, %b: memref<6xf32> {lw.name = "b", lw.output}) attributes {lw.lowered_by = "lw-vectorize-loops"} {
  lw_loop.for j in 8 vectorized {
    lw_loop.block b (j in 6 = j) where (5 - j >= 0) writes %b[j] as vector : memref<6xf32> {
      %0 = lw_loop.load %x[j] as vector : memref<8xf32>
      lw_te.yield %0 : f32
    }
  }
  func.return
}

// CHECK: lw-write-kernel: lanes answer 5 - j >= 0 each for itself, block 'b' is not masked by it: run lw-vectorize-loops
