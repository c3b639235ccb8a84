// RUN: xdsl-opt %s -p 'lw-join{block=c}' --split-input-file --verify-diagnostics | filecheck %s
// RUN: xdsl-opt %s -p 'lw-join{block=c cluster="blockIdx.y"}' --split-input-file --verify-diagnostics | filecheck %s --check-prefix=CLUSTER
// RUN: xdsl-opt %s -p 'lw-join{block=c cluster="threadIdx.x"}' --split-input-file --verify-diagnostics | filecheck %s --check-prefix=AXIS
// RUN: xdsl-opt %s -p 'lw-join{block=c_rf}' --split-input-file --verify-diagnostics | filecheck %s --check-prefix=FIRST

// Eight parts of each sum on blocks of their own, and what adds them up: of the same launch, where there are as many tiles.

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
  lw_loop.for i in 2 blockIdx.x {
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

// CHECK: func.func @sums
// CHECK: lw_loop.for i in 2 blockIdx.x annotated {join = 1 : i64} {
// CHECK-NEXT: lw_loop.for j in 16 threadIdx.x {
// CHECK-NEXT: lw_loop.for k0 in 8 {
// CLUSTER: clusters take compute capability 90, the target has 0
// AXIS: a cluster is of blocks along blockIdx.x, .y or .z, got 'threadIdx.x'
// FIRST: 'c_rf' must be in a nest behind another one, and not joined yet

// -----

// More tiles than blocks have written parts of.

module attributes {lw.target = #lw.target<"cuda max_threads_per_block=64">} {
func.func @tiles(%x: memref<8x32xf32> {lw.name = "x"}, %c: memref<32xf32> {lw.name = "c", lw.output}) {
  %c_rf = lw_loop.alloc "c_rf" : memref<8x32xf32>
  lw_loop.for k0 in 8 blockIdx.y {
    lw_loop.for i in 32 blockIdx.x {
      lw_loop.block c_rf (p in 8 = k0, i in 32 = i) writes %c_rf[p, i] : memref<8x32xf32> {
        %0 = lw_loop.load %x[p, i] : memref<8x32xf32>
        lw_te.yield %0 : f32
      }
    }
  }
  lw_loop.for i in 16 blockIdx.x {
    lw_loop.for j in 2 {
      lw_loop.for k0 in 8 {
        lw_loop.block c (i in 32 = i * 2 + j, reduce p in 8 = k0) writes %c[i] : memref<32xf32> add {
          %0 = lw_loop.load %c_rf[p, i] : memref<8x32xf32>
          lw_te.yield %0 : f32
        }
      }
    }
  }
  func.return
}
}

// CHECK: the launch before has 32 blocks on blockIdx.x, and the nest 16

// -----

// No axis of blocks is left to arrive along.

module attributes {lw.target = #lw.target<"cuda max_threads_per_block=64">} {
func.func @none(%x: memref<32xf32> {lw.name = "x"}, %c: memref<32xf32> {lw.name = "c", lw.output}) {
  %t = lw_loop.alloc "t" : memref<32xf32>
  lw_loop.for i in 32 blockIdx.x {
    lw_loop.block t (i in 32 = i) writes %t[i] : memref<32xf32> {
      %0 = lw_loop.load %x[i] : memref<32xf32>
      lw_te.yield %0 : f32
    }
  }
  lw_loop.for i in 32 blockIdx.x {
    lw_loop.block c (i in 32 = i) writes %c[i] : memref<32xf32> {
      %0 = lw_loop.load %t[i] : memref<32xf32>
      lw_te.yield %0 : f32
    }
  }
  func.return
}
}

// CHECK: the launch before must have an axis of blocks that the nest has no loop on, along which they arrive

// -----

module attributes {lw.target = #lw.target<"opencl max_threads_per_block=64">} {
func.func @opencl(%x: memref<8x32xf32> {lw.name = "x"}, %c: memref<32xf32> {lw.name = "c", lw.output}) {
  lw_loop.for i in 32 blockIdx.x {
    lw_loop.for k0 in 8 {
      lw_loop.block c (i in 32 = i, reduce p in 8 = k0) writes %c[i] : memref<32xf32> add {
        %0 = lw_loop.load %x[p, i] : memref<8x32xf32>
        lw_te.yield %0 : f32
      }
    }
  }
  func.return
}
}

// CHECK: blocks of threads must see what others wrote before they came to a counter, which CUDA promises; the target is opencl

// -----

// As many blocks in a nest along the axis as in the one before, all of which run it.

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
  lw_loop.for i in 2 blockIdx.x {
    lw_loop.for j in 16 blockIdx.y {
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

// CLUSTER: the launch before has 8 blocks on blockIdx.y, and the nest 16

// -----

module attributes {lw.target = #lw.target<"cuda compute_capability=90 max_threads_per_block=64">} {
func.func @eight(%x: memref<32x128xf32> {lw.name = "x"}, %c: memref<32xf32> {lw.name = "c", lw.output}) {
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
  lw_loop.for i in 2 blockIdx.x {
    lw_loop.for j in 8 blockIdx.y {
      lw_loop.for k0 in 8 {
        lw_loop.block c (i in 32 = i * 8 + j, reduce p in 8 = k0) writes %c[i] : memref<32xf32> add {
          %0 = lw_loop.load %c_rf[p, i] : memref<8x32xf32>
          lw_te.yield %0 : f32
        }
      }
    }
  }
  func.return
}
}

// CLUSTER: func.func @eight
// CLUSTER: lw_loop.for i in 2 blockIdx.x annotated {join = 1 : i64, cluster = "blockIdx.y"} {

// -----

module attributes {lw.target = #lw.target<"cuda compute_capability=90 max_threads_per_block=64">} {
func.func @many(%x: memref<32x128xf32> {lw.name = "x"}, %c: memref<32xf32> {lw.name = "c", lw.output}) {
  %c_rf = lw_loop.alloc "c_rf" : memref<16x32xf32>
  lw_loop.for k0 in 16 blockIdx.y {
    lw_loop.for i in 2 blockIdx.x {
      lw_loop.for j in 16 threadIdx.x {
        lw_loop.for k1 in 8 {
          lw_loop.block c_rf (p in 16 = k0, i in 32 = i * 16 + j, reduce k in 8 = k1) writes %c_rf[p, i] : memref<16x32xf32> add {
            %0 = lw_loop.load %x[i, p * 8 + k] : memref<32x128xf32>
            lw_te.yield %0 : f32
          }
        }
      }
    }
  }
  lw_loop.for i in 2 blockIdx.x {
    lw_loop.for j in 16 threadIdx.x {
      lw_loop.for k0 in 16 {
        lw_loop.block c (i in 32 = i * 16 + j, reduce p in 16 = k0) writes %c[i] : memref<32xf32> add {
          %0 = lw_loop.load %c_rf[p, i] : memref<16x32xf32>
          lw_te.yield %0 : f32
        }
      }
    }
  }
  func.return
}
}

// CLUSTER: a cluster has 2 to 8 blocks, the launch before has 16 on blockIdx.y
