// RUN: xdsl-opt %s -p lw-tell-loops-apart,lw-place-buffers,lw-drop-edges,lw-join-launches,lw-place-barriers,lw-start-reductions,lw-end-loops,lw-carry-sums,lw-fill-tails,lw-expand-pipelines --split-input-file --verify-diagnostics --parsing-diagnostics | filecheck %s
// RUN: xdsl-opt %s -p lw-tell-loops-apart,lw-place-buffers,lw-drop-edges,lw-join-launches,lw-place-barriers,lw-expand-pipelines --split-input-file --verify-diagnostics --parsing-diagnostics | filecheck %s --check-prefix=EARLY

// On a device that copies asynchronously, each iteration waits for the oldest copies only. The tile of two stages is
// shared by the iterations; the reduction starts before anything is copied. The barrier in each iteration is for what it
// uses and for what its copies fill.

module attributes {lw.target = #lw.target<"cuda max_threads_per_block=64 compute_capability=90">} {
func.func @asynchronous(%x: memref<8x16xf32> {lw.name = "x"}, %c: memref<16xf32> {lw.name = "c", lw.output}) {
  %t = lw_loop.alloc "t" : memref<3x8x16xf32, "shared">
  lw_loop.for o in 1 {
    lw_loop.for k in 8 annotated {pipeline_stages = 3 : i64} {
      lw_loop.for f in 16 threadIdx.x {
        lw_loop.block t (s in 3 = k mod 3, i in 8 = k, j in 16 = f) annotated {pipeline_stages = 3 : i64} writes %t[s, i, j] : memref<3x8x16xf32, "shared"> {
          %0 = lw_loop.load %x[i, j] : memref<8x16xf32>
          lw_te.yield %0 : f32
        }
      }
      lw_loop.for j in 16 threadIdx.x {
        lw_loop.block c (s in 3 = k mod 3, j in 16 = j, reduce k in 8 = k) writes %c[j] : memref<16xf32> add {
          %0 = lw_loop.load %t[s, k, 15 - j] : memref<3x8x16xf32, "shared">
          lw_te.yield %0 : f32
        }
      }
    }
  }
  func.return
}
}

// CHECK: func.func @asynchronous({{.*}}) attributes {lw.lowered_by = "lw-expand-pipelines"} {
// CHECK-NEXT: lw_loop.for o in 1 {
// CHECK-NEXT: lw_loop.for threadIdx.x in 16 threadIdx.x {
// CHECK-NEXT: lw_loop.block c$start
// CHECK: %t = lw_loop.alloc "t" placed [0, k, 0] of [3, 1, 16] strides [16, 16, 1] : memref<3x8x16xf32, "shared">
// CHECK-NEXT: lw_loop.at k = 0 {
// CHECK-NEXT: lw_loop.for threadIdx.x in 16 threadIdx.x {
// CHECK-NEXT: lw_loop.block t$0 (s in 3 = k mod 3, i in 8 = k, j in 16 = threadIdx.x) annotated {pipeline_stages = 3 : i64, asynchronous} writes %t
// CHECK: lw_kernel.commit
// CHECK-NEXT: lw_loop.at k = 1 {
// CHECK: lw_kernel.commit
// CHECK-NEXT: lw_loop.for k in 8 annotated {pipeline_stages = 3 : i64} {
// CHECK-NEXT: lw_kernel.wait 1
// CHECK-NEXT: lw_loop.barrier
// CHECK-NEXT: lw_loop.at k = k + 2 where (5 - k >= 0) {
// CHECK-NEXT: lw_loop.for threadIdx.x in 16 threadIdx.x {
// CHECK-NEXT: lw_loop.block t$2
// CHECK: lw_kernel.commit
// CHECK-NEXT: lw_loop.for threadIdx.x in 16 threadIdx.x {
// CHECK-NEXT: lw_loop.block c
// CHECK-NOT: lw_loop.at
// CHECK: func.return

// EARLY: lw-expand-pipelines: function 'asynchronous': run lw-fill-tails right before this, lw-place-barriers was the last step

// -----

// On others a thread loads its elements of the next iteration to registers, and stores them behind the work. The loops
// around the registers are unrolled. An outermost loop is put in another one, as copies before it are of its launch.

