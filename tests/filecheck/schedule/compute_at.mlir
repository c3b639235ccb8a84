// RUN: xdsl-opt %s -p 'lw-split{block=R loop=i factors=0,2},lw-compute-at{block=C loop=i0},lw-compute-at{block=P loop=k}' | filecheck %s --check-prefix=CHAIN
// RUN: xdsl-opt %s -p 'lw-fuse{block=V loops=i,j},lw-split{block=V loop=i_j factors=0,4},lw-compute-at{block=U loop=i_j0}' | filecheck %s --check-prefix=FUSED
// RUN: xdsl-opt %s -p 'lw-compute-at{block=U loop=i}' | filecheck %s --check-prefix=TWICE
// RUN: xdsl-opt %s -p 'lw-compute-at{block=P loop=y},lw-compute-at{block=C loop=i}' | filecheck %s --check-prefix=LEFT
// RUN: xdsl-opt %s -p 'lw-compute-at{block=R loop=i}' --verify-diagnostics | filecheck %s --check-prefix=OUTPUT
// RUN: xdsl-opt %s -p 'lw-compute-at{block=P loop=i}' --verify-diagnostics | filecheck %s --check-prefix=LOOP
// RUN: xdsl-opt %s -p 'lw-compute-at{block=A loop=x}' --verify-diagnostics | filecheck %s --check-prefix=AMBIGUOUS
// RUN: xdsl-opt %s -p 'lw-compute-at{block=A loop=x consumer=B2}' --verify-diagnostics | filecheck %s --check-prefix=OTHERS
// RUN: xdsl-opt %s -p 'lw-compute-at{block=A loop=x consumer=P}' --verify-diagnostics | filecheck %s --check-prefix=CONSUMER
// RUN: xdsl-opt %s -p 'lw-unroll{block=P loop=c},lw-compute-at{block=P loop=y}' --verify-diagnostics | filecheck %s --check-prefix=MARKED
// RUN: xdsl-opt %s -p 'lw-vectorize{block=R loop=i},lw-compute-at{block=C loop=i}' --verify-diagnostics | filecheck %s --check-prefix=LANES
// RUN: xdsl-opt %s -p 'lw-decompose-reduction{block=C loop=k},lw-compute-at{block=C loop=i}' --verify-diagnostics | filecheck %s --check-prefix=INIT
// RUN: xdsl-opt %s -p 'lw-compute-at{block=F loop=e}' --verify-diagnostics | filecheck %s --check-prefix=EARLY

func.func @conv(%X: memref<9x3xf32> {lw.name = "X"}, %W: memref<3x3xf32> {lw.name = "W"}, %R: memref<5xf32> {lw.name = "R", lw.output}) {
  %P = lw_loop.alloc "P" : memref<11x3xf32>
  %C = lw_loop.alloc "C" : memref<5xf32>
  lw_loop.for i in 11 {
    lw_loop.for c in 3 {
      lw_loop.block P (i in 11 = i, c in 3 = c) writes %P[i, c] : memref<11x3xf32> {
        %x = lw_loop.load %X[i - 1, c] where (i - 1 >= 0, 9 - i >= 0) : memref<9x3xf32>
        lw_te.yield %x : f32
      }
    }
  }
  lw_loop.for y in 5 {
    lw_loop.for k in 3 {
      lw_loop.for r in 3 {
        lw_loop.block C (y in 5 = y, reduce k in 3 = k, reduce r in 3 = r) writes %C[y] : memref<5xf32> add {
          %p = lw_loop.load %P[y * 2 + r, k] : memref<11x3xf32>
          %w = lw_loop.load %W[k, r] : memref<3x3xf32>
          %m = arith.mulf %p, %w : f32
          lw_te.yield %m : f32
        }
      }
    }
  }
  lw_loop.for i in 5 {
    lw_loop.block R (i in 5 = i) writes %R[i] : memref<5xf32> {
      %c = lw_loop.load %C[i] : memref<5xf32>
      %z = arith.constant 0.0 : f32
      %m = arith.maximumf %c, %z : f32
      lw_te.yield %m : f32
    }
  }
  func.return
}

