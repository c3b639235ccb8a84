// RUN: xdsl-opt %s -p 'lw-separate{block=y axis=ry}' | filecheck %s
// RUN: xdsl-opt %s -p 'lw-separate{block=y axis=rx}' | filecheck %s --check-prefix=COLUMNS
// RUN: xdsl-opt %s -p 'lw-separate{block=y axis=h}' --verify-diagnostics | filecheck %s --check-prefix=AXIS
// RUN: xdsl-opt %s -p 'lw-split{block=y loop=h factors=0,2},lw-separate{block=y axis=ry}' --verify-diagnostics | filecheck %s --check-prefix=SPLIT
// RUN: xdsl-opt %s -p 'lw-separate{block=all axis=r}' --verify-diagnostics | filecheck %s --check-prefix=ALL
// RUN: xdsl-opt %s -p 'lw-separate{block=scaled axis=r}' --verify-diagnostics | filecheck %s --check-prefix=SCALED

// Rows first, for each column that a window reaches.
// CHECK: %y_ry = lw_loop.alloc "y_ry" : memref<3x9xf32>
// CHECK: lw_loop.block y_ry (h in 3 = h, w in 9 = w, reduce ry in 3 = ry) writes %y_ry[h, w] : memref<3x9xf32> max {
// CHECK-NEXT: lw_loop.load %x[h * 2 + ry, w + 1]
// CHECK: lw_loop.block y (h in 3 = h, w in 4 = w, reduce rx in 2 = rx) writes %y[h, w] : memref<3x4xf32> max {
// CHECK-NEXT: lw_loop.load %y_ry[h, w * 2 + rx * 2]

// COLUMNS: lw_loop.block y_rx (h in 7 = h, w in 4 = w, reduce rx in 2 = rx) writes %y_rx[h, w] : memref<7x4xf32> max {
// COLUMNS-NEXT: lw_loop.load %x[h, w * 2 + rx * 2 + 1]
// COLUMNS: lw_loop.block y (h in 3 = h, w in 4 = w, reduce ry in 3 = ry)
// COLUMNS-NEXT: lw_loop.load %y_rx[h * 2 + ry, w]

// AXIS: axis must be one that 'y' reduces over (ry, rx), got 'h'
// SPLIT: block 'y' must be in loops of its own, one for each iterator: this step comes first
// ALL: block 'all' must slide windows along 'r' and along others, each in an index of its own
// SCALED: block 'scaled' must reduce what it loads to one result, and no more

func.func @pool(%x: memref<8x12xf32> {lw.name = "x"}, %y: memref<3x4xf32> {lw.name = "y", lw.output}, %all: memref<8xf32> {lw.name = "all", lw.output}, %scaled: memref<8xf32> {lw.name = "scaled", lw.output}) {
  lw_loop.for h in 3 {
    lw_loop.for w in 4 {
      lw_loop.for ry in 3 {
        lw_loop.for rx in 2 {
          lw_loop.block y (h in 3 = h, w in 4 = w, reduce ry in 3 = ry, reduce rx in 2 = rx) writes %y[h, w] : memref<3x4xf32> max {
            %0 = lw_loop.load %x[h * 2 + ry, w * 2 + rx * 2 + 1] : memref<8x12xf32>
            lw_te.yield %0 : f32
          }
        }
      }
    }
  }
  lw_loop.for i in 8 {
    lw_loop.for r in 12 {
      lw_loop.block all (i in 8 = i, reduce r in 12 = r) writes %all[i] : memref<8xf32> add {
        %1 = lw_loop.load %x[i, r] : memref<8x12xf32>
        lw_te.yield %1 : f32
      }
    }
  }
  lw_loop.for j in 8 {
    lw_loop.for r in 12 {
      lw_loop.block scaled (j in 8 = j, reduce r in 12 = r) writes %scaled[j] : memref<8xf32> add {
        %2 = lw_loop.load %x[j, r] : memref<8x12xf32>
        %3 = arith.negf %2 : f32
        lw_te.yield %3 : f32
      }
    }
  }
  func.return
}
