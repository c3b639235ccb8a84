// RUN: xdsl-opt %s -p 'lw-set-scope{block=t scope=local}' | filecheck %s --check-prefix=LOCAL
// RUN: xdsl-opt %s -p 'lw-storage-align{block=t axis=0 factor=8 offset=1},lw-set-scope{block=t scope=shared buffer=t},lw-set-scope{block=t scope=global}' | filecheck %s --check-prefix=BACK
// RUN: xdsl-opt %s -p 'lw-set-scope{block=out scope=local}' --verify-diagnostics | filecheck %s --check-prefix=ARG
// RUN: xdsl-opt %s -p 'lw-set-scope{block=t scope=texture}' --verify-diagnostics | filecheck %s --check-prefix=SCOPE
// RUN: xdsl-opt %s -p 'lw-set-scope{block=t buffer=w scope=local}' --verify-diagnostics | filecheck %s --check-prefix=BUFFER

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

// LOCAL: func.func @pointwise(%data: memref<7x6xf32> {lw.name = "data"}, %w: memref<5x6xf32> {lw.name = "w", lw.constant}, %out: memref<7x5xf32> {lw.name = "out", lw.output}) {
// LOCAL-NEXT: %t = lw_loop.alloc "t" : memref<9x6xf32, "local">
// LOCAL-NEXT: lw_loop.for y in 9 {
// LOCAL-NEXT: lw_loop.for c in 6 {

// The global scope is not written out; rows stay aligned.
// BACK: func.func @pointwise(%data: memref<7x6xf32> {lw.name = "data"}, %w: memref<5x6xf32> {lw.name = "w", lw.constant}, %out: memref<7x5xf32> {lw.name = "out", lw.output}) {
// BACK-NEXT: %t = lw_loop.alloc "t" align [0, 8, 1] : memref<9x6xf32>
// BACK-NEXT: lw_loop.for y in 9 {
// BACK-NEXT: lw_loop.for c in 6 {

// ARG: lw-set-scope{block="out" scope="local"}: 'out' is an argument of the function, which is global
// ARG-NEXT: try: lw-cache-write{block="out"}
// SCOPE: lw-set-scope{block="t" scope="texture"}: scope must be one of global, shared, local, got 'texture'
// BUFFER: lw-set-scope{block="t" scope="local" buffer="w"}: buffer must be one that block 't' writes (t), got 'w'