module attributes {lw.target = #lw.target<"opencl max_threads_per_block=64">} {
func.func @registers(%x: memref<8x30xf32> {lw.name = "x"}, %c: memref<8x32xf32> {lw.name = "c", lw.output}) {
  %t = lw_loop.alloc "t" : memref<2x8x30xf32, "shared">
  lw_loop.for k in 8 annotated {pipeline_stages = 2 : i64} {
    lw_loop.for g in 2 {
      lw_loop.for f in 16 threadIdx.x {
        lw_loop.block t (s in 2 = k mod 2, i in 8 = k, j in 30 = g * 16 + f) where (29 - g * 16 - f >= 0) annotated {pipeline_stages = 2 : i64} writes %t[s, i, j] : memref<2x8x30xf32, "shared"> {
          %0 = lw_loop.load %x[i, j] : memref<8x30xf32>
          lw_te.yield %0 : f32
        }
      }
    }
    lw_loop.for j in 16 threadIdx.x {
      lw_loop.block c (s in 2 = k mod 2, i in 8 = k, j in 16 = j) writes %c[i, j] : memref<8x32xf32> {
        %0 = lw_loop.load %t[s, i, 15 - j] : memref<2x8x30xf32, "shared">
        lw_te.yield %0 : f32
      }
    }
  }
  func.return
}
}

// CHECK: func.func @registers
// CHECK-NEXT: lw_loop.for k_launch in 1 {
// CHECK-NEXT: %t_next = lw_loop.alloc "t_next" placed [0] of [2] strides [1] : memref<2xf32, "local">
// CHECK-NEXT: %t = lw_loop.alloc "t" placed
// CHECK-NEXT: lw_loop.at k = 0 {
// CHECK-NEXT: lw_loop.for g in 2 {
// CHECK-NEXT: lw_loop.for threadIdx.x in 16 threadIdx.x {
// CHECK-NEXT: lw_loop.block t$2 {{.*}} writes %t[s, i, j]
// CHECK: lw_loop.for k in 8 annotated {pipeline_stages = 2 : i64} {
// CHECK-NEXT: lw_loop.barrier
// CHECK-NEXT: lw_loop.at k = k + 1 where (6 - k >= 0) {
// CHECK-NEXT: lw_loop.for g in 2 unrolled {
// CHECK-NEXT: lw_loop.for threadIdx.x in 16 threadIdx.x {
// CHECK-NEXT: lw_loop.block t$0 (s in 2 = k mod 2, i in 8 = k, j in 30 = g * 16 + threadIdx.x, g in 2 = g) where (29 - g * 16 - threadIdx.x >= 0) annotated {pipeline_stages = 2 : i64, beyond = #lw.indices<29 - g * 16 - threadIdx.x>} writes %t_next[g] : memref<2xf32, "local"> {
// CHECK-NEXT: %{{.*}} = lw_loop.load %x[i, j]
// CHECK: lw_loop.block c
// CHECK: lw_loop.at k = k + 1 where (6 - k >= 0) {
// CHECK-NEXT: lw_loop.for g in 2 unrolled {
// CHECK-NEXT: lw_loop.for threadIdx.x in 16 threadIdx.x {
// CHECK-NEXT: lw_loop.block t$1 {{.*}} writes %t[s, i, j]
// CHECK-NEXT: %{{.*}} = lw_loop.load %t_next[g]

// -----

// What is run for another iteration asks for loops around it.

func.func @elsewhere(%c: memref<2xf32> {lw.name = "c", lw.output}) attributes {lw.lowered_by = "lw-expand-pipelines"} {
  lw_loop.for i in 2 {
    lw_loop.at k = i + j {
      lw_loop.block c (k in 2 = k) writes %c[k] : memref<2xf32> {
        %0 = arith.constant 1.0 : f32
        lw_te.yield %0 : f32
      }
    }
  }
  func.return
}

// CHECK: 'lw_loop.at' asks for 'j', which is no loop around it

// -----

// No schedule step knows it.

func.func @early(%c: memref<2xf32> {lw.name = "c", lw.output}) {
  lw_loop.at k = 0 {
    lw_loop.block c (k in 2 = k) writes %c[k] : memref<2xf32> {
      %0 = arith.constant 1.0 : f32
      lw_te.yield %0 : f32
    }
  }
  func.return
}

// CHECK: 'lw_loop.at' stands in functions on their way to a kernel only
