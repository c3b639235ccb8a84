// RUN: xdsl-opt %s -p 'lw-swizzle{block=t}' | filecheck %s --check-prefix=SWIZZLE
// RUN: xdsl-opt %s -p 'lw-swizzle{block=t},lw-swizzle{block=t span=64 buffer=t}' | filecheck %s --check-prefix=AGAIN
// RUN: xdsl-opt %s -p 'lw-swizzle{block=t},lw-lower-loop-to-kernel' | filecheck %s --check-prefix=KERNEL
// RUN: xdsl-opt %s -p 'lw-swizzle{block=out}' --verify-diagnostics | filecheck %s --check-prefix=GLOBAL
// RUN: xdsl-opt %s -p 'lw-swizzle{block=t span=48}' --verify-diagnostics | filecheck %s --check-prefix=SPAN
// RUN: xdsl-opt %s -p 'lw-storage-align{block=t axis=0 factor=8 offset=4},lw-swizzle{block=t}' --verify-diagnostics | filecheck %s --check-prefix=PADDED
// RUN: xdsl-opt %s -p 'lw-swizzle{block=t},lw-storage-align{block=t axis=0 factor=8 offset=4}' --verify-diagnostics | filecheck %s --check-prefix=PAD

builtin.module attributes {lw.target = #lw.target<"opencl max_threads_per_block=64 max_shared_bytes=49152">} {
  func.func @turn(%a: memref<32x32xf32> {lw.name = "a"}, %out: memref<32x32xf32> {lw.name = "out", lw.output}) {
    %t = lw_loop.alloc "t" : memref<32x32xf32, "shared">
    lw_loop.for b in 1 blockIdx.x {
      lw_loop.for y in 32 threadIdx.x {
        lw_loop.for x in 8 {
          lw_loop.for v in 4 vectorized {
            lw_loop.block t (i in 32 = y, j in 32 = x * 4 + v) writes %t[i, j] : memref<32x32xf32, "shared"> {
              %v = lw_loop.load %a[i, j] : memref<32x32xf32>
              lw_te.yield %v : f32
            }
          }
        }
      }
      lw_loop.for y in 32 threadIdx.x {
        lw_loop.for x in 32 {
          lw_loop.block out (i in 32 = y, j in 32 = x) writes %out[i, j] : memref<32x32xf32> {
            %v = lw_loop.load %t[j, i] : memref<32x32xf32, "shared">
            lw_te.yield %v : f32
          }
        }
      }
    }
    func.return
  }
}

// SWIZZLE: %t = lw_loop.alloc "t" swizzle 128 : memref<32x32xf32, "shared">

// A second step replaces the first.
// AGAIN: %t = lw_loop.alloc "t" swizzle 64 : memref<32x32xf32, "shared">

// A row of 128 bytes has 8 chunks of 4 elements: chunk x of row y goes where x xor (y mod 8) would. A vector stays whole.
// KERNEL: %[[ROW:.*]] = arith.remui %thread_x, %{{.*}} : index
// KERNEL: scf.for %x = %{{.*}} to %{{.*}} step %{{.*}} {
// KERNEL: %[[CHUNK:.*]] = arith.xori %x, %[[ROW]] : index
// KERNEL: %[[MOVED:.*]] = arith.muli %[[CHUNK]], %{{.*}} : index
// KERNEL: %[[AT:.*]] = arith.addi %{{.*}}, %[[MOVED]] : index
// KERNEL: lw_kernel.store %{{.*}}, %t[%[[AT]]] align 16 : vector<4xf32>, memref<1024xf32, "shared">
// KERNEL: lw_kernel.barrier

// GLOBAL: lw-swizzle{block="out"}: 'out' must be in scope shared, whose banks a swizzle is for
// SPAN: lw-swizzle{block="t" span=48}: span must be 32, 64 or 128 bytes, got 48
// PADDED: lw-swizzle{block="t"}: 't' is padded by storage_align; a swizzle takes the place of that
// PAD: lw-storage-align{block="t" axis=0 factor=8 offset=4}: 't' is swizzled, which padding would take the place of
