// RUN: xdsl-opt %s -p lw-tell-loops-apart,lw-place-buffers --split-input-file --verify-diagnostics | filecheck %s
// RUN: xdsl-opt %s -p lw-tell-loops-apart,lw-place-buffers --split-input-file --verify-diagnostics | xdsl-opt --split-input-file | filecheck %s
// RUN: xdsl-opt %s -p lw-place-buffers --split-input-file --verify-diagnostics | filecheck %s --check-prefix=APART

// A buffer of one iteration of `i`, in registers: three of its rows, of all columns, and not where lanes are.

func.func @rows(%x: memref<8x64xf32> {lw.name = "x"}, %b: memref<8x64xf32> {lw.name = "b", lw.output}) {
  %unused = lw_loop.alloc "unused" : memref<4xf32>
  %r = lw_loop.alloc "r" : memref<9x64xf32, "local">
  %v = lw_loop.alloc "v" : memref<8x64xf32, "local">
  lw_loop.for i in 4 {
    lw_loop.for y in 3 {
      lw_loop.for k in 64 {
        lw_loop.block r (i in 9 = i * 2 + y, k in 64 = k) writes %r[i, k] : memref<9x64xf32, "local"> {
          %0 = lw_loop.load %x[i, k] where (7 - i >= 0) : memref<8x64xf32>
          lw_te.yield %0 : f32
        }
      }
    }
    lw_loop.for j in 2 {
      lw_loop.for k0 in 16 {
        lw_loop.for k1 in 4 vectorized {
          lw_loop.block v (i in 8 = i * 2 + j, k in 64 = k0 * 4 + k1) writes %v[i, k] : memref<8x64xf32, "local"> {
            %0 = lw_loop.load %r[i + 1, k] : memref<9x64xf32, "local">
            lw_te.yield %0 : f32
          }
          lw_loop.block b (i in 8 = i * 2 + j, k in 64 = k0 * 4 + k1) writes %b[i, k] : memref<8x64xf32> {
            %0 = lw_loop.load %v[i, k] : memref<8x64xf32, "local">
            lw_te.yield %0 : f32
          }
        }
      }
    }
  }
  func.return
}

// CHECK: func.func @rows(%x: memref<8x64xf32> {lw.name = "x"}, %b: memref<8x64xf32> {lw.name = "b", lw.output}) attributes {lw.lowered_by = "lw-place-buffers"} {
// CHECK-NEXT: %unused = lw_loop.alloc "unused" : memref<4xf32>
// CHECK-NEXT: lw_loop.for i in 4 {
// CHECK-NEXT: %r = lw_loop.alloc "r" placed [i * 2, 0] of [3, 64] strides [64, 1] : memref<9x64xf32, "local">
// CHECK-NEXT: lw_loop.for y in 3 {
// CHECK: lw_loop.for k0 in 16 {
// CHECK-NEXT: %v = lw_loop.alloc "v" placed [i * 2 + j, k0 * 4] of [1, 4] strides [4, 1] : memref<8x64xf32, "local">
// CHECK-NEXT: lw_loop.for k1 in 4 vectorized {

// -----

// On a GPU the threads of a block share a tile, whose rows start as `storage_align` asks; each thread has registers for
// its own elements only, and for those of each of its virtual threads.

