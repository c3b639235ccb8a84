// RUN: xdsl-opt %s -p 'lw-cache-read{block=out buffer=data scope=shared}' | filecheck %s --check-prefix=WHOLE
// RUN: xdsl-opt %s -p 'lw-cache-read{block=out buffer=data layout="x/4","r","x%4"}' | filecheck %s --check-prefix=PANEL
// RUN: xdsl-opt %s -p 'lw-cache-read{block=T buffer=A layout="i*j" label=rows}' | filecheck %s --check-prefix=TWICE
// RUN: xdsl-opt %s -p 'lw-cache-read{block=out buffer=nothing}' --verify-diagnostics | filecheck %s --check-prefix=NOREAD
// RUN: xdsl-opt %s -p 'lw-cache-read{block=out buffer=data scope=register}' --verify-diagnostics | filecheck %s --check-prefix=SCOPE
// RUN: xdsl-opt %s -p 'lw-cache-read{block=out buffer=w layout="r","x"}' --verify-diagnostics | filecheck %s --check-prefix=UNUSED
// RUN: xdsl-opt %s -p 'lw-cache-read{block=out buffer=data layout="x"}' --verify-diagnostics | filecheck %s --check-prefix=MISSING
// RUN: xdsl-opt %s -p 'lw-cache-read{block=out buffer=data layout="x/4","r"}' --verify-diagnostics | filecheck %s --check-prefix=ALONE
// RUN: xdsl-opt %s -p 'lw-cache-read{block=S buffer=A layout="i","j"}' --verify-diagnostics | filecheck %s --check-prefix=PLACES
// RUN: xdsl-opt %s -p 'lw-cache-read{block=S buffer=T}' --verify-diagnostics | filecheck %s --check-prefix=SAMENEST
// RUN: xdsl-opt %s -p 'lw-cache-read{block=S buffer=A label=T}' --verify-diagnostics | filecheck %s --check-prefix=TAKEN

// A strided, padded window: out[x] = sum over r of data[2 x + r - 1], 13 elements into 7.
func.func @window(%data: memref<13xf32> {lw.name = "data"}, %w: memref<3xf32> {lw.name = "w"}, %out: memref<7xf32> {lw.name = "out", lw.output}) {
  lw_loop.for x in 7 {
    lw_loop.for r in 3 {
      lw_loop.block out (x in 7 = x, reduce r in 3 = r) writes %out[x] : memref<7xf32> add {
        %a = lw_loop.load %data[x * 2 + r - 1] where (x * 2 + r - 1 >= 0, 13 - x * 2 - r >= 0) : memref<13xf32>
        %b = lw_loop.load %w[r] : memref<3xf32>
        %c = arith.mulf %a, %b : f32
        lw_te.yield %c : f32
      }
    }
  }
  func.return
}

func.func @square(%A: memref<4x4xf32> {lw.name = "A"}, %S: memref<4x4xf32> {lw.name = "S", lw.output}) {
  %T = lw_loop.alloc "T" : memref<4x4xf32>
  lw_loop.for i in 4 {
    lw_loop.for j in 4 {
      lw_loop.block T (i in 4 = i, j in 4 = j) writes %T[i, j] : memref<4x4xf32> {
        %a = lw_loop.load %A[i, j] : memref<4x4xf32>
        %b = lw_loop.load %A[i, j] : memref<4x4xf32>
        %c = arith.mulf %a, %b : f32
        lw_te.yield %c : f32
      }
      lw_loop.block S (i in 4 = i, j in 4 = j) writes %S[i, j] : memref<4x4xf32> {
        %a = lw_loop.load %T[i, j] : memref<4x4xf32>
        %b = lw_loop.load %A[i, j] : memref<4x4xf32>
        %d = lw_loop.load %A[j, i] : memref<4x4xf32>
        %c = arith.addf %a, %b : f32
        %e = arith.addf %c, %d : f32
        lw_te.yield %e : f32
      }
    }
  }
  func.return
}

