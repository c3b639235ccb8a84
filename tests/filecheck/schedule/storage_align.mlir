// RUN: xdsl-opt %s -p 'lw-storage-align{block=t axis=0 factor=32 offset=1}' | filecheck %s --check-prefix=ALIGN
// RUN: xdsl-opt %s -p 'lw-storage-align{block=t axis=0 factor=32 offset=1},lw-storage-align{block=t axis=0 factor=8 offset=0 buffer=t}' | filecheck %s --check-prefix=AGAIN
// RUN: xdsl-opt %s -p 'lw-storage-align{block=out axis=0 factor=8 offset=1}' --verify-diagnostics | filecheck %s --check-prefix=ARG
// RUN: xdsl-opt %s -p 'lw-storage-align{block=t axis=1 factor=8 offset=1}' --verify-diagnostics | filecheck %s --check-prefix=LAST
// RUN: xdsl-opt %s -p 'lw-storage-align{block=t axis=-1 factor=8 offset=1}' --verify-diagnostics | filecheck %s --check-prefix=NEGATIVE
// RUN: xdsl-opt %s -p 'lw-storage-align{block=t axis=0 factor=0 offset=0}' --verify-diagnostics | filecheck %s --check-prefix=FACTOR
// RUN: xdsl-opt %s -p 'lw-storage-align{block=t axis=0 factor=8 offset=8}' --verify-diagnostics | filecheck %s --check-prefix=OFFSET

func.func @pointwise(%data: memref<7x6xf32> {lw.name = "data"}, %w: memref<5x6xf32> {lw.name = "w", lw.constant}, %out: memref<7x5xf32> {lw.name = "out", lw.output}) {
  %t = lw_loop.alloc "t" : memref<9x6xf32>
  lw_loop.for y in 9 {
    lw_loop.for c in 6 {
      lw_loop.block t (y in 9 = y, c in 6 = c) writes %t[y, c] : memref<9x6xf32> {
        %a = lw_loop.load %data[y - 1, c] where (y - 1 >= 0, 7 - y >= 0) : memref<7x6xf32>
        lw_te.yield %a : f32
      }
    }
  }
  lw_loop.for y in 7 {
    lw_loop.for o in 5 {
      lw_loop.for c in 6 {
        lw_loop.block out (y in 7 = y, o in 5 = o, reduce c in 6 = c) writes %out[y, o] : memref<7x5xf32> add {
          %a = lw_loop.load %t[y + 1, c] : memref<9x6xf32>
          %b = lw_loop.load %w[o, c] : memref<5x6xf32>
          %m = arith.mulf %a, %b : f32
          lw_te.yield %m : f32
        }
      }
    }
  }
  func.return
}

// ALIGN: func.func @pointwise(%data: memref<7x6xf32> {lw.name = "data"}, %w: memref<5x6xf32> {lw.name = "w", lw.constant}, %out: memref<7x5xf32> {lw.name = "out", lw.output}) {
// ALIGN-NEXT: %t = lw_loop.alloc "t" align [0, 32, 1] : memref<9x6xf32>
// ALIGN-NEXT: lw_loop.for y in 9 {
// ALIGN-NEXT: lw_loop.for c in 6 {

// A second step replaces the first.
// AGAIN: func.func @pointwise(%data: memref<7x6xf32> {lw.name = "data"}, %w: memref<5x6xf32> {lw.name = "w", lw.constant}, %out: memref<7x5xf32> {lw.name = "out", lw.output}) {
// AGAIN-NEXT: %t = lw_loop.alloc "t" align [0, 8, 0] : memref<9x6xf32>
// AGAIN-NEXT: lw_loop.for y in 9 {
// AGAIN-NEXT: lw_loop.for c in 6 {

// ARG: lw-storage-align{block="out" axis=0 factor=8 offset=1}: 'out' is an argument of the function, whose rows are as the caller has them
// LAST: lw-storage-align{block="t" axis=1 factor=8 offset=1}: axis must be one of 't' (rank 2) and not its last, got 1
// NEGATIVE: lw-storage-align{block="t" axis=-1 factor=8 offset=1}: axis must be one of 't' (rank 2) and not its last, got -1
// FACTOR: lw-storage-align{block="t" axis=0 factor=0 offset=0}: factor must be positive and offset in [0, factor), got factor 0, offset 0
// OFFSET: lw-storage-align{block="t" axis=0 factor=8 offset=8}: factor must be positive and offset in [0, factor), got factor 8, offset 8
