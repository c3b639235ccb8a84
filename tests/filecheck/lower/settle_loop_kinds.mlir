// RUN: xdsl-opt %s -p lw-tell-loops-apart,lw-place-buffers,lw-drop-edges,lw-join-launches,lw-place-barriers,lw-start-reductions,lw-end-loops,lw-carry-sums,lw-fill-tails,lw-expand-pipelines,lw-settle-loop-kinds --split-input-file --verify-diagnostics --parsing-diagnostics | filecheck %s
// RUN: xdsl-opt %s -p lw-tell-loops-apart,lw-place-buffers,lw-settle-loop-kinds --split-input-file --verify-diagnostics --parsing-diagnostics | filecheck %s --check-prefix=EARLY

// Serial loops are unrolled as far as the annotation around them goes; lanes count once, what starts reductions does not.
// On a CPU a parallel loop in another one is serial.

func.func @unrolled(%x: memref<4x8x16xf32> {lw.name = "x"}, %c: memref<8x16xf32> {lw.name = "c", lw.output}) {
  lw_loop.for p in 2 parallel annotated {auto_unroll_max_step = 8 : i64} {
    lw_loop.for q in 4 parallel {
      lw_loop.for k in 4 {
        lw_loop.for h in 2 {
          lw_loop.for j in 8 vectorized {
            lw_loop.block c (i in 8 = p * 4 + q, j in 16 = h * 8 + j, reduce k in 4 = k) writes %c[i, j] : memref<8x16xf32> add {
              %0 = lw_loop.load %x[k, i, j] : memref<4x8x16xf32>
              lw_te.yield %0 : f32
            }
          }
        }
      }
    }
  }
  func.return
}

// CHECK: func.func @unrolled({{.*}}) attributes {lw.lowered_by = "lw-settle-loop-kinds"} {
// CHECK-NEXT: lw_loop.for p in 2 parallel annotated {auto_unroll_max_step = 8 : i64} {
// CHECK-NEXT: lw_loop.for q in 4 parallel as serial {
// CHECK-NEXT: lw_loop.for h in 2 as unrolled {
// CHECK-NEXT: lw_loop.for j in 8 vectorized {
// CHECK-NEXT: lw_loop.block c$start
// CHECK: lw_loop.for k in 4 as unrolled {
// CHECK-NEXT: lw_loop.for h in 2 as unrolled {
// CHECK-NEXT: lw_loop.for j in 8 vectorized {
// CHECK-NEXT: lw_loop.block c (

// EARLY: lw-settle-loop-kinds: function 'unrolled': run lw-expand-pipelines right before this, lw-place-buffers was the last step

// -----

// On a GPU lanes are copies where they are no neighbours, or do not start at a multiple of their number: in those copies
// of an unrolled loop around it for which that holds.

module attributes {lw.target = #lw.target<"opencl max_threads_per_block=64">} {
func.func @lanes(%x: memref<8x32xf32> {lw.name = "x"}, %b: memref<8x32xf32> {lw.name = "b", lw.output}) {
  lw_loop.for t in 8 threadIdx.x {
    lw_loop.for h in 8 {
      lw_loop.for j in 4 vectorized {
        lw_loop.block even (i in 8 = t, j in 32 = h * 4 + j) writes %b[i, j] : memref<8x32xf32> {
          %0 = lw_loop.load %x[i, j] : memref<8x32xf32>
          lw_te.yield %0 : f32
        }
      }
    }
    lw_loop.for r in 3 unrolled {
      lw_loop.for j in 4 vectorized {
        lw_loop.block sometimes (i in 8 = t, r in 3 = r, j in 4 = j) writes %b[i, j] : memref<8x32xf32> {
          %0 = lw_loop.load %x[i, r * 2 + j] : memref<8x32xf32>
          lw_te.yield %0 : f32
        }
      }
    }
    lw_loop.for j in 4 vectorized {
      lw_loop.block never (i in 8 = t, j in 4 = j) writes %b[i, j] : memref<8x32xf32> {
        %0 = lw_loop.load %x[j, i] : memref<8x32xf32>
        lw_te.yield %0 : f32
      }
    }
  }
  func.return
}
}

// CHECK: func.func @lanes
// CHECK: lw_loop.for j in 4 vectorized {
// CHECK-NEXT: lw_loop.block even
// CHECK: lw_loop.for j$1 in 4 vectorized as unrolled unless (0 - r >= 0) or (r - 2 >= 0) {
// CHECK-NEXT: lw_loop.block sometimes
// CHECK: lw_loop.for j$2 in 4 vectorized as unrolled {
// CHECK-NEXT: lw_loop.block never

// -----

module attributes {lw.target = #lw.target<"opencl max_threads_per_block=64">} {
func.func @cores(%b: memref<8xf32> {lw.name = "b", lw.output}) {
  lw_loop.for i in 8 parallel {
    lw_loop.block b (i in 8 = i) writes %b[i] : memref<8xf32> {
      %0 = arith.constant 1.0 : f32
      lw_te.yield %0 : f32
    }
  }
  func.return
}
}

// CHECK: loop 'i' is parallel, which a GPU does not have; bind it to blockIdx or threadIdx

// -----

func.func @threads(%b: memref<8xf32> {lw.name = "b", lw.output}) {
  lw_loop.for i in 8 threadIdx.x {
    lw_loop.block b (i in 8 = i) writes %b[i] : memref<8xf32> {
      %0 = arith.constant 1.0 : f32
      lw_te.yield %0 : f32
    }
  }
  func.return
}

// CHECK: loop 'i' is bound to threadIdx.x, which a CPU does not have; mark it parallel instead

// -----

// No schedule step says how a loop is written.

func.func @early(%b: memref<2xf32> {lw.name = "b", lw.output}) {
  lw_loop.for i in 2 as unrolled {
    lw_loop.block b (i in 2 = i) writes %b[i] : memref<2xf32> {
      %0 = arith.constant 1.0 : f32
      lw_te.yield %0 : f32
    }
  }
  func.return
}

// CHECK: loop 'i' is written as unrolled in functions on their way to a kernel only

// -----

func.func @nowhere(%b: memref<2xf32> {lw.name = "b", lw.output}) attributes {lw.lowered_by = "lw-settle-loop-kinds"} {
  lw_loop.for i in 2 vectorized as unrolled unless (j >= 0) {
    lw_loop.block b (i in 2 = i) writes %b[i] : memref<2xf32> {
      %0 = arith.constant 1.0 : f32
      lw_te.yield %0 : f32
    }
  }
  func.return
}

// CHECK: loop 'i' asks for 'j', which is no loop around it

// -----

func.func @unheard_of() attributes {lw.lowered_by = "lw-settle-loop-kinds"} {
  lw_loop.for i in 2 as vectorized {
  }
  func.return
}

// CHECK: a loop is written as one of serial, unrolled, got vectorized