// Without a layout the copy has the shape of its source, and the mask stays with the reader.
// WHOLE: func.func @window(%data: memref<13xf32> {lw.name = "data"}, %w: memref<3xf32> {lw.name = "w"}, %out: memref<7xf32> {lw.name = "out", lw.output}) {
// WHOLE-NEXT: %data_shared = lw_loop.alloc "data_shared" : memref<13xf32, "shared">
// WHOLE-NEXT: lw_loop.for ax0 in 13 {
// WHOLE-NEXT: lw_loop.block data_shared (ax0 in 13 = ax0) writes %data_shared[ax0] : memref<13xf32, "shared"> {
// WHOLE-NEXT: %[[V0:[0-9]+]] = lw_loop.load %data[ax0] : memref<13xf32>
// WHOLE-NEXT: lw_te.yield %[[V0]] : f32
// WHOLE-NEXT: }
// WHOLE-NEXT: }
// WHOLE-NEXT: lw_loop.for x in 7 {
// WHOLE-NEXT: lw_loop.for r in 3 {
// WHOLE-NEXT: lw_loop.block out (x in 7 = x, reduce r in 3 = r) writes %out[x] : memref<7xf32> add {
// WHOLE-NEXT: %a = lw_loop.load %data_shared[x * 2 + r - 1] where (x * 2 + r - 1 >= 0, 13 - x * 2 - r >= 0) : memref<13xf32, "shared">
// WHOLE-NEXT: %b = lw_loop.load %w[r] : memref<3xf32>
// WHOLE-NEXT: %c = arith.mulf %a, %b : f32
// WHOLE-NEXT: lw_te.yield %c : f32
// WHOLE-NEXT: }
// WHOLE-NEXT: }
// WHOLE-NEXT: }
// WHOLE-NEXT: func.return

// A panel holds what the window reads; its tiles of 4 do not divide 7, so the padding is masked as well.
// PANEL: func.func @window(%data: memref<13xf32> {lw.name = "data"}, %w: memref<3xf32> {lw.name = "w"}, %out: memref<7xf32> {lw.name = "out", lw.output}) {
// PANEL-NEXT: %data_packed = lw_loop.alloc "data_packed" : memref<2x3x4xf32, "local">
// PANEL-NEXT: lw_loop.for x_o in 2 {
// PANEL-NEXT: lw_loop.for r in 3 {
// PANEL-NEXT: lw_loop.for x_i in 4 {
// PANEL-NEXT: lw_loop.block data_packed (x_o in 2 = x_o, r in 3 = r, x_i in 4 = x_i) writes %data_packed[x_o, r, x_i] : memref<2x3x4xf32, "local"> {
// PANEL-NEXT: %[[V0:[0-9]+]] = lw_loop.load %data[x_o * 8 + x_i * 2 + r - 1] where (x_o * 8 + x_i * 2 + r - 1 >= 0, 13 - x_o * 8 - x_i * 2 - r >= 0, 6 - x_o * 4 - x_i >= 0) : memref<13xf32>
// PANEL-NEXT: lw_te.yield %[[V0]] : f32
// PANEL-NEXT: }
// PANEL-NEXT: }
// PANEL-NEXT: }
// PANEL-NEXT: }
// PANEL-NEXT: lw_loop.for x in 7 {
// PANEL-NEXT: lw_loop.for r in 3 {
// PANEL-NEXT: lw_loop.block out (x in 7 = x, reduce r in 3 = r) writes %out[x] : memref<7xf32> add {
// PANEL-NEXT: %a = lw_loop.load %data_packed[x floordiv 4, r, x mod 4] : memref<2x3x4xf32, "local">
// PANEL-NEXT: %b = lw_loop.load %w[r] : memref<3xf32>
// PANEL-NEXT: %c = arith.mulf %a, %b : f32
// PANEL-NEXT: lw_te.yield %c : f32
// PANEL-NEXT: }
// PANEL-NEXT: }
// PANEL-NEXT: }
// PANEL-NEXT: func.return

