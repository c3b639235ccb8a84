// RUN: xdsl-opt %s -p lw-fill-tails --split-input-file --verify-diagnostics | filecheck %s
// RUN: xdsl-opt %s -p lw-fill-tails,lw-fill-tails --split-input-file --verify-diagnostics | filecheck %s --check-prefix=EARLY

// Thirteen terms in steps of four: both factors are zero beyond the terms in shared memory, and all of a step is added.

builtin.module attributes {lw.target = #lw.target<"cuda max_threads_per_block=64 max_shared_bytes=4096 warp_size=32 max_vthreads=8 compute_capability=90">} {
  func.func @tails(%a: memref<5x13xf32> {lw.name = "a"}, %b: memref<13x8xf32> {lw.name = "b"}, %T_matmul: memref<5x8xf32> {lw.name = "T_matmul", lw.output}) attributes {lw.lowered_by = "lw-carry-sums"} {
    lw_loop.for blockIdx.x in 5 blockIdx.x {
      lw_loop.for threadIdx.x in 4 threadIdx.x {
        %c_tile = lw_loop.alloc "c_tile" placed [blockIdx.x, threadIdx.x * 2] of [1, 2] strides [2, 1] : memref<5x8xf32, "local">
        lw_loop.for j1 in 2 vectorized {
          lw_loop.block T_matmul$start (i in 5 = blockIdx.x, j in 8 = threadIdx.x * 2 + j1) annotated {starts = "T_matmul"} writes %c_tile[i, j] : memref<5x8xf32, "local"> {
            %0 = arith.constant 0.000000e+00 : f32
            lw_te.yield %0 : f32
          }
        }
        lw_loop.for k0 in 4 {
          %a_shared = lw_loop.alloc "a_shared" placed [blockIdx.x, k0 * 4] of [1, 4] strides [4, 1] : memref<5x13xf32, "shared">
          %b_shared = lw_loop.alloc "b_shared" placed [k0 * 4, 0] of [4, 8] strides [8, 1] : memref<13x8xf32, "shared">
          lw_loop.barrier
          lw_loop.for threadIdx.x in 4 threadIdx.x {
            lw_loop.block a_shared (ax0 in 5 = blockIdx.x, ax1 in 13 = k0 * 4 + threadIdx.x) where (12 - k0 * 4 - threadIdx.x >= 0) writes %a_shared[ax0, ax1] : memref<5x13xf32, "shared"> {
              %1 = lw_loop.load %a[ax0, ax1] : memref<5x13xf32>
              lw_te.yield %1 : f32
            }
          }
          lw_loop.for threadIdx.x in 4 threadIdx.x {
            lw_loop.for ax1 in 8 {
              lw_loop.block b_shared (ax0 in 13 = k0 * 4 + threadIdx.x, ax1 in 8 = ax1) where (12 - k0 * 4 - threadIdx.x >= 0) writes %b_shared[ax0, ax1] : memref<13x8xf32, "shared"> {
                %2 = lw_loop.load %b[ax0, ax1] : memref<13x8xf32>
                lw_te.yield %2 : f32
              }
            }
          }
          lw_loop.barrier
          lw_loop.for k1 in 4 unrolled {
            lw_loop.for j1 in 2 vectorized {
              lw_loop.block T_matmul (i in 5 = blockIdx.x, j in 8 = threadIdx.x * 2 + j1, reduce k in 13 = k0 * 4 + k1) where (12 - k0 * 4 - k1 >= 0) writes %c_tile[i, j] : memref<5x8xf32, "local"> add no_init {
                %3 = lw_loop.load %a_shared[i, k] : memref<5x13xf32, "shared">
                %4 = lw_loop.load %b_shared[k, j] : memref<13x8xf32, "shared">
                %5 = arith.mulf %3, %4 : f32
                lw_te.yield %5 : f32
              }
            }
          }
        }
        lw_loop.for j1$1 in 2 vectorized {
          lw_loop.block c_tile (i in 5 = blockIdx.x, j in 8 = threadIdx.x * 2 + j1$1) writes %T_matmul[i, j] : memref<5x8xf32> {
            %6 = lw_loop.load %c_tile[i, j] : memref<5x8xf32, "local">
            lw_te.yield %6 : f32
          }
        }
      }
    }
    func.return
  }
}

