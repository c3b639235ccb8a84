// RUN: xdsl-opt %s -p lw-tell-loops-apart,lw-place-buffers,lw-drop-edges,lw-join-launches,lw-place-barriers,lw-start-reductions,lw-end-loops,lw-carry-sums,lw-fill-tails,lw-expand-pipelines,lw-settle-loop-kinds,lw-place-predicates --split-input-file --verify-diagnostics --parsing-diagnostics | filecheck %s
// RUN: xdsl-opt %s -p lw-tell-loops-apart,lw-place-buffers,lw-place-predicates --split-input-file --verify-diagnostics --parsing-diagnostics | filecheck %s --check-prefix=EARLY

// A serial loop ends by the predicate that holds up to one of its iterations. One that asks for loops around a nest is
// tested around it, once, if all blocks in it share it. What is left to lanes stays with the block.

func.func @tails(%x: memref<30x30xf32> {lw.name = "x"}, %b: memref<30x30xf32> {lw.name = "b", lw.output}, %c: memref<30x30xf32> {lw.name = "c", lw.output}) {
  lw_loop.for i0 in 4 parallel {
    lw_loop.for i1 in 8 {
      lw_loop.for j0 in 2 parallel {
        lw_loop.for j1 in 16 vectorized {
          lw_loop.block b (i in 30 = i0 * 8 + i1, j in 30 = j0 * 16 + j1) where (29 - i0 * 8 - i1 >= 0, 29 - j0 * 16 - j1 >= 0) writes %b[i, j] : memref<30x30xf32> {
            %0 = lw_loop.load %x[i, j] : memref<30x30xf32>
            lw_te.yield %0 : f32
          }
        }
      }
    }
    lw_loop.for j in 30 {
      lw_loop.for i1 in 8 unrolled {
        lw_loop.block c (i in 30 = i0 * 8 + i1, j in 30 = j) where (29 - i0 * 8 - i1 >= 0) writes %c[i, j] : memref<30x30xf32> {
          %0 = lw_loop.load %x[i, j] : memref<30x30xf32>
          lw_te.yield %0 : f32
        }
      }
    }
  }
  func.return
}

// CHECK: func.func @tails({{.*}}) attributes {lw.lowered_by = "lw-place-predicates"} {
// CHECK-NEXT: lw_loop.for i0 in 4 parallel {
// CHECK-NEXT: lw_loop.for i1 in 8 while (29 - i0 * 8 - i1 >= 0) {
// CHECK-NEXT: lw_loop.for j0 in 2 parallel as serial {
// CHECK-NEXT: lw_loop.for j1 in 16 vectorized {
// CHECK-NEXT: lw_loop.block b ({{.*}}) where (29 - i0 * 8 - i1 >= 0, 29 - j0 * 16 - j1 >= 0)

// A version for whole tiles keeps the predicate out of unrolled copies; those of the other one test it.

// CHECK: lw_loop.versions (29 - i0 * 8 - i1$1 >= 0) {
// CHECK-NEXT: lw_loop.for j in 30 {
// CHECK-NEXT: lw_loop.for i1$1 in 8 unrolled {
// CHECK-NEXT: lw_loop.if (29 - i0 * 8 - i1$1 >= 0) {
// CHECK-NEXT: lw_loop.block c ({{.*}}) where (29 - i0 * 8 - i1$1 >= 0)

// EARLY: lw-place-predicates: function 'tails': run lw-settle-loop-kinds right before this, lw-place-buffers was the last step

// -----

// Loads that pad have a version without their conditions, around the outermost nest in which these may hold throughout.

func.func @padded(%x: memref<30xf32> {lw.name = "x"}, %b: memref<32xf32> {lw.name = "b", lw.output}) {
  lw_loop.for o in 4 {
    lw_loop.for i in 8 {
      lw_loop.block b (i in 32 = o * 8 + i) writes %b[i] : memref<32xf32> {
        %0 = lw_loop.load %x[i - 1] where (i - 1 >= 0, 30 - i >= 0) : memref<30xf32>
        lw_te.yield %0 : f32
      }
    }
  }
  func.return
}

// CHECK: func.func @padded
// CHECK-NEXT: lw_loop.for o in 4 {
// CHECK-NEXT: lw_loop.versions (o * 8 + i - 1 >= 0, 30 - o * 8 - i >= 0) {
// CHECK-NEXT: lw_loop.for i in 8 {
// CHECK-NEXT: lw_loop.block b

// -----

