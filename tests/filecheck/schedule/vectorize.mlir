// RUN: xdsl-opt %s -p 'lw-split{block=best loop=i factors=2,4},lw-reorder{block=best loops=k,i0,i1},lw-vectorize{block=best loop=i1}' | filecheck %s --check-prefix=SPATIAL
// RUN: xdsl-opt %s -p 'lw-vectorize{block=best loop=k}' --verify-diagnostics | filecheck %s --check-prefix=CUSTOM
// RUN: xdsl-opt %s -p 'lw-split{block=best loop=k factors=3,4},lw-rfactor{block=best loop=k1},lw-vectorize{block=best_rf loop=k1}' | filecheck %s --check-prefix=LANES
// RUN: xdsl-opt %s -p 'lw-vectorize{block=best loop=i}' --verify-diagnostics | filecheck %s --check-prefix=INNER

func.func @argmax(%A: memref<7x11xf32> {lw.name = "A"}, %P: memref<7xi32> {lw.name = "P", lw.output}, %V: memref<7xf32> {lw.name = "V", lw.output}) {
  lw_loop.for i in 7 {
    lw_loop.for k in 11 {
      lw_loop.block best (i in 7 = i, reduce k in 11 = k) writes %P[i] : memref<7xi32>, %V[i] : memref<7xf32> custom [-1 : i32, -1.000000e+30 : f32] {
        %p = lw_te.index k : i32
        %v = lw_loop.load %A[i, k] : memref<7x11xf32>
        lw_te.yield %p, %v : i32, f32
      } combine {
      ^bb0(%p0: i32, %v0: f32, %p1: i32, %v1: f32):
        %c = arith.cmpf oge, %v0, %v1 : f32
        %p = arith.select %c, %p0, %p1 : i32
        %v = arith.select %c, %v0, %v1 : f32
        lw_te.yield %p, %v : i32, f32
      }
    }
  }
  func.return
}

// SPATIAL: lw_loop.for k in 11 {
// SPATIAL-NEXT: lw_loop.for i0 in 2 {
// SPATIAL-NEXT: lw_loop.for i1 in 4 vectorized {
// SPATIAL-NEXT: lw_loop.block best (i in 7 = i0 * 4 + i1, reduce k in 11 = k) where (6 - i0 * 4 - i1 >= 0) writes %P[i] : memref<7xi32>, %V[i] : memref<7xf32> custom [-1 : i32, -1.000000e+30 : f32] {

// CUSTOM: lw-vectorize{block="best" loop="k"}: lanes join by add, mul, max or min only, block 'best' reduces over 'k' by a combiner of its own; rfactor first
// CUSTOM-NEXT: try: lw-rfactor{block="best" loop="k"}
// CUSTOM: >   lw_loop.for k in 11 {

// The partial results of an own combiner have lanes of their own.
// LANES: %P_rf = lw_loop.alloc "P_rf" : memref<7x4xi32>
// LANES-NEXT: %V_rf = lw_loop.alloc "V_rf" : memref<7x4xf32>
// LANES-NEXT: lw_loop.for i in 7 {
// LANES-NEXT: lw_loop.for k0 in 3 {
// LANES-NEXT: lw_loop.for k1 in 4 vectorized {
// LANES-NEXT: lw_loop.block best_rf (i in 7 = i, k1 in 4 = k1, reduce k0 in 3 = k0) where (10 - k0 * 4 - k1 >= 0) writes %P_rf[i, k1] : memref<7x4xi32>, %V_rf[i, k1] : memref<7x4xf32> custom [-1 : i32, -1.000000e+30 : f32] {
// LANES: lw_loop.for k1 in 4 {
// LANES-NEXT: lw_loop.block best (i in 7 = i, reduce k1 in 4 = k1) writes %P[i] : memref<7xi32>, %V[i] : memref<7xf32> custom [-1 : i32, -1.000000e+30 : f32] {

// INNER: lw-vectorize{block="best" loop="i"}: a vectorized loop must be innermost, 'i' holds loop 'k'; reorder first
// INNER: >   lw_loop.for k in 11 {
