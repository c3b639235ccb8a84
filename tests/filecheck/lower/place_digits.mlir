// RUN: xdsl-opt %s -p 'lw-tell-loops-apart,lw-place-buffers' | filecheck %s
// RUN: xdsl-opt %s -p 'lw-swizzle{block=t},lw-tell-loops-apart,lw-place-buffers' | filecheck %s --check-prefix=SWIZZLED

// The digit of a thread may be in the middle of an index: a thread's elements are 0, 1, 8, 9, ..., and it keeps these alone.

builtin.module attributes {lw.target = #lw.target<"opencl max_threads_per_block=64 max_shared_bytes=49152">} {
  func.func @digits(%x: memref<16x32xf16> {lw.name = "x"}, %y: memref<16x32xf16> {lw.name = "y", lw.output}) {
    %t = lw_loop.alloc "t" : memref<16x32xf16, "shared">
    %r = lw_loop.alloc "r" : memref<16x32xf16, "local">
    lw_loop.for l in 32 threadIdx.x {
      lw_loop.for w in 16 {
        lw_loop.block t (i in 16 = w, j in 32 = l) writes %t[i, j] : memref<16x32xf16, "shared"> {
          %0 = lw_loop.load %x[i, j] : memref<16x32xf16>
          lw_te.yield %0 : f16
        }
      }
      lw_loop.for h in 2 {
        lw_loop.for n in 4 {
          lw_loop.for p in 2 {
            lw_loop.block r (i in 16 = h * 8 + l floordiv 4, j in 32 = n * 8 + l mod 4 * 2 + p) writes %r[i, j] : memref<16x32xf16, "local"> {
              %0 = lw_loop.load %t[i, j] : memref<16x32xf16, "shared">
              lw_te.yield %0 : f16
            }
          }
        }
      }
      lw_loop.for h in 2 {
        lw_loop.for n in 4 {
          lw_loop.for p in 2 {
            lw_loop.block y (i in 16 = h * 8 + l floordiv 4, j in 32 = n * 8 + l mod 4 * 2 + p) writes %y[i, j] : memref<16x32xf16> {
              %0 = lw_loop.load %r[i, j] : memref<16x32xf16, "local">
              lw_te.yield %0 : f16
            }
          }
        }
      }
    }
    func.return
  }
}

// CHECK: %t = lw_loop.alloc "t" placed [0, 0] of [16, 32] strides [32, 1] : memref<16x32xf16, "shared">
// CHECK: %r = lw_loop.alloc "r" placed [threadIdx.x floordiv 4, threadIdx.x mod 4 * 2] of [2, 8] strides [8, 1] steps [8, 1] periods [1, 8] kept [1, 2] : memref<16x32xf16, "local">

// A row has 64 bytes, 4 chunks of 8 elements; two rows are the width of all banks.
// SWIZZLED: %t = lw_loop.alloc "t" swizzle 128 placed [0, 0] of [16, 32] strides [32, 1] swizzle [8, 64, 4] : memref<16x32xf16, "shared">
