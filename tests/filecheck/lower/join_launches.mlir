// RUN: xdsl-opt %s -p lw-tell-loops-apart,lw-place-buffers,lw-drop-edges,lw-join-launches --split-input-file --verify-diagnostics | filecheck %s
// RUN: xdsl-opt %s -p lw-tell-loops-apart,lw-place-buffers,lw-drop-edges,lw-join-launches --split-input-file --verify-diagnostics | xdsl-opt --split-input-file | filecheck %s
// RUN: xdsl-opt %s -p lw-lower-loop-to-kernel --split-input-file --verify-diagnostics | filecheck %s --check-prefix=KERNEL
// RUN: xdsl-opt %s -p lw-tell-loops-apart,lw-join-launches --split-input-file --verify-diagnostics | filecheck %s --check-prefix=EARLY

// Blocks of threads that differ on blockIdx.y alone arrive; the last one of them adds up what all have written.

module attributes {lw.target = #lw.target<"cuda max_threads_per_block=64">} {
func.func @sums(%x: memref<32x128xf32> {lw.name = "x"}, %c: memref<32xf32> {lw.name = "c", lw.output}) {
  %c_rf = lw_loop.alloc "c_rf" : memref<8x32xf32>
  lw_loop.for k0 in 8 blockIdx.y {
    lw_loop.for i in 2 blockIdx.x {
      lw_loop.for j in 16 threadIdx.x {
        lw_loop.for k1 in 16 {
          lw_loop.block c_rf (p in 8 = k0, i in 32 = i * 16 + j, reduce k in 16 = k1) writes %c_rf[p, i] : memref<8x32xf32> add {
            %0 = lw_loop.load %x[i, p * 16 + k] : memref<32x128xf32>
            lw_te.yield %0 : f32
          }
        }
      }
    }
  }
  lw_loop.for i in 2 blockIdx.x annotated {join = 1 : i64} {
    lw_loop.for j in 16 threadIdx.x {
      lw_loop.for k0 in 8 {
        lw_loop.block c (i in 32 = i * 16 + j, reduce p in 8 = k0) writes %c[i] : memref<32xf32> add {
          %0 = lw_loop.load %c_rf[p, i] : memref<8x32xf32>
          lw_te.yield %0 : f32
        }
      }
    }
  }
  func.return
}
}

// CHECK: func.func @sums({{.*}}) attributes {lw.lowered_by = "lw-join-launches"} {
// CHECK: lw_loop.for blockIdx.y in 8 blockIdx.y {
// CHECK: lw_loop.join blockIdx.y of 8
// CHECK-NEXT: lw_loop.for blockIdx.x in 2 blockIdx.x annotated {join = 1 : i64} {

// KERNEL: func.func @sums
// KERNEL: lw_kernel.launch grid [2, 8, 1] block [16, 1, 1] {
// KERNEL-NEXT: [[COUNTERS:%.*]] = lw_kernel.alloc "arrived" : memref<2xi32, "counters">
// KERNEL: [[TILE:%.*]] = lw_kernel.thread "blockIdx.x" : index
// KERNEL: [[LAST:%.*]] = lw_kernel.arrive [[COUNTERS]][[[TILE]]] of 8 : memref<2xi32, "counters">
// KERNEL-NEXT: scf.if [[LAST]] {
// KERNEL: lw_kernel.load %c_rf
// KERNEL: lw_kernel.store {{.*}}, %c[
// KERNEL-NOT: lw_kernel.launch
// KERNEL: func.return

// EARLY: lw-join-launches: function 'sums': run lw-drop-edges right before this, it is not on its way to a kernel

// -----

// What blocks of other tiles wrote is not there yet, whoever is the last one here.

module attributes {lw.target = #lw.target<"cuda max_threads_per_block=64">} {
func.func @turned(%x: memref<32x128xf32> {lw.name = "x"}, %c: memref<32xf32> {lw.name = "c", lw.output}) {
  %c_rf = lw_loop.alloc "c_rf" : memref<8x32xf32>
  lw_loop.for k0 in 8 blockIdx.y {
    lw_loop.for i in 2 blockIdx.x {
      lw_loop.for j in 16 threadIdx.x {
        lw_loop.for k1 in 16 {
          lw_loop.block c_rf (p in 8 = k0, i in 32 = i * 16 + j, reduce k in 16 = k1) writes %c_rf[p, i] : memref<8x32xf32> add {
            %0 = lw_loop.load %x[i, p * 16 + k] : memref<32x128xf32>
            lw_te.yield %0 : f32
          }
        }
      }
    }
  }
  lw_loop.for i in 2 blockIdx.x annotated {join = 1 : i64} {
    lw_loop.for j in 16 threadIdx.x {
      lw_loop.for k0 in 8 {
        lw_loop.block c (i in 32 = i * 16 + j, reduce p in 8 = k0) writes %c[i] : memref<32xf32> add {
          %0 = lw_loop.load %c_rf[p, 31 - i] : memref<8x32xf32>
          lw_te.yield %0 : f32
        }
      }
    }
  }
  func.return
}
}

