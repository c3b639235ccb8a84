// RUN: xdsl-opt %s -p 'lw-reorder{block=C loops=k,j,i}' | filecheck %s --check-prefix=ALL
// RUN: xdsl-opt %s -p 'lw-split{block=C loop=j factors=0,2},lw-parallel{block=C loop=i},lw-reorder{block=C loops=k,i}' | filecheck %s --check-prefix=PLACES
// RUN: xdsl-opt %s -p 'lw-reorder{block=C loops=i,k}' | filecheck %s --check-prefix=SAME
// RUN: xdsl-opt %s -p 'lw-reorder{block=E loops=y,x}' | filecheck %s --check-prefix=PAIR
// RUN: xdsl-opt %s -p 'lw-reorder{block=G loops=y,x}' --verify-diagnostics | filecheck %s --check-prefix=HAZARD
// RUN: xdsl-opt %s -p 'lw-reorder{block=H loops=y,x}' --verify-diagnostics | filecheck %s --check-prefix=NEST
// RUN: xdsl-opt %s -p 'lw-reorder{block=C loops=i,i}' --verify-diagnostics | filecheck %s --check-prefix=TWICE
// RUN: xdsl-opt %s -p 'lw-reorder{block=C loops=i}' --verify-diagnostics | filecheck %s --check-prefix=ONE
// RUN: xdsl-opt %s -p 'lw-reorder{block=C loops=i,q}' --verify-diagnostics | filecheck %s --check-prefix=LOOP
// RUN: xdsl-opt %s -p 'lw-reorder{block=C loops=i,k,j},lw-vectorize{block=C loop=j},lw-reorder{block=C loops=j,k}' --verify-diagnostics | filecheck %s --check-prefix=LANES

func.func @matmul(%A: memref<4x5xf32> {lw.name = "A"}, %B: memref<5x6xf32> {lw.name = "B"}, %C: memref<4x6xf32> {lw.name = "C", lw.output}) {
  lw_loop.for i in 4 {
    lw_loop.for j in 6 {
      lw_loop.for k in 5 {
        lw_loop.block C (i in 4 = i, j in 6 = j, reduce k in 5 = k) writes %C[i, j] : memref<4x6xf32> add {
          %a = lw_loop.load %A[i, k] : memref<4x5xf32>
          %b = lw_loop.load %B[k, j] : memref<5x6xf32>
          %m = arith.mulf %a, %b : f32
          lw_te.yield %m : f32
        }
      }
    }
  }
  func.return
}

// ALL: lw_loop.for k in 5 {
// ALL-NEXT: lw_loop.for j in 6 {
// ALL-NEXT: lw_loop.for i in 4 {
// ALL-NEXT: lw_loop.block C (i in 4 = i, j in 6 = j, reduce k in 5 = k) writes %C[i, j] : memref<4x6xf32> add {

// The loops between keep their places, and every loop its kind.
// PLACES: lw_loop.for k in 5 {
// PLACES-NEXT: lw_loop.for j0 in 3 {
// PLACES-NEXT: lw_loop.for j1 in 2 {
// PLACES-NEXT: lw_loop.for i in 4 parallel {
// PLACES-NEXT: lw_loop.block C (i in 4 = i, j in 6 = j0 * 2 + j1, reduce k in 5 = k) writes

// SAME: lw_loop.for i in 4 {
// SAME-NEXT: lw_loop.for j in 6 {
// SAME-NEXT: lw_loop.for k in 5 {

// What D passes to E stays within an iteration of both loops; what F passes to G does not.
func.func @pairs(%X: memref<3x4xf32> {lw.name = "X"}, %E: memref<3x4xf32> {lw.name = "E", lw.output}, %G: memref<3x4xf32> {lw.name = "G", lw.output}, %H: memref<3x4xf32> {lw.name = "H", lw.output}, %K: memref<3xf32> {lw.name = "K", lw.output}) {
  %D = lw_loop.alloc "D" : memref<3x4xf32>
  %F = lw_loop.alloc "F" : memref<3x4xf32>
  lw_loop.for x in 3 {
    lw_loop.for y in 4 {
      lw_loop.block D (x in 3 = x, y in 4 = y) writes %D[x, y] : memref<3x4xf32> {
        %v = lw_loop.load %X[x, y] : memref<3x4xf32>
        lw_te.yield %v : f32
      }
      lw_loop.block E (x in 3 = x, y in 4 = y) writes %E[x, y] : memref<3x4xf32> {
        %v = lw_loop.load %D[x, y] : memref<3x4xf32>
        lw_te.yield %v : f32
      }
    }
  }
  lw_loop.for x in 3 {
    lw_loop.for y in 4 {
      lw_loop.block F (x in 3 = x, y in 4 = y) writes %F[x, y] : memref<3x4xf32> {
        %v = lw_loop.load %X[x, y] : memref<3x4xf32>
        lw_te.yield %v : f32
      }
      lw_loop.block G (x in 3 = x, y in 4 = y) writes %G[x, y] : memref<3x4xf32> {
        %v = lw_loop.load %F[x, 0] : memref<3x4xf32>
        lw_te.yield %v : f32
      }
    }
  }
  lw_loop.for x in 3 {
    lw_loop.block K (x in 3 = x) writes %K[x] : memref<3xf32> {
      %v = lw_loop.load %F[x, 1] : memref<3x4xf32>
      lw_te.yield %v : f32
    }
    lw_loop.for y in 4 {
      lw_loop.block H (x in 3 = x, y in 4 = y) writes %H[x, y] : memref<3x4xf32> {
        %v = lw_loop.load %X[x, y] : memref<3x4xf32>
        lw_te.yield %v : f32
      }
    }
  }
  func.return
}

// PAIR: func.func @pairs
// PAIR: lw_loop.for y in 4 {
// PAIR-NEXT: lw_loop.for x in 3 {
// PAIR-NEXT: lw_loop.block D (x in 3 = x, y in 4 = y) writes
// PAIR: lw_loop.block E (x in 3 = x, y in 4 = y) writes

// HAZARD: lw-reorder{block="G" loops="y","x"}: the dependences must allow the order, but 'F' is passed from 'F' to 'G' across iterations
// HAZARD: > lw_loop.for x in 3 {

// NEST: lw-reorder{block="H" loops="y","x"}: the loops must be perfectly nested, 'x' holds more than 'y'
// NEST: > lw_loop.for x in 3 {

// TWICE: lw-reorder{block="C" loops="i","i"}: two or more different loops are needed

// ONE: lw-reorder{block="C" loops="i"}: two or more different loops are needed

// LOOP: lw-reorder{block="C" loops="i","q"}: block 'C' is in no loop 'q'; loops around it: i, j, k

// LANES: lw-reorder{block="C" loops="j","k"}: a vectorized loop must stay innermost, 'k' would be in 'j'
