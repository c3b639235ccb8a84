// RUN: xdsl-opt %s -p 'lw-transform-layout{block=t buffer=t layout="c/4","y","c%4"}' | filecheck %s --check-prefix=ALLOC
// RUN: xdsl-opt %s -p 'lw-transform-layout{block=out buffer=t layout="d0*c"}' | filecheck %s --check-prefix=NUMBER
// RUN: xdsl-opt %s -p 'lw-transform-layout{block=out buffer=w layout="o/4","c","o%4"}' | filecheck %s --check-prefix=CONST
// RUN: xdsl-opt %s -p 'lw-transform-layout{block=t buffer=data layout="c","d0"}' --verify-diagnostics | filecheck %s --check-prefix=ARG
// RUN: xdsl-opt %s -p 'lw-transform-layout{block=out buffer=out layout="o","y"}' --verify-diagnostics | filecheck %s --check-prefix=OUT
// RUN: xdsl-opt %s -p 'lw-transform-layout{block=out buffer=w layout="c","o"},lw-transform-layout{block=out buffer=w layout="o","c"}' --verify-diagnostics | filecheck %s --check-prefix=TWICE
// RUN: xdsl-opt %s -p 'lw-transform-layout{block=t buffer=t layout="y","d1"}' --verify-diagnostics | filecheck %s --check-prefix=NAMES
// RUN: xdsl-opt %s -p 'lw-transform-layout{block=t buffer=t layout="y","y%3"}' --verify-diagnostics | filecheck %s --check-prefix=COVER
// RUN: xdsl-opt %s -p 'lw-transform-layout{block=t buffer=w layout="o","c"}' --verify-diagnostics | filecheck %s --check-prefix=UNRELATED
// RUN: xdsl-opt %s -p 'lw-storage-align{block=t axis=0 factor=8 offset=1},lw-transform-layout{block=t buffer=t layout="c","y"}' --verify-diagnostics | filecheck %s --check-prefix=ALIGNED

func.func @pointwise(%data: memref<7x6xf32> {lw.name = "data"}, %w: memref<5x6xf32> {lw.name = "w", lw.constant}, %out: memref<7x5xf32> {lw.name = "out", lw.output}) {
  %t = lw_loop.alloc "t" : memref<9x6xf32>
  lw_loop.for y in 9 {
    lw_loop.for c in 6 {
      lw_loop.block t (y in 9 = y, c in 6 = c) writes %t[y, c] : memref<9x6xf32> {
        %a = lw_loop.load %data[y - 1, c] where (y - 1 >= 0, 7 - y >= 0) : memref<7x6xf32>
        lw_te.yield %a : f32
      }
    }
  }
  lw_loop.for y in 7 {
    lw_loop.for o in 5 {
      lw_loop.for c in 6 {
        lw_loop.block out (y in 7 = y, o in 5 = o, reduce c in 6 = c) writes %out[y, o] : memref<7x5xf32> add {
          %a = lw_loop.load %t[y + 1, c] : memref<9x6xf32>
          %b = lw_loop.load %w[o, c] : memref<5x6xf32>
          %m = arith.mulf %a, %b : f32
          lw_te.yield %m : f32
        }
      }
    }
  }
  func.return
}

// Writers and readers follow; names are the iterators that `t` writes by.
// ALLOC: func.func @pointwise(%data: memref<7x6xf32> {lw.name = "data"}, %w: memref<5x6xf32> {lw.name = "w", lw.constant}, %out: memref<7x5xf32> {lw.name = "out", lw.output}) {
// ALLOC-NEXT: %t = lw_loop.alloc "t" : memref<2x9x4xf32>
// ALLOC-NEXT: lw_loop.for y in 9 {
// ALLOC-NEXT: lw_loop.for c in 6 {
// ALLOC-NEXT: lw_loop.block t (y in 9 = y, c in 6 = c) writes %t[c floordiv 4, y, c mod 4] : memref<2x9x4xf32> {
// ALLOC-NEXT: %a = lw_loop.load %data[y - 1, c] where (y - 1 >= 0, 7 - y >= 0) : memref<7x6xf32>
// ALLOC-NEXT: lw_te.yield %a : f32
// ALLOC-NEXT: }
// ALLOC-NEXT: }
// ALLOC-NEXT: }
// ALLOC-NEXT: lw_loop.for y in 7 {
// ALLOC-NEXT: lw_loop.for o in 5 {
// ALLOC-NEXT: lw_loop.for c in 6 {
// ALLOC-NEXT: lw_loop.block out (y in 7 = y, o in 5 = o, reduce c in 6 = c) writes %out[y, o] : memref<7x5xf32> add {
// ALLOC-NEXT: %a_1 = lw_loop.load %t[c floordiv 4, y + 1, c mod 4] : memref<2x9x4xf32>
// ALLOC-NEXT: %b = lw_loop.load %w[o, c] : memref<5x6xf32>
// ALLOC-NEXT: %m = arith.mulf %a_1, %b : f32
// ALLOC-NEXT: lw_te.yield %m : f32
// ALLOC-NEXT: }
// ALLOC-NEXT: }
// ALLOC-NEXT: }
// ALLOC-NEXT: }
// ALLOC-NEXT: func.return