module attributes {lw.target = #lw.target<"cuda compute_capability=90">} {
func.func @tile(%x: memref<8x64xf32> {lw.name = "x"}, %b: memref<8x64xf32> {lw.name = "b", lw.output}) {
  %t = lw_loop.alloc "t" align [0, 8, 4] : memref<8x64xf32, "shared">
  %r = lw_loop.alloc "r" : memref<8x64xf32, "local">
  %p = lw_loop.alloc "p" : memref<8x64xf32, "local">
  lw_loop.for i in 4 blockIdx.x {
    lw_loop.for f in 32 threadIdx.x {
      lw_loop.for g in 4 {
        lw_loop.block t (i in 8 = i * 2 + g floordiv 2, k in 64 = g mod 2 * 32 + f) writes %t[i, k] : memref<8x64xf32, "shared"> {
          %0 = lw_loop.load %x[i, k] : memref<8x64xf32>
          lw_te.yield %0 : f32
        }
      }
    }
    lw_loop.for k in 32 threadIdx.x {
      lw_loop.for v in 2 vthread {
        lw_loop.for j in 2 {
          lw_loop.block r (i in 8 = i * 2 + j, k in 64 = v * 32 + k) writes %r[i, k] : memref<8x64xf32, "local"> {
            %0 = lw_loop.load %t[i, 63 - k] : memref<8x64xf32, "shared">
            lw_te.yield %0 : f32
          }
        }
        lw_loop.for w in 2 {
          lw_loop.block p (i in 8 = i * 2 + w, k in 64 = v * 32 + k) writes %p[i, k] : memref<8x64xf32, "local"> {
            %0 = lw_loop.load %r[i, k] : memref<8x64xf32, "local">
            lw_te.yield %0 : f32
          }
        }
      }
    }
    lw_loop.for h in 32 threadIdx.x {
      lw_loop.for l in 4 {
        lw_loop.block b (i in 8 = i * 2 + l floordiv 2, k in 64 = l mod 2 * 32 + h) writes %b[i, k] : memref<8x64xf32> {
          %0 = lw_loop.load %p[i, k] : memref<8x64xf32, "local">
          lw_te.yield %0 : f32
        }
      }
    }
  }
  func.return
}
}

// CHECK: lw_loop.for blockIdx.x in 4 blockIdx.x {
// CHECK-NEXT: %t = lw_loop.alloc "t" align [0, 8, 4] placed [blockIdx.x * 2, 0] of [2, 64] strides [68, 1] : memref<8x64xf32, "shared">
// CHECK-NEXT: %p = lw_loop.alloc "p" placed [blockIdx.x * 2, threadIdx.x] of [2, 2] strides [2, 1] steps [1, 32] : memref<8x64xf32, "local">
// CHECK: lw_loop.for v in 2 vthread {
// CHECK-NEXT: %r = lw_loop.alloc "r" placed [blockIdx.x * 2, v * 32 + threadIdx.x] of [2, 1] strides [1, 1] copies (v = 2) : memref<8x64xf32, "local">

// APART: lw-place-buffers: function 'tile' has loops that share a name: run lw-tell-loops-apart first

// -----

// The last of two times 32 threads read 15 elements behind the 49 in shared memory, for registers that nobody reads.

builtin.module attributes {lw.target = #lw.target<"opencl max_threads_per_block=64 max_shared_bytes=49152">} {
func.func @beyond(%x: memref<7x7xf32> {lw.name = "x"}, %y: memref<7x7xf32> {lw.name = "y", lw.output}) {
  %t = lw_loop.alloc "t" : memref<7x7xf32, "shared">
  %r = lw_loop.alloc "r" : memref<7x7xf32, "local">
  lw_loop.for l in 49 threadIdx.x {
    lw_loop.block t (i in 7 = l floordiv 7, j in 7 = l mod 7) writes %t[i, j] : memref<7x7xf32, "shared"> {
      %0 = lw_loop.load %x[i, j] : memref<7x7xf32>
      lw_te.yield %0 : f32
    }
  }
  lw_loop.for h in 32 threadIdx.x {
    lw_loop.for v in 2 {
      lw_loop.block r (i in 7 = (v * 32 + h) floordiv 7, j in 7 = (v * 32 + h) mod 7) where (48 - v * 32 - h >= 0) writes %r[i, j] : memref<7x7xf32, "local"> {
        %0 = lw_loop.load %t[i, j] : memref<7x7xf32, "shared">
        lw_te.yield %0 : f32
      }
    }
    lw_loop.for w in 2 {
      lw_loop.block y (i in 7 = (w * 32 + h) floordiv 7, j in 7 = (w * 32 + h) mod 7) where (48 - w * 32 - h >= 0) writes %y[i, j] : memref<7x7xf32> {
        %0 = lw_loop.load %r[i, j] : memref<7x7xf32, "local">
        lw_te.yield %0 : f32
      }
    }
  }
  func.return
}
}

// CHECK-LABEL: func.func @beyond
// CHECK: lw_loop.alloc "t" placed [0, 0] of [7, 7] strides [7, 1] spare [15] : memref<7x7xf32, "shared">

// APART: lw-place-buffers: function 'beyond' has loops that share a name: run lw-tell-loops-apart first
