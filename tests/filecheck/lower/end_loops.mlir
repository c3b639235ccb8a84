// RUN: xdsl-opt %s -p lw-tell-loops-apart,lw-place-buffers,lw-drop-edges,lw-join-launches,lw-place-barriers,lw-start-reductions,lw-end-loops --split-input-file --verify-diagnostics | filecheck %s
// RUN: xdsl-opt %s -p lw-tell-loops-apart,lw-place-buffers,lw-drop-edges,lw-join-launches,lw-place-barriers,lw-start-reductions,lw-end-loops,lw-carry-sums,lw-fill-tails,lw-expand-pipelines --split-input-file --verify-diagnostics | filecheck %s --check-prefix=AHEAD
// RUN: xdsl-opt %s -p lw-tell-loops-apart,lw-place-buffers,lw-drop-edges,lw-join-launches,lw-place-barriers,lw-end-loops --split-input-file --verify-diagnostics | filecheck %s --check-prefix=EARLY

// A loop ends where the last of the rows in it has nothing to add: `g * 4 + 3` is that of a tile. What is copied ahead is
// copied for iterations that there are.

module attributes {lw.target = #lw.target<"cuda max_threads_per_block=64 compute_capability=90">} {
func.func @tiles(%x: memref<8x16xf32> {lw.name = "x"}, %c: memref<16xf32> {lw.name = "c", lw.output}) {
  %t = lw_loop.alloc "t" : memref<2x8x16xf32, "shared">
  lw_loop.for g in 4 blockIdx.x {
    lw_loop.for k in 8 annotated {pipeline_stages = 2 : i64} {
      lw_loop.for f in 4 threadIdx.x {
        lw_loop.block t (s in 2 = k mod 2, k in 8 = k, i in 16 = g * 4 + f) annotated {pipeline_stages = 2 : i64} writes %t[s, k, i] : memref<2x8x16xf32, "shared"> {
          %0 = lw_loop.load %x[k, i] : memref<8x16xf32>
          lw_te.yield %0 : f32
        }
      }
      lw_loop.for f in 4 threadIdx.x {
        lw_loop.block c (s in 2 = k mod 2, i in 16 = g * 4 + f, reduce k in 8 = k) annotated {kept = #lw.indices<i - k * 2>} writes %c[i] : memref<16xf32> add {
          %0 = lw_loop.load %t[s, k, i] : memref<2x8x16xf32, "shared">
          lw_te.yield %0 : f32
        }
      }
    }
  }
  func.return
}
}

// CHECK: func.func @tiles({{.*}}) attributes {lw.lowered_by = "lw-end-loops"} {
// CHECK: lw_loop.for k in 8 while (blockIdx.x * 4 - k * 2 + 3 >= 0) annotated {pipeline_stages = 2 : i64} {

// AHEAD: func.func @tiles
// AHEAD: lw_loop.at k = 0 where (blockIdx.x * 4 + 3 >= 0) {
// AHEAD: lw_loop.for k in 8 while (blockIdx.x * 4 - k * 2 + 3 >= 0) annotated {pipeline_stages = 2 : i64} {
// AHEAD: lw_loop.at k = k + 1 where (6 - k >= 0, blockIdx.x * 4 - k * 2 + 1 >= 0) {

// EARLY: lw-end-loops: function 'tiles': run lw-start-reductions right before this, lw-place-barriers was the last step

// -----

// A loop goes on for others that are read behind it, and where each thread would end by itself.

module attributes {lw.target = #lw.target<"cuda max_threads_per_block=64 compute_capability=90">} {
func.func @others(%x: memref<8x16xf32> {lw.name = "x"}, %c: memref<16xf32> {lw.name = "c", lw.output}, %d: memref<16xf32> {lw.name = "d", lw.output}) {
  lw_loop.for g in 16 {
    lw_loop.for k in 8 {
      lw_loop.block c (i in 16 = g, reduce k in 8 = k) annotated {kept = #lw.indices<i - k * 2>} writes %c[i] : memref<16xf32> add {
        %0 = lw_loop.load %x[k, i] : memref<8x16xf32>
        lw_te.yield %0 : f32
      }
      lw_loop.block d (i in 16 = g, reduce k in 8 = k) writes %d[i] : memref<16xf32> add {
        %0 = lw_loop.load %x[k, i] : memref<8x16xf32>
        lw_te.yield %0 : f32
      }
    }
  }
  func.return
}

func.func @threads(%x: memref<8x16xf32> {lw.name = "x"}, %c: memref<16xf32> {lw.name = "c", lw.output}) {
  lw_loop.for f in 16 threadIdx.x {
    lw_loop.for k in 8 {
      lw_loop.block c (i in 16 = f, reduce k in 8 = k) annotated {kept = #lw.indices<i - k * 2>} writes %c[i] : memref<16xf32> add {
        %0 = lw_loop.load %x[k, i] : memref<8x16xf32>
        lw_te.yield %0 : f32
      }
    }
  }
  func.return
}
}

// CHECK: func.func @others
// CHECK-NOT: while
// CHECK: func.return
// CHECK: func.func @threads
// CHECK-NOT: while
// CHECK: func.return
