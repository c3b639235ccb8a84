// RUN: xdsl-opt %s -p lw-tell-loops-apart,lw-keep-in-registers --split-input-file | filecheck %s
// RUN: xdsl-opt %s -p lw-tell-loops-apart,lw-keep-in-registers,lw-keep-in-registers --split-input-file | filecheck %s
// RUN: xdsl-opt %s -p lw-lower-loop-to-kernel --split-input-file | filecheck %s --check-prefix=KERNEL

// A lane holds steps 0, 1, 8 and 9 of k behind twice its place in a row, and no others.

builtin.module attributes {lw.target = #lw.target<"cuda max_threads_per_block=1024 max_shared_bytes=49152 warp_size=32 compute_capability=80">} {
  func.func @product(%a: memref<16x16xf16> {lw.name = "a"}, %b: memref<8x16xf16> {lw.name = "b"}, %d: memref<16x8xf32> {lw.name = "d", lw.output}) {
    %a_own = lw_loop.alloc "a_own" : memref<16x16xf16, "local">
    %b_shared = lw_loop.alloc "b_shared" : memref<8x16xf16, "shared">
    %c = lw_loop.alloc "c" : memref<16x8xf32, "local">
    lw_loop.for g in 1 blockIdx.x {
      lw_loop.for y in 8 threadIdx.y {
        lw_loop.for x in 4 threadIdx.x {
          lw_loop.for v in 4 vectorized {
            lw_loop.block b_shared (j in 8 = y, k in 16 = x * 4 + v) writes %b_shared[j, k] : memref<8x16xf16, "shared"> {
              %0 = lw_loop.load %b[j, k] : memref<8x16xf16>
              lw_te.yield %0 : f16
            }
          }
        }
      }
      lw_loop.for y in 8 threadIdx.y {
        lw_loop.for x in 4 threadIdx.x {
          lw_loop.for q in 2 unrolled {
            lw_loop.for h in 2 unrolled {
              lw_loop.for p in 2 unrolled {
                lw_loop.block a_own (i in 16 = h * 8 + y, k in 16 = q * 8 + x * 2 + p) writes %a_own[i, k] : memref<16x16xf16, "local"> {
                  %0 = lw_loop.load %a[i, k] : memref<16x16xf16>
                  lw_te.yield %0 : f16
                }
              }
            }
          }
        }
      }
      lw_loop.for y in 8 threadIdx.y {
        lw_loop.for x in 4 threadIdx.x {
          lw_loop.for h in 2 annotated {tensorize = "mma.m16n8k16.f16"} {
            lw_loop.for p in 2 {
              lw_loop.for k in 16 {
                lw_loop.block c (i in 16 = h * 8 + y, j in 8 = x * 2 + p, reduce k in 16 = k) writes %c[i, j] : memref<16x8xf32, "local"> add {
                  %0 = lw_loop.load %a_own[i, k] : memref<16x16xf16, "local">
                  %1 = arith.extf %0 : f16 to f32
                  %2 = lw_loop.load %b_shared[j, k] : memref<8x16xf16, "shared">
                  %3 = arith.extf %2 : f16 to f32
                  %4 = arith.mulf %1, %3 : f32
                  lw_te.yield %4 : f32
                }
              }
            }
          }
        }
      }
      lw_loop.for y in 8 threadIdx.y {
        lw_loop.for x in 4 threadIdx.x {
          lw_loop.for h in 2 unrolled {
            lw_loop.for p in 2 vectorized {
              lw_loop.block d (i in 16 = h * 8 + y, j in 8 = x * 2 + p) writes %d[i, j] : memref<16x8xf32> {
                %0 = lw_loop.load %c[i, j] : memref<16x8xf32, "local">
                lw_te.yield %0 : f32
              }
            }
          }
        }
      }
    }
    func.return
  }
}

// CHECK: lw_loop.block c (i in 16 = h$1 * 8 + threadIdx.y, j in 8 = threadIdx.x * 2 + p$1, reduce k in 16 = k, k_own in 16 = k floordiv 8 * 8 + threadIdx.x * 2 + k mod 2)
// CHECK-SAME: annotated {own_factor}
// CHECK-NEXT: lw_loop.load %a_own[i, k_own] : memref<16x16xf16, "local">
// CHECK: lw_loop.load %b_shared[j, k] : memref<8x16xf16, "shared">

// KERNEL: %a_own_part = lw_kernel.fragment_pack %a_own[
// KERNEL-SAME: ] at [0, 1, 4, 5, 2, 3, 6, 7] : memref<8xf16, "local">
// KERNEL: %b_shared_part = lw_kernel.fragment_load 2 %b_shared[
// KERNEL: lw_kernel.mma "mma.m16n8k16.f16" %a_own_part, %b_shared_part, %c[

// -----

// The largest value of a row is the same in all of its columns; what is added is not.

builtin.module attributes {lw.target = #lw.target<"cuda max_threads_per_block=1024 max_shared_bytes=49152 warp_size=32 compute_capability=80">} {
  func.func @rows(%x: memref<4x32x8xf32> {lw.name = "x"}, %y: memref<4x32xf32> {lw.name = "y"}, %z: memref<32x8xf32> {lw.name = "z", lw.output}) {
    %c = lw_loop.alloc "c" : memref<32x8xf32, "local">
    %m = lw_loop.alloc "m" : memref<32x8xf32, "local">
    lw_loop.for i in 32 threadIdx.x {
      lw_loop.for k in 4 {
        lw_loop.for j in 8 unrolled {
          lw_loop.block run (i in 32 = i, j in 8 = j, reduce k in 4 = k) writes %c[i, j] : memref<32x8xf32, "local">, %m[i, j] : memref<32x8xf32, "local"> custom [0.000000e+00 : f32, 0.000000e+00 : f32] {
            %0 = lw_loop.load %x[k, i, j] : memref<4x32x8xf32>
            %1 = lw_loop.load %y[k, i] : memref<4x32xf32>
            lw_te.yield %0, %1 : f32, f32
          } combine {
          ^bb0(%0: f32, %1: f32, %2: f32, %3: f32):
            %4 = arith.maximumf %1, %3 : f32
            %5 = arith.mulf %0, %4 : f32
            %6 = arith.addf %5, %2 : f32
            lw_te.yield %6, %4 : f32, f32
          }
        }
      }
      lw_loop.for j in 8 unrolled {
        lw_loop.block z (i in 32 = i, j in 8 = j) writes %z[i, j] : memref<32x8xf32> {
          %0 = lw_loop.load %c[i, j] : memref<32x8xf32, "local">
          %1 = lw_loop.load %m[i, j] : memref<32x8xf32, "local">
          %2 = arith.addf %0, %1 : f32
          lw_te.yield %2 : f32
        }
      }
    }
    func.return
  }
}

// CHECK: lw_loop.block run
// CHECK-SAME: annotated {carried_once = {outputs = [1 : i64], loops = ["j"]}}
// CHECK-SAME: writes %c[i, j] : memref<32x8xf32, "local">, %m[i, 0] : memref<32x8xf32, "local">
// CHECK: lw_loop.load %c[i, j]
// CHECK: lw_loop.load %m[i, 0]

// KERNEL: lw_kernel.alloc "m" : memref<1xf32, "local">
// KERNEL: scf.for
// KERNEL-COUNT-1: arith.maximumf
// KERNEL-NOT: arith.maximumf
