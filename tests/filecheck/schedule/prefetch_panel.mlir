// RUN: xdsl-opt %s -p 'lw-prefetch-panel{block=C buffer=B loop=t}' | filecheck %s --check-prefix=MARK
// RUN: xdsl-opt %s -p 'lw-prefetch-panel{block=C buffer=B loop=t},lw-lower-loop-to-kernel' | filecheck %s --check-prefix=KERNEL
// RUN: xdsl-opt %s -p 'lw-prefetch-panel{block=C buffer=X loop=t}' --verify-diagnostics | filecheck %s --check-prefix=BUFFER
// RUN: xdsl-opt %s -p 'lw-prefetch-panel{block=C buffer=A loop=t}' --verify-diagnostics | filecheck %s --check-prefix=ONE

// Tasks are two halves of the rows for each of three panels of 32 terms by 16 columns.
func.func @mm(%A: memref<4x40xf32> {lw.name = "A"}, %B: memref<3x32x16xf32> {lw.name = "B"}, %C: memref<4x48xf32> {lw.name = "C", lw.output}) {
  lw_loop.for t in 6 {
    lw_loop.for k in 32 {
      lw_loop.for i in 2 unrolled {
        lw_loop.for j in 16 vectorized {
          lw_loop.block C (i in 4 = t mod 2 * 2 + i, j in 48 = t floordiv 2 * 16 + j, reduce k in 32 = k) writes %C[i, j] : memref<4x48xf32> add {
            %a = lw_loop.load %A[i, k] : memref<4x40xf32>
            %b = lw_loop.load %B[j floordiv 16, k, j mod 16] : memref<3x32x16xf32>
            %m = arith.mulf %a, %b : f32
            lw_te.yield %m : f32
          }
        }
      }
    }
  }
  func.return
}

// MARK: lw_loop.for t in 6 annotated {prefetch_panel = ["B"]} {

// Half a line in each of 64 steps, of the panel after this one.
// KERNEL: lw_kernel.load %B[
// KERNEL: lw_kernel.prefetch %B[{{.*}} + 512] level 2 : memref<3x32x16xf32>
// KERNEL-NOT: lw_kernel.prefetch

// BUFFER: 'C' must read 'X', it reads A, B
// ONE: what 'C' reads of 'A' in an iteration of 't' must be one run of elements
