// RUN: xdsl-opt %s -p 'lw-tensorize{block=c loop=h intrinsic="mma.m16n8k16.f16"}' | filecheck %s --check-prefix=NOTE
// RUN: xdsl-opt %s -p 'lw-tensorize{block=c loop=h intrinsic="mma.m16n8k16.f16"},lw-lower-loop-to-kernel' | filecheck %s --check-prefix=KERNEL
// RUN: xdsl-opt %s -p 'lw-tensorize{block=c loop=h intrinsic="mma.m16n8k16.f16"},lw-lower-loop-to-kernel' -t lw-cuda | filecheck %s --check-prefix=CUDA
// RUN: xdsl-opt %s -p 'lw-tensorize{block=c loop=h intrinsic="mma.m16n8k7"}' --verify-diagnostics | filecheck %s --check-prefix=UNKNOWN
// RUN: xdsl-opt %s -p 'lw-tensorize{block=c loop=h intrinsic="mma.m16n8k16.bf16"}' --verify-diagnostics | filecheck %s --check-prefix=TYPES
// RUN: xdsl-opt %s -p 'lw-tensorize{block=c loop=h intrinsic="mma.m16n16k16.f16"}' --verify-diagnostics | filecheck %s --check-prefix=DIGITS
// RUN: xdsl-opt %s -p 'lw-reorder{block=c loops=x,h},lw-tensorize{block=c loop=x intrinsic="mma.m16n8k16.f16"}' --verify-diagnostics | filecheck %s --check-prefix=ORDER
// RUN: xdsl-opt %s -p 'lw-unroll{block=c loop=x},lw-tensorize{block=c loop=h intrinsic="mma.m16n8k16.f16"}' --verify-diagnostics | filecheck %s --check-prefix=SERIAL
// RUN: xdsl-opt %s -p 'lw-set-scope{block=c scope=global},lw-tensorize{block=c loop=h intrinsic="mma.m16n8k16.f16"}' --verify-diagnostics | filecheck %s --check-prefix=SCOPE
// RUN: xdsl-opt %s -p 'lw-tensorize{block=c loop=h intrinsic="mma.m16n8k16.f16"},lw-tensorize{block=c loop=h intrinsic="mma.m16n8k16.f16"}' --verify-diagnostics | filecheck %s --check-prefix=TWICE
// RUN: xdsl-opt %s -p 'lw-tensorize{block=a_shared loop=v intrinsic="mma.m16n8k16.f16"}' --verify-diagnostics | filecheck %s --check-prefix=SUM

builtin.module attributes {lw.target = #lw.target<"cuda max_threads_per_block=1024 max_shared_bytes=49152 warp_size=32 compute_capability=80">} {
  func.func @product(%a: memref<16x16xf16> {lw.name = "a"}, %b: memref<8x16xf16> {lw.name = "b"}, %d: memref<16x8xf32> {lw.name = "d", lw.output}) {
    %a_shared = lw_loop.alloc "a_shared" : memref<16x16xf16, "shared">
    %b_shared = lw_loop.alloc "b_shared" : memref<8x16xf16, "shared">
    %c = lw_loop.alloc "c" : memref<16x8xf32, "local">
    lw_loop.for g in 1 blockIdx.x {
      lw_loop.for lane in 32 threadIdx.x {
        lw_loop.for t in 32 threadIdx.x {
          lw_loop.for v in 8 vectorized {
            lw_loop.block a_shared (i in 16 = t floordiv 2, k in 16 = t mod 2 * 8 + v) writes %a_shared[i, k] : memref<16x16xf16, "shared"> {
              %0 = lw_loop.load %a[i, k] : memref<16x16xf16>
              lw_te.yield %0 : f16
            }
          }
        }
        lw_loop.for t in 32 threadIdx.x {
          lw_loop.for v in 4 vectorized {
            lw_loop.block b_shared (j in 8 = t floordiv 4, k in 16 = t mod 4 * 4 + v) writes %b_shared[j, k] : memref<8x16xf16, "shared"> {
              %0 = lw_loop.load %b[j, k] : memref<8x16xf16>
              lw_te.yield %0 : f16
            }
          }
        }
        lw_loop.for h in 2 {
          lw_loop.for x in 2 {
            lw_loop.for k in 16 {
              lw_loop.block c (i in 16 = h * 8 + lane floordiv 4, j in 8 = lane mod 4 * 2 + x, reduce k in 16 = k) writes %c[i, j] : memref<16x8xf32, "local"> add {
                %0 = lw_loop.load %a_shared[i, k] : memref<16x16xf16, "shared">
                %1 = arith.extf %0 : f16 to f32
                %2 = lw_loop.load %b_shared[j, k] : memref<8x16xf16, "shared">
                %3 = arith.extf %2 : f16 to f32
                %4 = arith.mulf %1, %3 : f32
                lw_te.yield %4 : f32
              }
            }
          }
        }
        lw_loop.for h in 2 unrolled {
          lw_loop.for x in 2 vectorized {
            lw_loop.block d (i in 16 = h * 8 + lane floordiv 4, j in 8 = lane mod 4 * 2 + x) writes %d[i, j] : memref<16x8xf32> {
              %0 = lw_loop.load %c[i, j] : memref<16x8xf32, "local">
              lw_te.yield %0 : f32
            }
          }
        }
      }
    }
    func.return
  }
}

