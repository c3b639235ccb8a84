// RUN: xdsl-opt %s -p lw-tell-loops-apart,lw-place-buffers,lw-drop-edges,lw-join-launches,lw-place-barriers,lw-start-reductions --split-input-file --verify-diagnostics | filecheck %s
// RUN: xdsl-opt %s -p lw-tell-loops-apart,lw-place-buffers,lw-start-reductions --split-input-file --verify-diagnostics | filecheck %s --check-prefix=EARLY

// A start stands before the outermost loop that is reduced over, in loops like those within it that are not, under the
// predicates that do not ask for what is reduced over.

func.func @tiled(%x: memref<8x30xf32> {lw.name = "x"}, %c: memref<8xf32> {lw.name = "c", lw.output}) {
  lw_loop.for i0 in 2 parallel {
    lw_loop.for k0 in 4 annotated {auto_unroll_max_step = 16 : i64} {
      lw_loop.for i1 in 4 vectorized {
        lw_loop.for k1 in 8 {
          lw_loop.block c (i in 8 = i0 * 4 + i1, reduce k in 30 = k0 * 8 + k1) where (6 - i0 * 4 - i1 >= 0, 29 - k0 * 8 - k1 >= 0) writes %c[i] : memref<8xf32> add {
            %0 = lw_loop.load %x[i, k] : memref<8x30xf32>
            lw_te.yield %0 : f32
          }
        }
      }
    }
  }
  func.return
}

// CHECK: func.func @tiled({{.*}}) attributes {lw.lowered_by = "lw-start-reductions"} {
// CHECK-NEXT: lw_loop.for i0 in 2 parallel {
// CHECK-NEXT: lw_loop.for i1 in 4 vectorized {
// CHECK-NEXT: lw_loop.block c$start (i in 8 = i0 * 4 + i1) where (6 - i0 * 4 - i1 >= 0) annotated {starts = "c"} writes %c[i] : memref<8xf32> {
// CHECK-NEXT: %[[ZERO:[0-9]+]] = arith.constant 0.000000e+00 : f32
// CHECK-NEXT: lw_te.yield %[[ZERO]] : f32
// CHECK: lw_loop.for k0 in 4 annotated {auto_unroll_max_step = 16 : i64} {
// CHECK-NEXT: lw_loop.for i1 in 4 vectorized {
// CHECK-NEXT: lw_loop.for k1 in 8 {
// CHECK-NEXT: lw_loop.block c (i in 8 = i0 * 4 + i1, reduce k in 30 = k0 * 8 + k1) where (6 - i0 * 4 - i1 >= 0, 29 - k0 * 8 - k1 >= 0) writes %c[i] : memref<8xf32> add no_init {

// EARLY: lw-start-reductions: function 'tiled': run lw-place-barriers right before this, lw-place-buffers was the last step

// -----

// All values of a pair start at once. Numbers of unsigned types are indices.

func.func @pairs(%x: memref<8x30xui8> {lw.name = "x"}, %a: memref<8xi32> {lw.name = "a", lw.output}, %m: memref<8xf32> {lw.name = "m", lw.output}, %s: memref<8xui8> {lw.name = "s", lw.output}) {
  lw_loop.for i in 8 {
    lw_loop.for k in 30 {
      lw_loop.block a (i in 8 = i, reduce k in 30 = k) writes %a[i] : memref<8xi32>, %m[i] : memref<8xf32> custom [7 : i32, 0xff800000 : f32] {
        %0 = lw_te.index k : i32
        %1 = arith.constant 1.0 : f32
        lw_te.yield %0, %1 : i32, f32
      } combine {
      ^bb0(%i : i32, %v : f32, %j : i32, %w : f32):
        lw_te.yield %i, %v : i32, f32
      }
      lw_loop.block s (i in 8 = i, reduce k in 30 = k) writes %s[i] : memref<8xui8> max {
        %0 = lw_loop.load %x[i, k] : memref<8x30xui8>
        lw_te.yield %0 : ui8
      }
    }
  }
  func.return
}

// CHECK: func.func @pairs
// CHECK-NEXT: lw_loop.for i in 8 {
// CHECK-NEXT: lw_loop.block a$start (i in 8 = i) annotated {starts = "a"} writes %a[i] : memref<8xi32>, %m[i] : memref<8xf32> {
// CHECK-NEXT: %[[FIRST:[0-9]+]] = arith.constant 7 : i32
// CHECK-NEXT: %[[SECOND:[0-9]+]] = arith.constant 0xff800000 : f32
// CHECK-NEXT: lw_te.yield %[[FIRST]], %[[SECOND]] : i32, f32
// CHECK-NEXT: }
// CHECK-NEXT: lw_loop.block s$start (i in 8 = i) annotated {starts = "s"} writes %s[i] : memref<8xui8> {
// CHECK-NEXT: %[[LEAST:[0-9]+]] = lw_te.index 0 : ui8
// CHECK: lw_loop.for k in 30 {

// -----

// What is reduced in one iteration, or over the threads of a block, is started where it is written.

module attributes {lw.target = #lw.target<"opencl max_threads_per_block=64">} {
func.func @elsewhere(%x: memref<8x32xf32> {lw.name = "x"}, %c: memref<8xf32> {lw.name = "c", lw.output}, %d: memref<8xf32> {lw.name = "d", lw.output}) {
  lw_loop.for i in 8 blockIdx.x {
    lw_loop.for k in 32 threadIdx.x {
      lw_loop.block c (i in 8 = i, reduce k in 32 = k) writes %c[i] : memref<8xf32> add {
        %0 = lw_loop.load %x[i, k] : memref<8x32xf32>
        lw_te.yield %0 : f32
      }
    }
    lw_loop.for j in 1 {
      lw_loop.block d (i in 8 = i, reduce k in 1 = j) writes %d[i] : memref<8xf32> add {
        %0 = lw_loop.load %x[i, k] : memref<8x32xf32>
        lw_te.yield %0 : f32
      }
    }
  }
  func.return
}
}

// CHECK: func.func @elsewhere
// CHECK-NOT: starts
// CHECK-NOT: no_init
// CHECK: func.return
