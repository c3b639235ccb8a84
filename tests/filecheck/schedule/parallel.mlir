// RUN: xdsl-opt %s -p 'lw-fuse{block=D loops=i,j},lw-split{block=D loop=i_j factors=8,8},lw-parallel{block=D loop=i_j0}' | filecheck %s --check-prefix=FUSED
// RUN: xdsl-opt %s -p 'lw-parallel{block=S loop=k}' --verify-diagnostics | filecheck %s --check-prefix=REDUCE
// RUN: xdsl-opt %s -p 'lw-parallel{block=S loop=t}' --verify-diagnostics | filecheck %s --check-prefix=TWICE
// RUN: xdsl-opt %s -p 'lw-parallel{block=D loop=i},lw-parallel{block=D loop=j}' --verify-diagnostics | filecheck %s --check-prefix=NESTED
// RUN: xdsl-opt %s -p 'lw-bind{block=D loop=i thread="blockIdx.x"},lw-parallel{block=D loop=j}' --verify-diagnostics | filecheck %s --check-prefix=GPU
// RUN: xdsl-opt %s -p 'lw-unroll{block=D loop=i},lw-parallel{block=D loop=i}' --verify-diagnostics | filecheck %s --check-prefix=MARKED

func.func @twice(%A: memref<6x10xf32> {lw.name = "A"}, %S: memref<6xf32> {lw.name = "S", lw.output}, %D: memref<6x10xf32> {lw.name = "D", lw.output}) {
  lw_loop.for t in 2 {
    lw_loop.for i in 6 {
      lw_loop.for k in 10 {
        lw_loop.block S (i in 6 = i, reduce k in 10 = k) writes %S[i] : memref<6xf32> add {
          %a = lw_loop.load %A[i, k] : memref<6x10xf32>
          lw_te.yield %a : f32
        }
      }
    }
  }
  lw_loop.for i in 6 {
    lw_loop.for j in 10 {
      lw_loop.block D (i in 6 = i, j in 10 = j) writes %D[i, j] : memref<6x10xf32> {
        %a = lw_loop.load %A[i, j] : memref<6x10xf32>
        %e = math.exp %a : f32
        lw_te.yield %e : f32
      }
    }
  }
  func.return
}

// A fused and split loop with a tail still tells the elements apart.
// FUSED: lw_loop.for t in 2 {
// FUSED-NEXT: lw_loop.for i in 6 {
// FUSED-NEXT: lw_loop.for k in 10 {
// FUSED-NEXT: lw_loop.block S (i in 6 = i, reduce k in 10 = k) writes %S[i] : memref<6xf32> add {
// FUSED: lw_loop.for i_j0 in 8 parallel {
// FUSED-NEXT: lw_loop.for i_j1 in 8 {
// FUSED-NEXT: lw_loop.block D (i in 6 = (i_j0 * 8 + i_j1) floordiv 10, j in 10 = (i_j0 * 8 + i_j1) mod 10) where (59 - i_j0 * 8 - i_j1 >= 0) writes %D[i, j] : memref<6x10xf32> {

// REDUCE: lw-parallel{block="S" loop="k"}: iterations that run at once must share nothing, but for 'k' block 'S' reduces over it
// REDUCE-NEXT: try: lw-rfactor{block="S" loop="k"}
// REDUCE: >     lw_loop.for k in 10 {

// TWICE: lw-parallel{block="S" loop="t"}: iterations that run at once must share nothing, but for 't' its iterations may touch the same elements of 'S'
// TWICE: > lw_loop.for t in 2 {

// NESTED: lw-parallel{block="D" loop="j"}: parallel loops must not nest, 'i' is one; fuse the two first
// NESTED: > lw_loop.for i in 6 parallel {

// GPU: lw-parallel{block="D" loop="j"}: a nest runs on the threads of a CPU or of a GPU, 'i' is blockIdx.x
// GPU: > lw_loop.for i in 6 blockIdx.x {

// MARKED: lw-parallel{block="D" loop="i"}: loop 'i' must be serial to be marked, it is unrolled
// MARKED: > lw_loop.for i in 6 unrolled {
