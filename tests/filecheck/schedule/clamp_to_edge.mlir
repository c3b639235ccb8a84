// RUN: xdsl-opt %s -p 'lw-clamp-to-edge{block=P}' | filecheck %s
// RUN: xdsl-opt %s -p 'lw-clamp-to-edge{block=Y}' --verify-diagnostics | filecheck %s --check-prefix=OTHER

// The reader's elements are computed from positions that are clamped to the buffer.
// CHECK: func.func @main
// CHECK-NEXT: lw_loop.for y in 16 {
// CHECK-NEXT: lw_loop.block Y (y in 16 = y) writes %Y[y] : memref<16xf32> {
// CHECK-NEXT: [[L:%.*]] = lw_te.index y floordiv 2 - 1 : i32
// CHECK-NEXT: [[A:%.*]] = lw_loop.load %X[?0(y) of 8] at ([[L]] : i32) : memref<8xf32>
// CHECK-NEXT: [[H:%.*]] = lw_te.index y floordiv 2 : i32
// CHECK-NEXT: [[B:%.*]] = lw_loop.load %X[?0(y) of 8] at ([[H]] : i32) : memref<8xf32>
// CHECK-NEXT: [[C:%.*]] = lw_loop.load %X[?0(y) of 8] at ([[L]] : i32) : memref<8xf32>
// CHECK-NEXT: arith.addf [[A]], [[B]] : f32

// OTHER: block 'Y' must repeat the first or the last elements of a buffer along one dimension

func.func @main(%X: memref<8xf32> {lw.name = "X"}, %Y: memref<16xf32> {lw.name = "Y", lw.output}) {
  %P = lw_loop.alloc "P" : memref<9xf32>
  lw_loop.for i in 9 {
    lw_loop.block P (i in 9 = i) writes %P[i] : memref<9xf32> {
      %f = lw_te.predicate (0 - i >= 0)
      %a = lw_loop.load %X[0] : memref<8xf32>
      %b = lw_loop.load %X[i - 1] where (i - 1 >= 0) : memref<8xf32>
      %s = arith.select %f, %a, %b : f32
      lw_te.yield %s : f32
    }
  }
  lw_loop.for y in 16 {
    lw_loop.block Y (y in 16 = y) writes %Y[y] : memref<16xf32> {
      %a = lw_loop.load %P[y floordiv 2] : memref<9xf32>
      %b = lw_loop.load %P[y floordiv 2 + 1] : memref<9xf32>
      %c = lw_loop.load %P[y floordiv 2] : memref<9xf32>
      %d = arith.addf %a, %b : f32
      %e = arith.addf %d, %c : f32
      lw_te.yield %e : f32
    }
  }
  func.return
}
