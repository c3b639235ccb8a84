// RUN: xdsl-opt %s -p 'lw-split{block=best loop=i factors=2,4},lw-decompose-reduction{block=best loop=i1}' | filecheck %s --check-prefix=BEST
// RUN: xdsl-opt %s -p 'lw-split{block=best loop=i factors=2,4},lw-reorder{block=best loops=k,i0,i1},lw-vectorize{block=best loop=i1},lw-unroll{block=best loop=i0},lw-decompose-reduction{block=best loop=k}' | filecheck %s --check-prefix=LANES
// RUN: xdsl-opt %s -p 'lw-split{block=best loop=k factors=3,4},lw-decompose-reduction{block=best loop=k1}' --verify-diagnostics | filecheck %s --check-prefix=OUTSIDE
// RUN: xdsl-opt %s -p 'lw-decompose-reduction{block=best loop=k},lw-decompose-reduction{block=best loop=k}' --verify-diagnostics | filecheck %s --check-prefix=AGAIN
// RUN: xdsl-opt %s -p 'lw-rfactor{block=best loop=k},lw-decompose-reduction{block=best_rf loop=k}' --verify-diagnostics | filecheck %s --check-prefix=PLAIN

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

// BEST: lw_loop.for i0 in 2 {
// BEST-NEXT: lw_loop.for i1 in 4 {
// BEST-NEXT: lw_loop.block best_init (i in 7 = i0 * 4 + i1) where (6 - i0 * 4 - i1 >= 0) writes %P[i] : memref<7xi32>, %V[i] : memref<7xf32> {
// BEST-NEXT: [[V0:%[0-9]+]] = arith.constant -1 : i32
// BEST-NEXT: [[V1:%[0-9]+]] = arith.constant -1.000000e+30 : f32
// BEST-NEXT: lw_te.yield [[V0]], [[V1]] : i32, f32
// BEST-NEXT: }
// BEST-NEXT: }
// BEST-NEXT: lw_loop.for i1 in 4 {
// BEST-NEXT: lw_loop.for k in 11 {
// BEST-NEXT: lw_loop.block best (i in 7 = i0 * 4 + i1, reduce k in 11 = k) where (6 - i0 * 4 - i1 >= 0) writes %P[i] : memref<7xi32>, %V[i] : memref<7xf32> custom [-1 : i32, -1.000000e+30 : f32] no_init {
// BEST-NEXT: %p = lw_te.index k : i32
// BEST-NEXT: %v = lw_loop.load %A[i, k] : memref<7x11xf32>
// BEST-NEXT: lw_te.yield %p, %v : i32, f32
// BEST-NEXT: } combine {
// BEST-NEXT: ^bb0(%p0: i32, %v0: f32, %p1: i32, %v1: f32):
// BEST-NEXT: %c = arith.cmpf oge, %v0, %v1 : f32
// BEST-NEXT: %p_1 = arith.select %c, %p0, %p1 : i32
// BEST-NEXT: %v_1 = arith.select %c, %v0, %v1 : f32
// BEST-NEXT: lw_te.yield %p_1, %v_1 : i32, f32
// BEST-NEXT: }
// BEST-NEXT: }
// BEST-NEXT: }
// BEST-NEXT: }

// Loops between the reduce loops are copied with their kinds, tails stay with them.
// LANES: lw_loop.for i0 in 2 unrolled {
// LANES-NEXT: lw_loop.for i1 in 4 vectorized {
// LANES-NEXT: lw_loop.block best_init (i in 7 = i0 * 4 + i1) where (6 - i0 * 4 - i1 >= 0) writes %P[i] : memref<7xi32>, %V[i] : memref<7xf32> {
// LANES: lw_loop.for k in 11 {
// LANES-NEXT: lw_loop.for i0 in 2 unrolled {
// LANES-NEXT: lw_loop.for i1 in 4 vectorized {
// LANES-NEXT: lw_loop.block best (i in 7 = i0 * 4 + i1, reduce k in 11 = k) where (6 - i0 * 4 - i1 >= 0) writes %P[i] : memref<7xi32>, %V[i] : memref<7xf32> custom [-1 : i32, -1.000000e+30 : f32] no_init {

// OUTSIDE: lw-decompose-reduction{block="best" loop="k1"}: initialisation must stand before every reduce loop, 'k0' is around 'k1'
// OUTSIDE-NEXT: try: lw-decompose-reduction{block="best" loop="k0"}
// OUTSIDE: >   lw_loop.for k0 in 3 {

// AGAIN: lw-decompose-reduction{block="best" loop="k"}: block 'best' must be a reduction that initialises itself, its start is a block of its own already
// AGAIN: >     lw_loop.block best (i in 7 = i, reduce k in 11 = k) writes %P[i] : memref<7xi32>, %V[i] : memref<7xf32> custom [-1 : i32, -1.000000e+30 : f32] no_init {

// PLAIN: lw-decompose-reduction{block="best_rf" loop="k"}: block 'best_rf' must be a reduction that initialises itself, it reduces nothing
// PLAIN: >     lw_loop.block best_rf (i in 7 = i, k in 11 = k) writes %P_rf[i, k] : memref<7x11xi32>, %V_rf[i, k] : memref<7x11xf32> {
