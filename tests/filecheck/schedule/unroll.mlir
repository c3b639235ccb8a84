// RUN: xdsl-opt %s -p 'lw-split{block=D loop=j factors=3,3},lw-unroll{block=D loop=j1}' | filecheck %s --check-prefix=TAIL
// RUN: xdsl-opt %s -p 'lw-unroll{block=D loop=j},lw-unroll{block=D loop=j}' --verify-diagnostics | filecheck %s --check-prefix=TWICE
// RUN: xdsl-opt %s -p 'lw-unroll{block=D loop=q}' --verify-diagnostics | filecheck %s --check-prefix=NONE

func.func @mm(%A: memref<6x10xf32> {lw.name = "A"}, %B: memref<10x8xf32> {lw.name = "B"}, %D: memref<6x8xf32> {lw.name = "D", lw.output}) {
  %C = lw_loop.alloc "C" : memref<6x8xf32>
  lw_loop.for i in 6 {
    lw_loop.for j in 8 {
      lw_loop.for k in 10 {
        lw_loop.block C (i in 6 = i, j in 8 = j, reduce k in 10 = k) writes %C[i, j] : memref<6x8xf32> add {
          %a = lw_loop.load %A[i, k] : memref<6x10xf32>
          %b = lw_loop.load %B[k, j] : memref<10x8xf32>
          %m = arith.mulf %a, %b : f32
          lw_te.yield %m : f32
        }
      }
    }
  }
  lw_loop.for i in 6 {
    lw_loop.for j in 8 {
      lw_loop.block D (i in 6 = i, j in 8 = j) writes %D[i, j] : memref<6x8xf32> {
        %c = lw_loop.load %C[i, j] : memref<6x8xf32>
        %e = math.exp %c : f32
        lw_te.yield %e : f32
      }
    }
  }
  func.return
}

// TAIL: %C = lw_loop.alloc "C" : memref<6x8xf32>
// TAIL-NEXT: lw_loop.for i in 6 {
// TAIL-NEXT: lw_loop.for j in 8 {
// TAIL-NEXT: lw_loop.for k in 10 {
// TAIL-NEXT: lw_loop.block C (i in 6 = i, j in 8 = j, reduce k in 10 = k) writes %C[i, j] : memref<6x8xf32> add {
// TAIL: lw_loop.for i in 6 {
// TAIL-NEXT: lw_loop.for j0 in 3 {
// TAIL-NEXT: lw_loop.for j1 in 3 unrolled {
// TAIL-NEXT: lw_loop.block D (i in 6 = i, j in 8 = j0 * 3 + j1) where (7 - j0 * 3 - j1 >= 0) writes %D[i, j] : memref<6x8xf32> {

// TWICE: lw-unroll{block="D" loop="j"}: loop 'j' must be serial to be marked, it is unrolled
// TWICE: >   lw_loop.for j in 8 unrolled {

// NONE: lw-unroll{block="D" loop="q"}: block 'D' is in no loop 'q'; loops around it: i, j
// NONE: >     lw_loop.block D (i in 6 = i, j in 8 = j) writes %D[i, j] : memref<6x8xf32> {