// On a GPU no barrier comes to stand in a branch. Starts have their own branches, no versions, and run to their ends.

module attributes {lw.target = #lw.target<"opencl max_threads_per_block=64">} {
func.func @barrier(%x: memref<30x32xf32> {lw.name = "x"}, %c: memref<30xf32> {lw.name = "c", lw.output}) {
  %t = lw_loop.alloc "t" : memref<30x32xf32, "shared">
  lw_loop.for i0 in 4 blockIdx.x {
    lw_loop.for i1 in 8 {
      lw_loop.for k in 32 threadIdx.x {
        lw_loop.block t (i in 30 = i0 * 8 + i1, k in 32 = k) where (29 - i0 * 8 - i1 >= 0) writes %t[i, k] : memref<30x32xf32, "shared"> {
          %0 = lw_loop.load %x[i, k] : memref<30x32xf32>
          lw_te.yield %0 : f32
        }
      }
      lw_loop.for k in 32 {
        lw_loop.block c (i in 30 = i0 * 8 + i1, reduce k in 32 = k) where (29 - i0 * 8 - i1 >= 0) writes %c[i] : memref<30xf32> add {
          %0 = lw_loop.load %t[i, 31 - k] : memref<30x32xf32, "shared">
          lw_te.yield %0 : f32
        }
      }
    }
  }
  func.return
}
}

// CHECK: func.func @barrier
// CHECK-NEXT: lw_loop.for blockIdx.x in 4 blockIdx.x {
// CHECK-NEXT: lw_loop.for i1 in 8 {
// CHECK-NEXT: %t = lw_loop.alloc
// CHECK-NEXT: lw_loop.barrier
// CHECK-NEXT: lw_loop.if (29 - blockIdx.x * 8 - i1 >= 0) {
// CHECK-NEXT: lw_loop.for threadIdx.x in 32 threadIdx.x {
// CHECK-NEXT: lw_loop.block t
// CHECK: lw_loop.barrier
// CHECK-NEXT: lw_loop.if (29 - blockIdx.x * 8 - i1 >= 0) {
// CHECK-NEXT: lw_loop.block c$start
// CHECK: lw_loop.if (29 - blockIdx.x * 8 - i1 >= 0) {
// CHECK-NEXT: lw_loop.for k in 32 {
// CHECK-NEXT: lw_loop.block c (

// -----

// No schedule step knows any of it, and all that is asked for is known.

func.func @early(%b: memref<2xf32> {lw.name = "b", lw.output}) {
  lw_loop.for i in 2 {
    lw_loop.if (1 - i >= 0) {
      lw_loop.block b (i in 2 = i) writes %b[i] : memref<2xf32> {
        %0 = arith.constant 1.0 : f32
        lw_te.yield %0 : f32
      }
    }
  }
  func.return
}

// CHECK: 'lw_loop.if' stands in functions on their way to a kernel only

// -----

func.func @late(%b: memref<2xf32> {lw.name = "b", lw.output}) attributes {lw.lowered_by = "lw-place-predicates"} {
  lw_loop.if (1 - i >= 0) {
    lw_loop.for i in 2 {
      lw_loop.block b (i in 2 = i) writes %b[i] : memref<2xf32> {
        %0 = arith.constant 1.0 : f32
        lw_te.yield %0 : f32
      }
    }
  }
  func.return
}

// CHECK: 'lw_loop.if' asks for 'i', which is no loop around it

// -----

func.func @ended(%b: memref<2xf32> {lw.name = "b", lw.output}) attributes {lw.lowered_by = "lw-place-predicates"} {
  lw_loop.for i in 2 while (1 - j >= 0) {
    lw_loop.block b (i in 2 = i) writes %b[i] : memref<2xf32> {
      %0 = arith.constant 1.0 : f32
      lw_te.yield %0 : f32
    }
  }
  func.return
}

// CHECK: loop 'i' ends by 'j', which is no loop around it

// -----

func.func @begun(%b: memref<2xf32> {lw.name = "b", lw.output}) attributes {lw.lowered_by = "lw-place-predicates"} {
  lw_loop.for i in 2 while (i - 1 >= 0) {
    lw_loop.block b (i in 2 = i) writes %b[i] : memref<2xf32> {
      %0 = arith.constant 1.0 : f32
      lw_te.yield %0 : f32
    }
  }
  func.return
}

// CHECK: loop 'i' ends by a condition that holds for its first iterations only

// -----

// A mask of what is in registers, in a loop that ends where it holds nowhere: in most iterations it holds everywhere, and
// is not asked for. One of a loop that does not end is asked for in all of them.