// Seen from the reader, the first dimension is at `y + 1`, which has no name of its own.
// NUMBER: func.func @pointwise(%data: memref<7x6xf32> {lw.name = "data"}, %w: memref<5x6xf32> {lw.name = "w", lw.constant}, %out: memref<7x5xf32> {lw.name = "out", lw.output}) {
// NUMBER-NEXT: %t = lw_loop.alloc "t" : memref<54xf32>
// NUMBER-NEXT: lw_loop.for y in 9 {
// NUMBER-NEXT: lw_loop.for c in 6 {
// NUMBER-NEXT: lw_loop.block t (y in 9 = y, c in 6 = c) writes %t[y * 6 + c] : memref<54xf32> {
// NUMBER-NEXT: %a = lw_loop.load %data[y - 1, c] where (y - 1 >= 0, 7 - y >= 0) : memref<7x6xf32>
// NUMBER-NEXT: lw_te.yield %a : f32
// NUMBER-NEXT: }
// NUMBER-NEXT: }
// NUMBER-NEXT: }
// NUMBER-NEXT: lw_loop.for y in 7 {
// NUMBER-NEXT: lw_loop.for o in 5 {
// NUMBER-NEXT: lw_loop.for c in 6 {
// NUMBER-NEXT: lw_loop.block out (y in 7 = y, o in 5 = o, reduce c in 6 = c) writes %out[y, o] : memref<7x5xf32> add {
// NUMBER-NEXT: %a_1 = lw_loop.load %t[y * 6 + c + 6] : memref<54xf32>
// NUMBER-NEXT: %b = lw_loop.load %w[o, c] : memref<5x6xf32>
// NUMBER-NEXT: %m = arith.mulf %a_1, %b : f32
// NUMBER-NEXT: lw_te.yield %m : f32
// NUMBER-NEXT: }
// NUMBER-NEXT: }
// NUMBER-NEXT: }
// NUMBER-NEXT: }
// NUMBER-NEXT: func.return

// A constant argument changes its type and says how it is packed.
// CONST: func.func @pointwise(%data: memref<7x6xf32> {lw.name = "data"}, %w: memref<2x6x4xf32> {lw.name = "w", lw.constant, lw.layout = ["o/4", "c", "o%4"], lw.packed_from = #lw.axes<o = 5, c = 6>}, %out: memref<7x5xf32> {lw.name = "out", lw.output}) {
// CONST-NEXT: %t = lw_loop.alloc "t" : memref<9x6xf32>
// CONST-NEXT: lw_loop.for y in 9 {
// CONST-NEXT: lw_loop.for c in 6 {
// CONST-NEXT: lw_loop.block t (y in 9 = y, c in 6 = c) writes %t[y, c] : memref<9x6xf32> {
// CONST-NEXT: %a = lw_loop.load %data[y - 1, c] where (y - 1 >= 0, 7 - y >= 0) : memref<7x6xf32>
// CONST-NEXT: lw_te.yield %a : f32
// CONST-NEXT: }
// CONST-NEXT: }
// CONST-NEXT: }
// CONST-NEXT: lw_loop.for y in 7 {
// CONST-NEXT: lw_loop.for o in 5 {
// CONST-NEXT: lw_loop.for c in 6 {
// CONST-NEXT: lw_loop.block out (y in 7 = y, o in 5 = o, reduce c in 6 = c) writes %out[y, o] : memref<7x5xf32> add {
// CONST-NEXT: %a_1 = lw_loop.load %t[y + 1, c] : memref<9x6xf32>
// CONST-NEXT: %b = lw_loop.load %w[o floordiv 4, c, o mod 4] : memref<2x6x4xf32>
// CONST-NEXT: %m = arith.mulf %a_1, %b : f32
// CONST-NEXT: lw_te.yield %m : f32
// CONST-NEXT: }
// CONST-NEXT: }
// CONST-NEXT: }
// CONST-NEXT: }
// CONST-NEXT: func.return

// ARG: lw-transform-layout{block="t" buffer="data" layout="c","d0"}: 'data' is an argument that is not constant, so the caller decides its layout; cache_read with a layout copies it
// OUT: lw-transform-layout{block="out" buffer="out" layout="o","y"}: 'out' is an argument that is not constant, so the caller decides its layout; cache_write with a layout copies it
// OUT-NEXT: try: lw-cache-write{block="out" buffer="out" layout="o","y"}
// TWICE: lw-transform-layout{block="out" buffer="w" layout="o","c"}: 'w' is packed already, as c, o
// NAMES: lw-transform-layout{block="t" buffer="t" layout="y","d1"}: the layout must hold the dimensions of 't', but 'd1' is not over them: 'd1' is none of y, c
// COVER: lw-transform-layout{block="t" buffer="t" layout="y","y%3"}: the layout must hold the dimensions of 't', but 'y' is covered more than once, by 'y', 'y%3'
// UNRELATED: lw-transform-layout{block="t" buffer="w" layout="o","c"}: block 't' must write or read buffer 'w'; it uses t, data
// ALIGNED: lw-transform-layout{block="t" buffer="t" layout="c","y"}: 't' must not be aligned yet; do storage_align after this step
