// RUN: xdsl-opt %s -p 'lw-col2im{block=up}' | filecheck %s
// RUN: xdsl-opt %s -p 'lw-col2im{block=up multiple=4}' | filecheck %s --check-prefix=FOUR
// RUN: xdsl-opt %s -p 'lw-col2im{block=up by_rows=true}' | filecheck %s --check-prefix=ROWS
// RUN: xdsl-opt %s -p 'lw-col2im{block=last}' | filecheck %s --check-prefix=LAST
// RUN: xdsl-opt %s -p 'lw-col2im{block=last by_rows=true}' | filecheck %s --check-prefix=LAST
// RUN: xdsl-opt %s -p 'lw-col2im{block=up multiple=0}' --verify-diagnostics | filecheck %s --check-prefix=ZERO
// RUN: xdsl-opt %s -p 'lw-split{block=up loop=x factors=0,2},lw-col2im{block=up}' --verify-diagnostics | filecheck %s --check-prefix=SPLIT
// RUN: xdsl-opt %s -p 'lw-col2im{block=apart}' --verify-diagnostics | filecheck %s --check-prefix=APART

// The kernel's last place of the second phase is none: what was zero there is left out where results are added up.
// CHECK-DAG: %kernel_matrix = lw_loop.alloc "kernel_matrix" : memref<2x18xf32>
// CHECK-DAG: %tap_products = lw_loop.alloc "tap_products" : memref<18x5xf32>
// CHECK: lw_loop.block kernel_matrix (k in 2 = k, m in 18 = m) annotated {view} writes %kernel_matrix[k, m]
// CHECK-NEXT: lw_loop.load %W[k, m floordiv 3, m mod 3]
// CHECK-NOT: data_matrix
// CHECK: lw_loop.block tap_products (m in 18 = m, p in 5 = p, reduce k in 2 = k) writes %tap_products[m, p] : memref<18x5xf32> add {
// CHECK-NEXT: lw_loop.load %kernel_matrix[k, m]
// CHECK-NEXT: lw_loop.load %X[k, p]
// CHECK: lw_loop.block up (f in 6 = f, q in 2 = q, x in 4 = x) writes %up[f, q, x]
// CHECK-NEXT: %[[a:.*]] = lw_loop.load %tap_products[f * 3 + q + 2, x] where (0 - q >= 0)
// CHECK-NEXT: %[[b:.*]] = lw_loop.load %tap_products[f * 3 + q, x + 1] :
// CHECK-NEXT: arith.addf %[[a]], %[[b]] : f32

// FOUR: lw_loop.block data_matrix (k in 2 = k, p in 8 = p)
// FOUR-NEXT: lw_loop.load %X[k, p] where (4 - p >= 0)
// FOUR: lw_loop.block tap_products (m in 18 = m, p in 8 = p, reduce k in 2 = k)

// Terms of a row of the kernel side by side.
// ROWS: lw_loop.block kernel_matrix (m in 18 = m, k in 2 = k) annotated {view} writes %kernel_matrix[m, k]
// ROWS-NEXT: lw_loop.load %W[k, m floordiv 3, m mod 3]
// ROWS: lw_loop.block tap_products (m in 18 = m, p in 5 = p, reduce k in 2 = k)
// ROWS-NEXT: lw_loop.load %kernel_matrix[m, k]

// Channels of the data side by side: a row for each of its places.
// LAST: lw_loop.block kernel_matrix (k in 2 = k, m in 9 = m)
// LAST-NEXT: lw_loop.load %V[m floordiv 3, k, m mod 3]
// LAST: lw_loop.block tap_products (p in 5 = p, m in 9 = m, reduce k in 2 = k) writes %tap_products[p, m]
// LAST: lw_loop.block last (x in 3 = x, f in 3 = f) writes %last[x, f]
// LAST-NEXT: lw_loop.load %tap_products[x, f]
// LAST-NEXT: lw_loop.load %tap_products[x + 1, f + 3]

// ZERO: multiple must be at least 1, got 0
// SPLIT: block 'up' must be in loops of its own, one for each iterator: this step comes first
// APART: block 'apart' must add up over one iterator that is a dimension of both loads, which have none of the results in common

func.func @first(%X: memref<2x5xf32> {lw.name = "X"}, %W: memref<2x6x3xf32> {lw.name = "W"}, %up: memref<6x2x4xf32> {lw.name = "up", lw.output}) {
  lw_loop.for f in 6 {
    lw_loop.for q in 2 {
      lw_loop.for x in 4 {
        lw_loop.for c in 2 {
          lw_loop.for r in 2 {
            lw_loop.block up (f in 6 = f, q in 2 = q, x in 4 = x, reduce c in 2 = c, reduce r in 2 = r) writes %up[f, q, x] : memref<6x2x4xf32> add {
              %a = lw_loop.load %X[c, x + r] : memref<2x5xf32>
              %b = lw_loop.load %W[c, f, q - r * 2 + 2] where (r * 2 - q >= 0) : memref<2x6x3xf32>
              %c = arith.mulf %a, %b : f32
              lw_te.yield %c : f32
            }
          }
        }
      }
    }
  }
  func.return
}

func.func @second(%Y: memref<5x2xf32> {lw.name = "Y"}, %V: memref<3x2x3xf32> {lw.name = "V"}, %last: memref<3x3xf32> {lw.name = "last", lw.output}) {
  lw_loop.for x in 3 {
    lw_loop.for f in 3 {
      lw_loop.for r in 3 {
        lw_loop.for c in 2 {
          lw_loop.block last (x in 3 = x, f in 3 = f, reduce r in 3 = r, reduce c in 2 = c) writes %last[x, f] : memref<3x3xf32> add {
            %a = lw_loop.load %Y[x + r, c] : memref<5x2xf32>
            %b = lw_loop.load %V[r, c, f] : memref<3x2x3xf32>
            %c = arith.mulf %a, %b : f32
            lw_te.yield %c : f32
          }
        }
      }
    }
  }
  func.return
}

func.func @third(%Z: memref<4x2x5xf32> {lw.name = "Z"}, %U: memref<4x2x3xf32> {lw.name = "U"}, %apart: memref<4x3xf32> {lw.name = "apart", lw.output}) {
  lw_loop.for g in 4 {
    lw_loop.for x in 3 {
      lw_loop.for r in 3 {
        lw_loop.for c in 2 {
          lw_loop.block apart (g in 4 = g, x in 3 = x, reduce r in 3 = r, reduce c in 2 = c) writes %apart[g, x] : memref<4x3xf32> add {
            %a = lw_loop.load %Z[g, c, x + r] : memref<4x2x5xf32>
            %b = lw_loop.load %U[g, c, r] : memref<4x2x3xf32>
            %c = arith.mulf %a, %b : f32
            lw_te.yield %c : f32
          }
        }
      }
    }
  }
  func.return
}
