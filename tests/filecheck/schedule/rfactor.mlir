// RUN: xdsl-opt %s -p 'lw-split{block=best loop=k factors=3,4},lw-rfactor{block=best loop=k1}' | filecheck %s --check-prefix=BEST
// RUN: xdsl-opt %s -p 'lw-split{block=best loop=k factors=6,4},lw-rfactor{block=best loop=k0}' | filecheck %s --check-prefix=MASKED
// RUN: xdsl-opt %s -p 'lw-rfactor{block=best loop=k axis=0}' | filecheck %s --check-prefix=ONLY
// RUN: xdsl-opt %s -p 'lw-rfactor{block=best loop=i}' --verify-diagnostics | filecheck %s --check-prefix=SPATIAL
// RUN: xdsl-opt %s -p 'lw-rfactor{block=best loop=k},lw-rfactor{block=best_rf loop=k}' --verify-diagnostics | filecheck %s --check-prefix=AGAIN
// RUN: xdsl-opt %s -p 'lw-decompose-reduction{block=best loop=k},lw-rfactor{block=best loop=k}' --verify-diagnostics | filecheck %s --check-prefix=STARTED
// RUN: xdsl-opt %s -p 'lw-rfactor{block=best loop=k axis=2}' --verify-diagnostics | filecheck %s --check-prefix=AXIS

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

// Any combiner; the innermost loop becomes the last dimension.
// BEST: %P_rf = lw_loop.alloc "P_rf" : memref<7x4xi32>
// BEST-NEXT: %V_rf = lw_loop.alloc "V_rf" : memref<7x4xf32>
// BEST-NEXT: lw_loop.for i in 7 {
// BEST-NEXT: lw_loop.for k0 in 3 {
// BEST-NEXT: lw_loop.for k1 in 4 {
// BEST-NEXT: lw_loop.block best_rf (i in 7 = i, k1 in 4 = k1, reduce k0 in 3 = k0) where (10 - k0 * 4 - k1 >= 0) writes %P_rf[i, k1] : memref<7x4xi32>, %V_rf[i, k1] : memref<7x4xf32> custom [-1 : i32, -1.000000e+30 : f32] {
// BEST-NEXT: %p = lw_te.index k0 * 4 + k1 : i32
// BEST-NEXT: %v = lw_loop.load %A[i, k0 * 4 + k1] : memref<7x11xf32>
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
// BEST-NEXT: lw_loop.for k1 in 4 {
// BEST-NEXT: lw_loop.block best (i in 7 = i, reduce k1 in 4 = k1) writes %P[i] : memref<7xi32>, %V[i] : memref<7xf32> custom [-1 : i32, -1.000000e+30 : f32] {
// BEST-NEXT: [[V0:%[0-9]+]] = lw_loop.load %P_rf[i, k1] : memref<7x4xi32>
// BEST-NEXT: [[V1:%[0-9]+]] = lw_loop.load %V_rf[i, k1] : memref<7x4xf32>
// BEST-NEXT: lw_te.yield [[V0]], [[V1]] : i32, f32
// BEST-NEXT: } combine {
// BEST-NEXT: ^bb0(%p0_1: i32, %v0_1: f32, %p1_1: i32, %v1_1: f32):
// BEST-NEXT: %c_1 = arith.cmpf oge, %v0_1, %v1_1 : f32
// BEST-NEXT: %p_2 = arith.select %c_1, %p0_1, %p1_1 : i32
// BEST-NEXT: %v_2 = arith.select %c_1, %v0_1, %v1_1 : f32
// BEST-NEXT: lw_te.yield %p_2, %v_2 : i32, f32
// BEST-NEXT: }
// BEST-NEXT: }
// BEST-NEXT: }