module attributes {lw.target = #lw.target<"cuda max_threads_per_block=64 compute_capability=90">} {
func.func @masked(%x: memref<8x16xf32> {lw.name = "x"}, %c: memref<16xf32> {lw.name = "c", lw.output}, %d: memref<16xf32> {lw.name = "d", lw.output}) {
  %t = lw_loop.alloc "t" : memref<8x16xf32, "local">
  %u = lw_loop.alloc "u" : memref<8x16xf32, "local">
  lw_loop.for g in 4 blockIdx.x {
    lw_loop.for k in 8 {
      lw_loop.for f in 4 threadIdx.x {
        lw_loop.block t (k in 8 = k, i in 16 = g * 4 + f) writes %t[k, i] : memref<8x16xf32, "local"> {
          %0 = lw_te.predicate (i - k * 2 >= 0)
          %1 = lw_loop.load %x[k, i] : memref<8x16xf32>
          %2 = arith.constant 0xff800000 : f32
          %3 = arith.select %0, %1, %2 : f32
          lw_te.yield %3 : f32
        }
      }
      lw_loop.for f in 4 threadIdx.x {
        lw_loop.block c (i in 16 = g * 4 + f, reduce k in 8 = k) annotated {kept = #lw.indices<i - k * 2>} writes %c[i] : memref<16xf32> max {
          %0 = lw_loop.load %t[k, i] : memref<8x16xf32, "local">
          lw_te.yield %0 : f32
        }
      }
    }
  }
  lw_loop.for g in 4 blockIdx.x {
    lw_loop.for l in 8 {
      lw_loop.for f in 4 threadIdx.x {
        lw_loop.block u (k in 8 = l, i in 16 = g * 4 + f) writes %u[k, i] : memref<8x16xf32, "local"> {
          %0 = lw_te.predicate (i - k * 2 >= 0)
          %1 = lw_loop.load %x[k, i] : memref<8x16xf32>
          %2 = arith.constant 0xff800000 : f32
          %3 = arith.select %0, %1, %2 : f32
          lw_te.yield %3 : f32
        }
      }
      lw_loop.for f in 4 threadIdx.x {
        lw_loop.block d (i in 16 = g * 4 + f, reduce k in 8 = l) writes %d[i] : memref<16xf32> max {
          %0 = lw_loop.load %u[k, i] : memref<8x16xf32, "local">
          lw_te.yield %0 : f32
        }
      }
    }
  }
  func.return
}
}

// CHECK: func.func @masked
// CHECK: lw_loop.for k in 8 while (blockIdx.x * 4 - k * 2 + 3 >= 0) {
// CHECK: lw_loop.versions (blockIdx.x * 4 + threadIdx.x - k * 2 >= 0) {
// CHECK-NEXT: lw_loop.for threadIdx.x in 4 threadIdx.x {
// CHECK-NEXT: lw_loop.block t
// CHECK: lw_loop.block c
// CHECK-NOT: lw_loop.versions
// CHECK: lw_loop.block u
// -----

// Lanes of a nest that is copied have a version for whole tiles on a CPU, which stands around one tile: of those that
// loops go through, the last alone asks its lanes.

func.func @cut_lanes(%x: memref<40xf32> {lw.name = "x"}, %b: memref<8x40xf32> {lw.name = "b", lw.output}) {
  lw_loop.for j0 in 2 {
    lw_loop.for i0 in 4 {
      lw_loop.for i1 in 2 unrolled {
        lw_loop.for j1 in 2 unrolled {
          lw_loop.for j2 in 16 vectorized {
            lw_loop.block b (i in 8 = i0 * 2 + i1, j in 40 = j0 * 32 + j1 * 16 + j2) where (39 - j0 * 32 - j1 * 16 - j2 >= 0) writes %b[i, j] : memref<8x40xf32> {
              %0 = lw_loop.load %x[j] : memref<40xf32>
              lw_te.yield %0 : f32
            }
          }
        }
      }
    }
  }
  func.return
}

// CHECK: func.func @cut_lanes
// CHECK-NEXT: lw_loop.for j0 in 2 {
// CHECK-NEXT: lw_loop.versions (39 - j0 * 32 - j1 * 16 - j2 >= 0) {
// CHECK-NEXT: lw_loop.for i0 in 4 {
// -----

// A nest of register tiles in which a sum reads padding alone is left out on a CPU: of tiles of two pixels the tap reads
// some of the image where one of them is inside. Versions of what reads no padding are of each tap, of which more tiles
// are whole than of all. A block that adds something else is run, and has versions around its taps.

