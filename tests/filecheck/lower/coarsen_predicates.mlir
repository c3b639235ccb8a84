// RUN: xdsl-opt %s -p lw-tell-loops-apart,lw-coarsen-predicates --split-input-file | filecheck %s
// RUN: xdsl-opt %s -p lw-tell-loops-apart,lw-place-buffers,lw-coarsen-predicates --split-input-file --verify-diagnostics | filecheck %s --check-prefix=LATE

// Steps of 4 divide 1000, blocks of 256 do not: a step is inside as a whole.

builtin.module {
  func.func @steps(%a: memref<1000xf32> {lw.name = "a"}, %b: memref<1000xf32> {lw.name = "b", lw.output}) {
    lw_loop.for k0 in 4 {
      lw_loop.for k1 in 64 {
        lw_loop.for k2 in 4 unrolled {
          lw_loop.block b (k in 1000 = k0 * 256 + k1 * 4 + k2) where (999 - k0 * 256 - k1 * 4 - k2 >= 0) writes %b[k] : memref<1000xf32> {
            %0 = lw_loop.load %a[k] : memref<1000xf32>
            lw_te.yield %0 : f32
          }
        }
      }
    }
    func.return
  }
}

// CHECK-LABEL: func.func @steps
// CHECK: lw_loop.block b (k in 1000 = k0 * 256 + k1 * 4 + k2) where (249 - k0 * 64 - k1 >= 0)
// LATE: lw-coarsen-predicates: function 'steps' has been through lw-place-buffers: run the steps behind that

// -----

// Steps of 3 are cut by 1000: each of their iterations is asked.

builtin.module {
  func.func @cut(%a: memref<1000xf32> {lw.name = "a"}, %b: memref<1000xf32> {lw.name = "b", lw.output}) {
    lw_loop.for k0 in 334 {
      lw_loop.for k1 in 3 {
        lw_loop.block b (k in 1000 = k0 * 3 + k1) where (999 - k0 * 3 - k1 >= 0) writes %b[k] : memref<1000xf32> {
          %0 = lw_loop.load %a[k] : memref<1000xf32>
          lw_te.yield %0 : f32
        }
      }
    }
    func.return
  }
}

// CHECK-LABEL: func.func @cut
// CHECK: where (999 - k0 * 3 - k1 >= 0)

// -----

// What comes first is not before 3: the first step is cut, and those behind are not.

builtin.module {
  func.func @begins(%a: memref<16xf32> {lw.name = "a"}, %b: memref<16xf32> {lw.name = "b", lw.output}) {
    lw_loop.for i0 in 4 {
      lw_loop.for i1 in 4 {
        lw_loop.block b (i in 16 = i0 * 4 + i1) where (i0 * 4 + i1 - 3 >= 0, 15 - i0 * 4 - i1 >= 0) writes %b[i] : memref<16xf32> {
          %0 = lw_loop.load %a[i] : memref<16xf32>
          lw_te.yield %0 : f32
        }
      }
    }
    func.return
  }
}

// CHECK-LABEL: func.func @begins
// CHECK: lw_loop.block b (i in 16 = i0 * 4 + i1) where (i0 * 4 + i1 - 3 >= 0) writes

// -----

// A GPU's stay as they are.

builtin.module attributes {lw.target = #lw.target<"cuda max_threads_per_block=1024 max_shared_bytes=49152 warp_size=32 compute_capability=80">} {
  func.func @gpu(%a: memref<1000xf32> {lw.name = "a"}, %b: memref<1000xf32> {lw.name = "b", lw.output}) {
    lw_loop.for i0 in 4 blockIdx.x {
      lw_loop.for i1 in 64 threadIdx.x {
        lw_loop.for i2 in 4 {
          lw_loop.block b (i in 1000 = i0 * 256 + i1 * 4 + i2) where (999 - i0 * 256 - i1 * 4 - i2 >= 0) writes %b[i] : memref<1000xf32> {
            %0 = lw_loop.load %a[i] : memref<1000xf32>
            lw_te.yield %0 : f32
          }
        }
      }
    }
    func.return
  }
}

// CHECK-LABEL: func.func @gpu
// CHECK: where (999 - blockIdx.x * 256 - threadIdx.x * 4 - i2 >= 0)
