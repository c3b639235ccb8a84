// RUN: xdsl-opt %s -p 'lw-bind{block=b loop=i thread="blockIdx.x"},lw-compute-at{block=a loop=i},lw-set-scope{block=a scope=shared},lw-bind{block=b loop=j thread="threadIdx.x"},lw-bind{block=a loop=ax1 thread="threadIdx.x"},lw-lower-loop-to-kernel' | filecheck %s --check-prefix=SHARED
// RUN: xdsl-opt %s -p 'lw-bind{block=b loop=i thread="blockIdx.x"},lw-compute-at{block=a loop=i},lw-set-scope{block=a scope=local},lw-bind{block=b loop=j thread="threadIdx.x"},lw-bind{block=a loop=ax1 thread="threadIdx.x"},lw-lower-loop-to-kernel' --verify-diagnostics | filecheck %s --check-prefix=LOCAL

module attributes {lw.target = #lw.target<"opencl max_threads_per_block=64">} {
func.func @f(%x: memref<4x16xf32> {lw.name = "x"}, %b: memref<4x16xf32> {lw.name = "b", lw.output}) {
  %a = lw_loop.alloc "a" : memref<4x16xf32>
  lw_loop.for i in 4 {
    lw_loop.for ax1 in 16 {
      lw_loop.block a (i in 4 = i, ax1 in 16 = ax1) writes %a[i, ax1] : memref<4x16xf32> {
        %v = lw_loop.load %x[i, ax1] : memref<4x16xf32>
        %e = math.exp %v : f32
        lw_te.yield %e : f32
      }
    }
  }
  lw_loop.for i in 4 {
    lw_loop.for j in 16 {
      lw_loop.block b (i in 4 = i, j in 16 = j) writes %b[i, j] : memref<4x16xf32> {
        %v = lw_loop.load %a[i, 15 - j] : memref<4x16xf32>
        lw_te.yield %v : f32
      }
    }
  }
  func.return
}
}

// SHARED: lw_kernel.launch grid [4, 1, 1] block [16, 1, 1] {
// SHARED: lw_kernel.alloc "a" : memref<16xf32, "shared">
// SHARED-NOT: lw_kernel.barrier
// SHARED: lw_kernel.store {{.*}}"shared">
// SHARED-NEXT: lw_kernel.barrier
// SHARED-NOT: lw_kernel.barrier
// SHARED: lw_kernel.store
// SHARED-NOT: lw_kernel.barrier
// SHARED: func.return

// LOCAL: lw-lower-loop-to-kernel: 'a' is written by block 'a' and used by block 'b' at another threadIdx.x, which has one of its own: give it scope shared
