// RUN: xdsl-opt %s -p 'lw-cache-write{block=C}' | filecheck %s --check-prefix=PLAIN
// RUN: xdsl-opt %s -p 'lw-cache-write{block=C scope=global layout="i/4","j","i%4" label=acc}' | filecheck %s --check-prefix=TILES
// RUN: xdsl-opt %s -p 'lw-cache-write{block=s layout="i/4","i%4"}' | filecheck %s --check-prefix=PAIR
// RUN: xdsl-opt %s -p 'lw-cache-write{block=C layout="i","j","k"}' --verify-diagnostics | filecheck %s --check-prefix=REDUCE
// RUN: xdsl-opt %s -p 'lw-cache-write{block=C buffer=A}' --verify-diagnostics | filecheck %s --check-prefix=OTHER
// RUN: xdsl-opt %s -p 'lw-cache-write{block=Q}' --verify-diagnostics | filecheck %s --check-prefix=READER
// RUN: xdsl-opt %s -p 'lw-cache-write{block=C label="a-b"}' --verify-diagnostics | filecheck %s --check-prefix=NAME

func.func @matmul(%A: memref<6x8xf32> {lw.name = "A"}, %B: memref<8x5xf32> {lw.name = "B"}, %C: memref<6x5xf32> {lw.name = "C", lw.output}) {
  lw_loop.for i in 6 {
    lw_loop.for j in 5 {
      lw_loop.for k in 8 {
        lw_loop.block C (i in 6 = i, j in 5 = j, reduce k in 8 = k) writes %C[i, j] : memref<6x5xf32> add {
          %a = lw_loop.load %A[i, k] : memref<6x8xf32>
          %b = lw_loop.load %B[k, j] : memref<8x5xf32>
          %c = arith.mulf %a, %b : f32
          lw_te.yield %c : f32
        }
      }
    }
  }
  func.return
}

// What decompose_reduction leaves: a block that initialises and one that updates.
func.func @decomposed(%X: memref<6x8xf32> {lw.name = "X"}, %s: memref<6xf32> {lw.name = "s", lw.output}) {
  lw_loop.for i in 6 {
    lw_loop.block s_init (r in 6 = i) writes %s[r] : memref<6xf32> {
      %z = arith.constant 0.0 : f32
      lw_te.yield %z : f32
    }
    lw_loop.for k in 8 {
      lw_loop.block s (i in 6 = i, reduce k in 8 = k) writes %s[i] : memref<6xf32> add no_init {
        %a = lw_loop.load %X[i, k] : memref<6x8xf32>
        lw_te.yield %a : f32
      }
    }
  }
  func.return
}

func.func @chain(%P: memref<6xf32> {lw.name = "P"}, %R: memref<6xf32> {lw.name = "R", lw.output}) {
  %Q = lw_loop.alloc "Q" : memref<6xf32>
  lw_loop.for i in 6 {
    lw_loop.block Q (i in 6 = i) writes %Q[i] : memref<6xf32> {
      %p = lw_loop.load %P[i] : memref<6xf32>
      lw_te.yield %p : f32
    }
    lw_loop.block R (i in 6 = i) writes %R[i] : memref<6xf32> {
      %q = lw_loop.load %Q[i] : memref<6xf32>
      lw_te.yield %q : f32
    }
  }
  func.return
}

// PLAIN: func.func @matmul(%A: memref<6x8xf32> {lw.name = "A"}, %B: memref<8x5xf32> {lw.name = "B"}, %C: memref<6x5xf32> {lw.name = "C", lw.output}) {
// PLAIN-NEXT: %C_local = lw_loop.alloc "C_local" : memref<6x5xf32, "local">
// PLAIN-NEXT: lw_loop.for i in 6 {
// PLAIN-NEXT: lw_loop.for j in 5 {
// PLAIN-NEXT: lw_loop.for k in 8 {
// PLAIN-NEXT: lw_loop.block C (i in 6 = i, j in 5 = j, reduce k in 8 = k) writes %C_local[i, j] : memref<6x5xf32, "local"> add {
// PLAIN-NEXT: %a = lw_loop.load %A[i, k] : memref<6x8xf32>
// PLAIN-NEXT: %b = lw_loop.load %B[k, j] : memref<8x5xf32>
// PLAIN-NEXT: %c = arith.mulf %a, %b : f32
// PLAIN-NEXT: lw_te.yield %c : f32
// PLAIN-NEXT: }
// PLAIN-NEXT: }
// PLAIN-NEXT: }
// PLAIN-NEXT: }
// PLAIN-NEXT: lw_loop.for i in 6 {
// PLAIN-NEXT: lw_loop.for j in 5 {
// PLAIN-NEXT: lw_loop.block C_local (i in 6 = i, j in 5 = j) writes %C[i, j] : memref<6x5xf32> {
// PLAIN-NEXT: %[[V0:[0-9]+]] = lw_loop.load %C_local[i, j] : memref<6x5xf32, "local">
// PLAIN-NEXT: lw_te.yield %[[V0]] : f32
// PLAIN-NEXT: }
// PLAIN-NEXT: }
// PLAIN-NEXT: }
// PLAIN-NEXT: func.return