func.func @padding(%x: memref<64x10xf32> {lw.name = "x"}, %w: memref<64x16xf32> {lw.name = "w"}, %b: memref<10x16xf32> {lw.name = "b", lw.output}, %c: memref<10x16xf32> {lw.name = "c", lw.output}) {
  lw_loop.for i0 in 5 {
    lw_loop.for t in 3 {
      lw_loop.for k in 64 {
        lw_loop.for i1 in 2 unrolled {
          lw_loop.for j in 16 vectorized {
            lw_loop.block b (i in 10 = i0 * 2 + i1, j in 16 = j, reduce t in 3 = t, reduce k in 64 = k) writes %b[i, j] : memref<10x16xf32> add {
              %0 = lw_loop.load %x[k, i + t * 6 - 6] where (i + t * 6 - 6 >= 0, 15 - i - t * 6 >= 0) : memref<64x10xf32>
              %1 = lw_loop.load %w[k, j] : memref<64x16xf32>
              %2 = arith.mulf %0, %1 : f32
              lw_te.yield %2 : f32
            }
          }
        }
      }
    }
  }
  lw_loop.for i0 in 5 {
    lw_loop.for t in 3 {
      lw_loop.for k in 64 {
        lw_loop.for i1 in 2 unrolled {
          lw_loop.for j in 16 vectorized {
            lw_loop.block c (i in 10 = i0 * 2 + i1, j in 16 = j, reduce t in 3 = t, reduce k in 64 = k) writes %c[i, j] : memref<10x16xf32> add {
              %0 = lw_loop.load %x[k, i + t * 6 - 6] where (i + t * 6 - 6 >= 0, 15 - i - t * 6 >= 0) : memref<64x10xf32>
              %1 = lw_loop.load %w[k, j] : memref<64x16xf32>
              %2 = arith.addf %0, %1 : f32
              lw_te.yield %2 : f32
            }
          }
        }
      }
    }
  }
  func.return
}

// CHECK: func.func @padding
// CHECK: lw_loop.block b$start
// CHECK: lw_loop.for t in 3 {
// CHECK-NEXT: lw_loop.if (i0 * 2 + t * 6 - 5 >= 0, 15 - i0 * 2 - t * 6 >= 0) {
// CHECK-NEXT: lw_loop.versions (i0 * 2 + i1 + t * 6 - 6 >= 0, 15 - i0 * 2 - i1 - t * 6 >= 0) {
// CHECK-NEXT: lw_loop.for k in 64 {
// CHECK-NEXT: lw_loop.for i1 in 2 unrolled {
// CHECK: lw_loop.block c$start
// CHECK: lw_loop.versions (
// CHECK-NEXT: lw_loop.for t$1 in 3 {
// CHECK-NOT: lw_loop.if
// CHECK: lw_loop.block c (
// -----

// Lanes go across the rows that they are copied from, and columns are side by side: rows are transposed. Whole blocks of
// tiles ask nothing, and each tile of the others has a version for the lanes of the last one.

func.func @turned(%x: memref<37x32xf32> {lw.name = "x"}, %p: memref<2x32x32xf32> {lw.name = "p", lw.output}) {
  lw_loop.for j0 in 2 {
    lw_loop.for j1 in 2 {
      lw_loop.for k0 in 8 {
        lw_loop.for k1 in 4 unrolled {
          lw_loop.for j2 in 16 vectorized {
            lw_loop.block p (o in 2 = j0, k in 32 = k0 * 4 + k1, j in 32 = j1 * 16 + j2) writes %p[o, k, j] : memref<2x32x32xf32> {
              %0 = lw_loop.load %x[o * 32 + j, k] where (36 - o * 32 - j >= 0) : memref<37x32xf32>
              lw_te.yield %0 : f32
            }
          }
        }
      }
    }
  }
  func.return
}

// CHECK: func.func @turned
// CHECK-NEXT: lw_loop.for j0 in 2 {
// CHECK-NEXT: lw_loop.versions (36 - j0 * 32 - j1 * 16 - j2 >= 0) {
// CHECK-NEXT: lw_loop.for j1 in 2 {
// CHECK-NEXT: lw_loop.for k0 in 8 {
// CHECK-NEXT: lw_loop.versions (36 - j0 * 32 - j1 * 16 - j2 >= 0) {
// CHECK-NEXT: lw_loop.for k1 in 4 unrolled {