// A reader that reads twice, transposed and under a mask.
func.func @shifted(%X: memref<7x5xf32> {lw.name = "X"}, %V: memref<5x7xf32> {lw.name = "V", lw.output}) {
  %U = lw_loop.alloc "U" : memref<7x5xf32>
  lw_loop.for a in 7 {
    lw_loop.for i in 5 {
      lw_loop.block U (a in 7 = a, i in 5 = i) writes %U[a, i] : memref<7x5xf32> {
        %x = lw_loop.load %X[a, i] : memref<7x5xf32>
        lw_te.yield %x : f32
      }
    }
  }
  lw_loop.for i in 5 {
    lw_loop.for j in 7 {
      lw_loop.block V (i in 5 = i, j in 7 = j) writes %V[i, j] : memref<5x7xf32> {
        %u = lw_loop.load %U[j, i] : memref<7x5xf32>
        %n = lw_loop.load %U[j + 1, i - 1] where (5 - j >= 0, i - 1 >= 0) : memref<7x5xf32>
        %s = arith.addf %u, %n : f32
        lw_te.yield %s : f32
      }
    }
  }
  func.return
}

func.func @readers(%X: memref<6xf32> {lw.name = "X"}, %B1: memref<6xf32> {lw.name = "B1", lw.output}, %B2: memref<6xf32> {lw.name = "B2", lw.output}) {
  %A = lw_loop.alloc "A" : memref<6xf32>
  lw_loop.for i in 6 {
    lw_loop.block A (i in 6 = i) writes %A[i] : memref<6xf32> {
      %x = lw_loop.load %X[i] : memref<6xf32>
      lw_te.yield %x : f32
    }
  }
  lw_loop.for x in 6 {
    lw_loop.block B1 (i in 6 = x) writes %B1[i] : memref<6xf32> {
      %a = lw_loop.load %A[i] : memref<6xf32>
      lw_te.yield %a : f32
    }
  }
  lw_loop.for x in 6 {
    lw_loop.block B2 (i in 6 = x) writes %B2[i] : memref<6xf32> {
      %a = lw_loop.load %A[i] : memref<6xf32>
      lw_te.yield %a : f32
    }
  }
  func.return
}

// E runs in the same child of loop e as G, before which F would have to run.
func.func @late(%X: memref<6x2xf32> {lw.name = "X"}, %G: memref<6x2xf32> {lw.name = "G", lw.output}) {
  %E = lw_loop.alloc "E" : memref<6x2xf32>
  %F = lw_loop.alloc "F" : memref<6x2xf32>
  lw_loop.for e in 6 {
    lw_loop.for t in 2 {
      lw_loop.block E (i in 6 = e, j in 2 = t) writes %E[i, j] : memref<6x2xf32> {
        %x = lw_loop.load %X[i, j] : memref<6x2xf32>
        lw_te.yield %x : f32
      }
      lw_loop.block F (i in 6 = e, j in 2 = t) writes %F[i, j] : memref<6x2xf32> {
        %x = lw_loop.load %E[i, j] : memref<6x2xf32>
        lw_te.yield %x : f32
      }
      lw_loop.block G (i in 6 = e, j in 2 = t) writes %G[i, j] : memref<6x2xf32> {
        %x = lw_loop.load %F[i, j] : memref<6x2xf32>
        lw_te.yield %x : f32
      }
    }
  }
  func.return
}

// A reduction from its start, then a padded producer of a strided reader; both with tails.
// CHAIN: lw_loop.for i0 in 3 {
// CHAIN-NEXT: lw_loop.for [[Y:y]] in 2 {
// CHAIN-NEXT: lw_loop.for [[K:k]] in 3 {
// CHAIN-NEXT: lw_loop.for [[I:i]] in 3 {
// CHAIN-NEXT: lw_loop.block P (i in 11 = i0 * 4 + [[Y]] * 2 + [[I]], c in 3 = [[K]]) where (10 - i0 * 4 - [[Y]] * 2 - [[I]] >= 0) writes %P[i, c] : memref<11x3xf32> {
// CHAIN-NEXT: lw_loop.load %X[i - 1, c] where (i - 1 >= 0, 9 - i >= 0) : memref<9x3xf32>
// CHAIN: lw_loop.for [[R:r]] in 3 {
// CHAIN-NEXT: lw_loop.block C (y in 5 = i0 * 2 + [[Y]], reduce k in 3 = [[K]], reduce r in 3 = [[R]]) where (4 - i0 * 2 - [[Y]] >= 0) writes %C[y] : memref<5xf32> add {
// CHAIN: lw_loop.for i1 in 2 {
// CHAIN-NEXT: lw_loop.block R (i in 5 = i0 * 2 + i1) where (4 - i0 * 2 - i1 >= 0) writes %R[i] : memref<5xf32> {
// CHAIN: func.func @shifted