// Tiles that do not divide leave padding, which nobody writes or reads.
// TILES: func.func @matmul(%A: memref<6x8xf32> {lw.name = "A"}, %B: memref<8x5xf32> {lw.name = "B"}, %C: memref<6x5xf32> {lw.name = "C", lw.output}) {
// TILES-NEXT: %acc = lw_loop.alloc "acc" : memref<2x5x4xf32>
// TILES-NEXT: lw_loop.for i in 6 {
// TILES-NEXT: lw_loop.for j in 5 {
// TILES-NEXT: lw_loop.for k in 8 {
// TILES-NEXT: lw_loop.block C (i in 6 = i, j in 5 = j, reduce k in 8 = k) writes %acc[i floordiv 4, j, i mod 4] : memref<2x5x4xf32> add {
// TILES-NEXT: %a = lw_loop.load %A[i, k] : memref<6x8xf32>
// TILES-NEXT: %b = lw_loop.load %B[k, j] : memref<8x5xf32>
// TILES-NEXT: %c = arith.mulf %a, %b : f32
// TILES-NEXT: lw_te.yield %c : f32
// TILES-NEXT: }
// TILES-NEXT: }
// TILES-NEXT: }
// TILES-NEXT: }
// TILES-NEXT: lw_loop.for i in 6 {
// TILES-NEXT: lw_loop.for j in 5 {
// TILES-NEXT: lw_loop.block acc (i in 6 = i, j in 5 = j) writes %C[i, j] : memref<6x5xf32> {
// TILES-NEXT: %[[V0:[0-9]+]] = lw_loop.load %acc[i floordiv 4, j, i mod 4] : memref<2x5x4xf32>
// TILES-NEXT: lw_te.yield %[[V0]] : f32
// TILES-NEXT: }
// TILES-NEXT: }
// TILES-NEXT: }
// TILES-NEXT: func.return

// Both blocks of a decomposed reduction write to the new buffer, each by its own iterators.
// PAIR: func.func @decomposed(%X: memref<6x8xf32> {lw.name = "X"}, %s: memref<6xf32> {lw.name = "s", lw.output}) {
// PAIR-NEXT: %s_local = lw_loop.alloc "s_local" : memref<2x4xf32, "local">
// PAIR-NEXT: lw_loop.for i in 6 {
// PAIR-NEXT: lw_loop.block s_init (r in 6 = i) writes %s_local[r floordiv 4, r mod 4] : memref<2x4xf32, "local"> {
// PAIR-NEXT: %z = arith.constant 0.000000e+00 : f32
// PAIR-NEXT: lw_te.yield %z : f32
// PAIR-NEXT: }
// PAIR-NEXT: lw_loop.for k in 8 {
// PAIR-NEXT: lw_loop.block s (i in 6 = i, reduce k in 8 = k) writes %s_local[i floordiv 4, i mod 4] : memref<2x4xf32, "local"> add no_init {
// PAIR-NEXT: %a = lw_loop.load %X[i, k] : memref<6x8xf32>
// PAIR-NEXT: lw_te.yield %a : f32
// PAIR-NEXT: }
// PAIR-NEXT: }
// PAIR-NEXT: }
// PAIR-NEXT: lw_loop.for i in 6 {
// PAIR-NEXT: lw_loop.block s_local (i in 6 = i) writes %s[i] : memref<6xf32> {
// PAIR-NEXT: %[[V0:[0-9]+]] = lw_loop.load %s_local[i floordiv 4, i mod 4] : memref<2x4xf32, "local">
// PAIR-NEXT: lw_te.yield %[[V0]] : f32
// PAIR-NEXT: }
// PAIR-NEXT: }
// PAIR-NEXT: func.return

// REDUCE: lw-cache-write{block="C" layout="i","j","k"}: the layout must hold the iterators that 'C' writes at, but 'k' is not over them: 'k' is none of i, j
// OTHER: lw-cache-write{block="C" buffer="A"}: buffer must be one that block 'C' writes (C), got 'A'
// READER: lw-cache-write{block="Q"}: no block in the same nest may read 'Q', 'R' does; do this step before moving one to the other
// NAME: lw-cache-write{block="C" label="a-b"}: label must be an identifier, got 'a-b'