// NOTE: lw_loop.for h in 2 annotated {tensorize = "mma.m16n8k16.f16"} {
// NOTE-NEXT: lw_loop.for x in 2 {
// NOTE-NEXT: lw_loop.for k in 16 {
// NOTE-NEXT: lw_loop.block c (i in 16 = h * 8 + lane floordiv 4, j in 8 = lane mod 4 * 2 + x, reduce k in 16 = k) writes %c[i, j] : memref<16x8xf32, "local"> add {

// A thread has four sums. A lane names a row of 16 bytes: those of a by (l mod 16, l floordiv 16), of b by (l mod 8, l floordiv 8 mod 2).
// KERNEL: %c = lw_kernel.alloc "c" : memref<4xf32, "local">
// KERNEL: lw_kernel.barrier
// KERNEL: %[[A:.*]] = lw_kernel.fragment_load 4 %a_shared[%{{.*}}] : memref<256xf16, "shared">
// KERNEL: %[[B:.*]] = lw_kernel.fragment_load 2 %b_shared[%{{.*}}] : memref<128xf16, "shared">
// KERNEL-NEXT: lw_kernel.mma "mma.m16n8k16.f16" %[[A]], %[[B]], %c[%{{.*}}] at [0, 1, 2, 3] : memref<4xf32, "local">

// CUDA: load_matrices_4(a_shared_part, a_shared + (thread_x >> 4) * 8 + (thread_x & 15) * 16);
// CUDA: load_matrices_2(b_shared_part, b_shared + ((thread_x >> 3) & 1) * 8 + (thread_x & 7) * 16);
// CUDA-NEXT: mma_m16n8k16_f16(c[0], c[1], c[2], c[3], a_shared_part[0], a_shared_part[1], a_shared_part[2], a_shared_part[3], b_shared_part[0], b_shared_part[1]);

// UNKNOWN: no intrinsic is called 'mma.m16n8k7'; there are mma.m16n16k16.bf16, mma.m16n16k16.f16,
// TYPES: factors must be bf16 and bf16, they are f16 and f16
// DIGITS: the nest must be of j floordiv 8 in 2, i floordiv 8 in 2, j mod 2 in 2, k in 16, it is of h in 2, x in 2, k in 16
// ORDER: loop 'lane' must be the lanes i mod 8 * 4 + (j floordiv 2) mod 4, so that it leaves 'b_shared' where it is
// SERIAL: loop 'x' is part of an instruction, so it must be serial
// SCOPE: 'c' holds the sums, so it must be in scope local: set_scope, or cache_write before
// TWICE: loop 'h' must carry no annotation, it has tensorize
// SUM: the nest must be of i floordiv 8 in 2, j mod 2 in 2, k in 16, it is of v in 8