// A tile of a fused axis starts anywhere in a row: two rows (and the one before), all columns.
// FUSED: lw_loop.for i_j0 in 9 {
// FUSED-NEXT: lw_loop.for [[A:a]] in 7 {
// FUSED-NEXT: lw_loop.for [[I:i]] in 3 {
// FUSED-NEXT: lw_loop.block U (a in 7 = [[A]], i in 5 = (i_j0 * 4) floordiv 7 + [[I]] - 1) where ((i_j0 * 4) floordiv 7 + [[I]] - 1 >= 0, 5 - (i_j0 * 4) floordiv 7 - [[I]] >= 0) writes %U[a, i] : memref<7x5xf32> {
// FUSED: lw_loop.for i_j1 in 4 {
// FUSED-NEXT: lw_loop.block V

// The name of the loop around is taken.
// TWICE: %U = lw_loop.alloc "U"
// TWICE-NEXT: lw_loop.for i in 5 {
// TWICE-NEXT: lw_loop.for [[A:a]] in 7 {
// TWICE-NEXT: lw_loop.for [[I:i_0]] in 2 {
// TWICE-NEXT: lw_loop.block U (a in 7 = [[A]], i in 5 = i + [[I]] - 1) where (i + [[I]] - 1 >= 0) writes %U[a, i] : memref<7x5xf32> {
// TWICE: lw_loop.for j in 7 {
// TWICE-NEXT: lw_loop.block V (i in 5 = i, j in 7 = j) writes %V[i, j] : memref<5x7xf32> {

// What was computed at the moved block stays where it is, all of it.
// LEFT: lw_loop.for y in 5 {
// LEFT-NEXT: lw_loop.for i in 3 {
// LEFT-NEXT: lw_loop.for c in 3 {
// LEFT-NEXT: lw_loop.block P (i in 11 = y * 2 + i, c in 3 = c) writes %P[i, c] : memref<11x3xf32> {
// LEFT: lw_loop.for i in 5 {
// LEFT-NEXT: lw_loop.for k in 3 {
// LEFT-NEXT: lw_loop.for r in 3 {
// LEFT-NEXT: lw_loop.block C (y in 5 = i, reduce k in 3 = k, reduce r in 3 = r) writes %C[y] : memref<5xf32> add {

// OUTPUT: lw-compute-at{block="R" loop="i"}: 'R' must not be an output of the function; reverse_compute_at moves 'R' under a loop of what it reads
// OUTPUT: > lw_loop.block R

// LOOP: lw-compute-at{block="P" loop="i"}: loop must be around a reader of 'P', got 'i'; there are: y, k, r

// AMBIGUOUS: lw-compute-at{block="A" loop="x"}: several loops are called 'x', around B1, B2: say which
// AMBIGUOUS-NEXT: try: lw-compute-at{block="A" loop="x" consumer="B1"}

// OTHERS: lw-compute-at{block="A" loop="x" consumer="B2"}: all readers of 'A' must be under 'x', 'B1' is not
// OTHERS: > lw_loop.block B1

// CONSUMER: lw-compute-at{block="A" loop="x" consumer="P"}: consumer must read what 'A' writes (B1, B2), got 'P'

// MARKED: lw-compute-at{block="P" loop="y"}: loop 'c' must be serial, it is unrolled; do this step before marking the loop
// MARKED: > lw_loop.for c in 3 unrolled {

// LANES: lw-compute-at{block="C" loop="i"}: a vectorized loop must stay innermost, 'i' is vectorized; do this step before marking the loop
// LANES: > lw_loop.for i in 5 vectorized {

// INIT: lw-compute-at{block="C" loop="i"}: 'C' must be written by 'C' alone, 'C_init' writes it too; do this step before decompose_reduction

// EARLY: lw-compute-at{block="F" loop="e"}: what 'F' reads must be there, but 'E' writes 'E' later
// EARLY: > lw_loop.block E