// CHECK: func.func @tails({{.*}}) attributes {lw.lowered_by = "lw-fill-tails"} {
// CHECK: lw_loop.block a_shared (ax0 in 5 = blockIdx.x, ax1 in 13 = k0 * 4 + threadIdx.x) writes
// CHECK-NEXT: lw_loop.load %a[ax0, ax1] where (12 - ax1 >= 0)
// CHECK: lw_loop.block b_shared (ax0 in 13 = k0 * 4 + threadIdx.x, ax1 in 8 = ax1) writes
// CHECK-NEXT: lw_loop.load %b[ax0, ax1] where (12 - ax0 >= 0)
// CHECK: lw_loop.block T_matmul (i in 5 = blockIdx.x, j in 8 = threadIdx.x * 2 + j1, reduce k in 13 = k0 * 4 + k1) writes

// EARLY: lw-fill-tails: function 'tails': run lw-carry-sums right before this, lw-fill-tails was the last step

// -----

// Where one factor is read where it is, the steps ask: zero times what lies beyond it might be no number.

builtin.module attributes {lw.target = #lw.target<"cuda max_threads_per_block=64 max_shared_bytes=4096 warp_size=32 max_vthreads=8 compute_capability=90">} {
  func.func @stays(%a: memref<5x13xf32> {lw.name = "a"}, %b: memref<13x8xf32> {lw.name = "b"}, %T_matmul: memref<5x8xf32> {lw.name = "T_matmul", lw.output}) attributes {lw.lowered_by = "lw-carry-sums"} {
    lw_loop.for blockIdx.x in 5 blockIdx.x {
      lw_loop.for threadIdx.x in 4 threadIdx.x {
        %c_tile = lw_loop.alloc "c_tile" placed [blockIdx.x, threadIdx.x * 2] of [1, 2] strides [2, 1] : memref<5x8xf32, "local">
        lw_loop.for j1 in 2 vectorized {
          lw_loop.block T_matmul$start (i in 5 = blockIdx.x, j in 8 = threadIdx.x * 2 + j1) annotated {starts = "T_matmul"} writes %c_tile[i, j] : memref<5x8xf32, "local"> {
            %0 = arith.constant 0.000000e+00 : f32
            lw_te.yield %0 : f32
          }
        }
        lw_loop.for k0 in 4 {
          %a_shared = lw_loop.alloc "a_shared" placed [blockIdx.x, k0 * 4] of [1, 4] strides [4, 1] : memref<5x13xf32, "shared">
          lw_loop.barrier
          lw_loop.for threadIdx.x in 4 threadIdx.x {
            lw_loop.block a_shared (ax0 in 5 = blockIdx.x, ax1 in 13 = k0 * 4 + threadIdx.x) where (12 - k0 * 4 - threadIdx.x >= 0) writes %a_shared[ax0, ax1] : memref<5x13xf32, "shared"> {
              %1 = lw_loop.load %a[ax0, ax1] : memref<5x13xf32>
              lw_te.yield %1 : f32
            }
          }
          lw_loop.barrier
          lw_loop.for k1 in 4 unrolled {
            lw_loop.for j1 in 2 vectorized {
              lw_loop.block T_matmul (i in 5 = blockIdx.x, j in 8 = threadIdx.x * 2 + j1, reduce k in 13 = k0 * 4 + k1) where (12 - k0 * 4 - k1 >= 0) writes %c_tile[i, j] : memref<5x8xf32, "local"> add no_init {
                %3 = lw_loop.load %a_shared[i, k] : memref<5x13xf32, "shared">
                %4 = lw_loop.load %b[k, j] : memref<13x8xf32>
                %5 = arith.mulf %3, %4 : f32
                lw_te.yield %5 : f32
              }
            }
          }
        }
        lw_loop.for j1$1 in 2 vectorized {
          lw_loop.block c_tile (i in 5 = blockIdx.x, j in 8 = threadIdx.x * 2 + j1$1) writes %T_matmul[i, j] : memref<5x8xf32> {
            %6 = lw_loop.load %c_tile[i, j] : memref<5x8xf32, "local">
            lw_te.yield %6 : f32
          }
        }
      }
    }
    func.return
  }
}

// CHECK: func.func @stays(
// CHECK: lw_loop.block a_shared {{.*}} where (12 - k0 * 4 - threadIdx.x >= 0) writes
// CHECK-NEXT: lw_loop.load %a[ax0, ax1] : memref<5x13xf32>
// CHECK: lw_loop.block T_matmul {{.*}} where (12 - k0 * 4 - k1 >= 0) writes
