// RUN: xdsl-opt %s -p 'lw-im2col{block=row}' | filecheck %s
// RUN: xdsl-opt %s -p 'lw-im2col{block=last}' | filecheck %s --check-prefix=LAST
// RUN: xdsl-opt %s -p 'lw-im2col{block=one}' --verify-diagnostics | filecheck %s --check-prefix=ONE
// RUN: xdsl-opt %s -p 'lw-split{block=row loop=x factors=0,2},lw-im2col{block=row}' --verify-diagnostics | filecheck %s --check-prefix=SPLIT
// RUN: xdsl-opt %s -p 'lw-im2col{block=apart}' --verify-diagnostics | filecheck %s --check-prefix=APART

// What is loaded beyond the data is zero in the matrix.
// CHECK-DAG: %data_matrix = lw_loop.alloc "data_matrix" : memref<6x3xf32>
// CHECK-DAG: %kernel_matrix = lw_loop.alloc "kernel_matrix" : memref<4x6xf32>
// CHECK: lw_loop.block data_matrix (k in 6 = k, x in 3 = x) annotated {view} writes %data_matrix[k, x]
// CHECK-NEXT: lw_loop.load %X[k floordiv 3, x * 2 + k mod 3] where (5 - x * 2 - k mod 3 >= 0)
// CHECK: lw_loop.block kernel_matrix (f in 4 = f, k in 6 = k) annotated {view} writes %kernel_matrix[f, k]
// CHECK-NEXT: lw_loop.load %W[f, k floordiv 3, k mod 3]
// CHECK: lw_loop.block row (f in 4 = f, x in 3 = x, reduce k in 6 = k) writes %row[f, x] : memref<4x3xf32> add {
// CHECK-NEXT: lw_loop.load %data_matrix[k, x]
// CHECK-NEXT: lw_loop.load %kernel_matrix[f, k]

// Channels side by side: a row for each window.
// LAST: lw_loop.block data_matrix (x in 3 = x, k in 6 = k) annotated {view} writes %data_matrix[x, k]
// LAST-NEXT: lw_loop.load %Y[x + k floordiv 2, k mod 2]
// LAST: lw_loop.block last (x in 3 = x, f in 4 = f, reduce k in 6 = k)

// ONE: block 'one' must add up over two iterators and more
// SPLIT: block 'row' must be in loops of its own, one for each iterator: this step comes first
// APART: block 'apart' must read at sums of its iterators

func.func @first(%X: memref<2x6xf32> {lw.name = "X"}, %W: memref<4x2x3xf32> {lw.name = "W"}, %row: memref<4x3xf32> {lw.name = "row", lw.output}) {
  lw_loop.for f in 4 {
    lw_loop.for x in 3 {
      lw_loop.for c in 2 {
        lw_loop.for r in 3 {
          lw_loop.block row (f in 4 = f, x in 3 = x, reduce c in 2 = c, reduce r in 3 = r) writes %row[f, x] : memref<4x3xf32> add {
            %a = lw_loop.load %X[c, x * 2 + r] where (5 - x * 2 - r >= 0) : memref<2x6xf32>
            %b = lw_loop.load %W[f, c, r] : memref<4x2x3xf32>
            %c = arith.mulf %a, %b : f32
            lw_te.yield %c : f32
          }
        }
      }
    }
  }
  func.return
}

func.func @second(%Y: memref<5x2xf32> {lw.name = "Y"}, %V: memref<3x2x4xf32> {lw.name = "V"}, %last: memref<3x4xf32> {lw.name = "last", lw.output}) {
  lw_loop.for x in 3 {
    lw_loop.for f in 4 {
      lw_loop.for r in 3 {
        lw_loop.for c in 2 {
          lw_loop.block last (x in 3 = x, f in 4 = f, reduce r in 3 = r, reduce c in 2 = c) writes %last[x, f] : memref<3x4xf32> add {
            %a = lw_loop.load %Y[x + r, c] : memref<5x2xf32>
            %b = lw_loop.load %V[r, c, f] : memref<3x2x4xf32>
            %c = arith.mulf %a, %b : f32
            lw_te.yield %c : f32
          }
        }
      }
    }
  }
  func.return
}

func.func @third(%A: memref<3x6xf32> {lw.name = "A"}, %B: memref<6x4xf32> {lw.name = "B"}, %one: memref<3x4xf32> {lw.name = "one", lw.output}) {
  lw_loop.for i in 3 {
    lw_loop.for j in 4 {
      lw_loop.for k in 6 {
        lw_loop.block one (i in 3 = i, j in 4 = j, reduce k in 6 = k) writes %one[i, j] : memref<3x4xf32> add {
          %a = lw_loop.load %A[i, k] : memref<3x6xf32>
          %b = lw_loop.load %B[k, j] : memref<6x4xf32>
          %c = arith.mulf %a, %b : f32
          lw_te.yield %c : f32
        }
      }
    }
  }
  func.return
}

func.func @fourth(%Z: memref<4x6xf32> {lw.name = "Z"}, %U: memref<8x2x3xf32> {lw.name = "U"}, %apart: memref<8x4xf32> {lw.name = "apart", lw.output}) {
  lw_loop.for g in 8 {
    lw_loop.for x in 4 {
      lw_loop.for c in 2 {
        lw_loop.for r in 3 {
          lw_loop.block apart (g in 8 = g, x in 4 = x, reduce c in 2 = c, reduce r in 3 = r) writes %apart[g, x] : memref<8x4xf32> add {
            %a = lw_loop.load %Z[g floordiv 4 * 2 + c, x + r] : memref<4x6xf32>
            %b = lw_loop.load %U[g, c, r] : memref<8x2x3xf32>
            %c = arith.mulf %a, %b : f32
            lw_te.yield %c : f32
          }
        }
      }
    }
  }
  func.return
}
