// RUN: xdsl-opt %s -p 'lw-prefetch{block=C buffer=B loop=k distance=4},lw-prefetch{block=C buffer=A loop=k}' | filecheck %s --check-prefix=BOTH
// RUN: xdsl-opt %s -p 'lw-prefetch{block=C buffer=B loop=k distance=4},lw-prefetch{block=C buffer=B loop=k distance=2}' | filecheck %s --check-prefix=AGAIN
// RUN: xdsl-opt %s -p 'lw-prefetch{block=C buffer=B loop=k distance=4},lw-lower-loop-to-kernel' | filecheck %s --check-prefix=KERNEL
// RUN: xdsl-opt %s -p 'lw-prefetch{block=C buffer=B loop=k distance=0}' --verify-diagnostics | filecheck %s --check-prefix=DISTANCE
// RUN: xdsl-opt %s -p 'lw-prefetch{block=C buffer=X loop=k}' --verify-diagnostics | filecheck %s --check-prefix=BUFFER
// RUN: xdsl-opt %s -p 'lw-prefetch{block=C buffer=B loop=i}' --verify-diagnostics | filecheck %s --check-prefix=MOVES

func.func @mm(%A: memref<6x10xf32> {lw.name = "A"}, %B: memref<10x8xf32> {lw.name = "B"}, %C: memref<6x8xf32> {lw.name = "C", lw.output}) {
  lw_loop.for i in 6 {
    lw_loop.for k in 10 {
      lw_loop.for j in 8 vectorized {
        lw_loop.block C (i in 6 = i, j in 8 = j, reduce k in 10 = k) writes %C[i, j] : memref<6x8xf32> add {
          %a = lw_loop.load %A[i, k] : memref<6x10xf32>
          %b = lw_loop.load %B[k, j] : memref<10x8xf32>
          %m = arith.mulf %a, %b : f32
          lw_te.yield %m : f32
        }
      }
    }
  }
  func.return
}

// BOTH: lw_loop.for k in 10 annotated {prefetch = {B = 4 : i64, A = 1 : i64}} {
// AGAIN: lw_loop.for k in 10 annotated {prefetch = {B = 2 : i64}} {

// A line of B, four rows of eight further on, once for the whole vector.
// KERNEL: lw_kernel.load %B[
// KERNEL-NEXT: lw_kernel.prefetch %B[{{.*}} + 32] : memref<10x8xf32>
// KERNEL-NOT: lw_kernel.prefetch

// DISTANCE: distance must be at least 1, got 0
// BUFFER: 'C' must read 'X', it reads A, B
// MOVES: what 'C' reads of 'B' must move with 'i'