// Partial results that no instance reaches hold the identity; an outer loop becomes the first dimension.
// MASKED: %P_rf = lw_loop.alloc "P_rf" : memref<6x7xi32>
// MASKED-NEXT: %V_rf = lw_loop.alloc "V_rf" : memref<6x7xf32>
// MASKED-NEXT: lw_loop.for i in 7 {
// MASKED-NEXT: lw_loop.for k0 in 6 {
// MASKED-NEXT: lw_loop.for k1 in 4 {
// MASKED-NEXT: lw_loop.block best_rf (i in 7 = i, k0 in 6 = k0, reduce k1 in 4 = k1) writes %P_rf[k0, i] : memref<6x7xi32>, %V_rf[k0, i] : memref<6x7xf32> custom [-1 : i32, -1.000000e+30 : f32] {
// MASKED-NEXT: %p = lw_te.index k0 * 4 + k1 : i32
// MASKED-NEXT: %v = lw_loop.load %A[i, k0 * 4 + k1] where (10 - k0 * 4 - k1 >= 0) : memref<7x11xf32>
// MASKED-NEXT: [[V0:%[0-9]+]] = lw_te.predicate (10 - k0 * 4 - k1 >= 0)
// MASKED-NEXT: [[V1:%[0-9]+]] = arith.constant -1 : i32
// MASKED-NEXT: [[V2:%[0-9]+]] = arith.constant -1.000000e+30 : f32
// MASKED-NEXT: [[V3:%[0-9]+]] = arith.select [[V0]], %p, [[V1]] : i32
// MASKED-NEXT: [[V4:%[0-9]+]] = arith.select [[V0]], %v, [[V2]] : f32
// MASKED-NEXT: lw_te.yield [[V3]], [[V4]] : i32, f32
// MASKED-NEXT: } combine {
// MASKED-NEXT: ^bb0(%p0: i32, %v0: f32, %p1: i32, %v1: f32):
// MASKED-NEXT: %c = arith.cmpf oge, %v0, %v1 : f32
// MASKED-NEXT: %p_1 = arith.select %c, %p0, %p1 : i32
// MASKED-NEXT: %v_1 = arith.select %c, %v0, %v1 : f32
// MASKED-NEXT: lw_te.yield %p_1, %v_1 : i32, f32
// MASKED-NEXT: }
// MASKED-NEXT: }
// MASKED-NEXT: }
// MASKED-NEXT: lw_loop.for k0 in 6 {
// MASKED-NEXT: lw_loop.block best (i in 7 = i, reduce k0 in 6 = k0) writes %P[i] : memref<7xi32>, %V[i] : memref<7xf32> custom [-1 : i32, -1.000000e+30 : f32] {
// MASKED-NEXT: [[V5:%[0-9]+]] = lw_loop.load %P_rf[k0, i] : memref<6x7xi32>
// MASKED-NEXT: [[V6:%[0-9]+]] = lw_loop.load %V_rf[k0, i] : memref<6x7xf32>
// MASKED-NEXT: lw_te.yield [[V5]], [[V6]] : i32, f32
// MASKED-NEXT: } combine {
// MASKED-NEXT: ^bb0(%p0_1: i32, %v0_1: f32, %p1_1: i32, %v1_1: f32):
// MASKED-NEXT: %c_1 = arith.cmpf oge, %v0_1, %v1_1 : f32
// MASKED-NEXT: %p_2 = arith.select %c_1, %p0_1, %p1_1 : i32
// MASKED-NEXT: %v_2 = arith.select %c_1, %v0_1, %v1_1 : f32
// MASKED-NEXT: lw_te.yield %p_2, %v_2 : i32, f32
// MASKED-NEXT: }
// MASKED-NEXT: }
// MASKED-NEXT: }

// Nothing is left to reduce in the partial results, which are then no reduction.
// ONLY: %P_rf = lw_loop.alloc "P_rf" : memref<11x7xi32>
// ONLY-NEXT: %V_rf = lw_loop.alloc "V_rf" : memref<11x7xf32>
// ONLY-NEXT: lw_loop.for i in 7 {
// ONLY-NEXT: lw_loop.for k in 11 {
// ONLY-NEXT: lw_loop.block best_rf (i in 7 = i, k in 11 = k) writes %P_rf[k, i] : memref<11x7xi32>, %V_rf[k, i] : memref<11x7xf32> {
// ONLY: lw_loop.for k in 11 {
// ONLY-NEXT: lw_loop.block best (i in 7 = i, reduce k in 11 = k) writes %P[i] : memref<7xi32>, %V[i] : memref<7xf32> custom [-1 : i32, -1.000000e+30 : f32] {

// SPATIAL: lw-rfactor{block="best" loop="i"}: the loop must be one that 'best' reduces over, 'i' is not
// SPATIAL-NEXT: try: lw-rfactor{block="best" loop="k"}
// SPATIAL: > lw_loop.for i in 7 {

// AGAIN: lw-rfactor{block="best_rf" loop="k"}: block 'best_rf' must be a reduction that initialises itself, it reduces nothing
// AGAIN: >     lw_loop.block best_rf (i in 7 = i, k in 11 = k) writes %P_rf[i, k] : memref<7x11xi32>, %V_rf[i, k] : memref<7x11xf32> {

// STARTED: lw-rfactor{block="best" loop="k"}: block 'best' must be a reduction that initialises itself, its start is a block of its own; rfactor before decompose_reduction
// STARTED: >     lw_loop.block best (i in 7 = i, reduce k in 11 = k) writes %P[i] : memref<7xi32>, %V[i] : memref<7xf32> custom [-1 : i32, -1.000000e+30 : f32] no_init {

// AXIS: lw-rfactor{block="best" loop="k" axis=2}: axis must be from -2 to 1 for a result with 1 dimensions, got 2
// AXIS-NEXT: try: lw-rfactor{block="best" loop="k"}
// AXIS: >     lw_loop.block best (i in 7 = i, reduce k in 11 = k) writes %P[i] : memref<7xi32>, %V[i] : memref<7xf32> custom [-1 : i32, -1.000000e+30 : f32] {