// Two reads at one place share a panel, which takes the name it is given.
// TWICE: func.func @square(%A: memref<4x4xf32> {lw.name = "A"}, %S: memref<4x4xf32> {lw.name = "S", lw.output}) {
// TWICE-NEXT: %T = lw_loop.alloc "T" : memref<4x4xf32>
// TWICE-NEXT: %rows = lw_loop.alloc "rows" : memref<16xf32, "local">
// TWICE-NEXT: lw_loop.for i_j in 16 {
// TWICE-NEXT: lw_loop.block rows (i_j in 16 = i_j) writes %rows[i_j] : memref<16xf32, "local"> {
// TWICE-NEXT: %[[V0:[0-9]+]] = lw_loop.load %A[i_j floordiv 4, i_j mod 4] : memref<4x4xf32>
// TWICE-NEXT: lw_te.yield %[[V0]] : f32
// TWICE-NEXT: }
// TWICE-NEXT: }
// TWICE-NEXT: lw_loop.for i in 4 {
// TWICE-NEXT: lw_loop.for j in 4 {
// TWICE-NEXT: lw_loop.block T (i in 4 = i, j in 4 = j) writes %T[i, j] : memref<4x4xf32> {
// TWICE-NEXT: %a = lw_loop.load %rows[i * 4 + j] : memref<16xf32, "local">
// TWICE-NEXT: %b = lw_loop.load %rows[i * 4 + j] : memref<16xf32, "local">
// TWICE-NEXT: %c = arith.mulf %a, %b : f32
// TWICE-NEXT: lw_te.yield %c : f32
// TWICE-NEXT: }
// TWICE-NEXT: lw_loop.block S (i in 4 = i, j in 4 = j) writes %S[i, j] : memref<4x4xf32> {
// TWICE-NEXT: %a_1 = lw_loop.load %T[i, j] : memref<4x4xf32>
// TWICE-NEXT: %b_1 = lw_loop.load %A[i, j] : memref<4x4xf32>
// TWICE-NEXT: %d = lw_loop.load %A[j, i] : memref<4x4xf32>
// TWICE-NEXT: %c_1 = arith.addf %a_1, %b_1 : f32
// TWICE-NEXT: %e = arith.addf %c_1, %d : f32
// TWICE-NEXT: lw_te.yield %e : f32
// TWICE-NEXT: }
// TWICE-NEXT: }
// TWICE-NEXT: }
// TWICE-NEXT: func.return

// NOREAD: lw-cache-read{block="out" buffer="nothing"}: block 'out' must read buffer 'nothing'; it reads data, w
// SCOPE: lw-cache-read{block="out" buffer="data" scope="register"}: scope must be one of global, shared, local, got 'register'
// UNUSED: lw-cache-read{block="out" buffer="w" layout="r","x"}: the layout must hold the iterators that the read of 'w' depends on, but 'x' is not over them: 'x' is none of r
// MISSING: lw-cache-read{block="out" buffer="data" layout="x"}: the layout must hold the iterators that the read of 'data' depends on, but 'r' has extent 3 and is not covered
// ALONE: lw-cache-read{block="out" buffer="data" layout="x/4","r"}: the layout must hold the iterators that the read of 'data' depends on, but 'x/4' needs 'x%4' beside it: 'x' has extent 7
// PLACES: lw-cache-read{block="S" buffer="A" layout="i","j"}: with a layout, all reads of 'A' in 'S' must be at the same place, they are at [i, j] and [j, i]
// SAMENEST: lw-cache-read{block="S" buffer="T"}: what writes 'T' must stand in a nest before that of 'S', 'T' is in the same; do this step before moving it there
// TAKEN: lw-cache-read{block="S" buffer="A" label="T"}: label must be new, 'T' is a buffer or block already