// KERNEL: 'c_rf' is written by block 'c_rf' and used by block 'c' at another blockIdx.x, and blocks do not wait for each other

// -----

// Blocks of OpenCL do not see what others wrote: two launches.

module attributes {lw.target = #lw.target<"opencl max_threads_per_block=64">} {
func.func @apart(%x: memref<32x128xf32> {lw.name = "x"}, %c: memref<32xf32> {lw.name = "c", lw.output}) {
  %c_rf = lw_loop.alloc "c_rf" : memref<8x32xf32>
  lw_loop.for k0 in 8 blockIdx.y {
    lw_loop.for i in 2 blockIdx.x {
      lw_loop.for j in 16 threadIdx.x {
        lw_loop.for k1 in 16 {
          lw_loop.block c_rf (p in 8 = k0, i in 32 = i * 16 + j, reduce k in 16 = k1) writes %c_rf[p, i] : memref<8x32xf32> add {
            %0 = lw_loop.load %x[i, p * 16 + k] : memref<32x128xf32>
            lw_te.yield %0 : f32
          }
        }
      }
    }
  }
  lw_loop.for i in 2 blockIdx.x annotated {join = 1 : i64} {
    lw_loop.for j in 16 threadIdx.x {
      lw_loop.for k0 in 8 {
        lw_loop.block c (i in 32 = i * 16 + j, reduce p in 8 = k0) writes %c[i] : memref<32xf32> add {
          %0 = lw_loop.load %c_rf[p, i] : memref<8x32xf32>
          lw_te.yield %0 : f32
        }
      }
    }
  }
  func.return
}
}

// CHECK: func.func @apart
// CHECK-NOT: lw_loop.join
// CHECK: func.return
// KERNEL: func.func @apart
// KERNEL: lw_kernel.launch grid [2, 8, 1]
// KERNEL: lw_kernel.launch grid [2, 1, 1]

// -----

// The blocks along blockIdx.y run at once, wait for each other, and each adds up two of the sums of their tile.

module attributes {lw.target = #lw.target<"cuda compute_capability=90 max_threads_per_block=64">} {
func.func @cluster(%x: memref<32x128xf32> {lw.name = "x"}, %c: memref<32xf32> {lw.name = "c", lw.output}) {
  %c_rf = lw_loop.alloc "c_rf" : memref<8x32xf32>
  lw_loop.for k0 in 8 blockIdx.y {
    lw_loop.for i in 2 blockIdx.x {
      lw_loop.for j in 16 threadIdx.x {
        lw_loop.for k1 in 16 {
          lw_loop.block c_rf (p in 8 = k0, i in 32 = i * 16 + j, reduce k in 16 = k1) writes %c_rf[p, i] : memref<8x32xf32> add {
            %0 = lw_loop.load %x[i, p * 16 + k] : memref<32x128xf32>
            lw_te.yield %0 : f32
          }
        }
      }
    }
  }
  lw_loop.for i in 2 blockIdx.x annotated {cluster = "blockIdx.y", join = 1 : i64} {
    lw_loop.for p in 8 blockIdx.y {
      lw_loop.for j in 2 threadIdx.x {
        lw_loop.for k0 in 8 {
          lw_loop.block c (i in 32 = i * 16 + p * 2 + j, reduce p in 8 = k0) writes %c[i] : memref<32xf32> add {
            %0 = lw_loop.load %c_rf[p, i] : memref<8x32xf32>
            lw_te.yield %0 : f32
          }
        }
      }
    }
  }
  func.return
}
}

// CHECK: func.func @cluster
// CHECK: lw_loop.join blockIdx.y of 8 together
// CHECK-NEXT: lw_loop.for blockIdx.x in 2 blockIdx.x annotated {cluster = "blockIdx.y", join = 1 : i64} {
// CHECK-NEXT: lw_loop.for blockIdx.y in 8 blockIdx.y {

// KERNEL: func.func @cluster
// KERNEL: lw_kernel.launch grid [2, 8, 1] block [16, 1, 1] cluster [1, 8, 1] {
// KERNEL: lw_kernel.store {{.*}}, %c_rf[
// KERNEL: lw_kernel.cluster_barrier
// KERNEL: scf.if
// KERNEL: lw_kernel.load %c_rf
// KERNEL: func.return
