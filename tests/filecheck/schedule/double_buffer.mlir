// RUN: xdsl-opt %s -p 'lw-cache-read{block=C buffer=A scope=shared},lw-cache-read{block=C buffer=B scope=shared},lw-compute-at{block=A_shared loop=k0},lw-compute-at{block=B_shared loop=k0},lw-double-buffer{block=A_shared},lw-double-buffer{block=B_shared}' | filecheck %s --check-prefix=BOTH
// RUN: xdsl-opt %s -p 'lw-cache-read{block=C buffer=A scope=shared},lw-cache-read{block=C buffer=B scope=shared},lw-compute-at{block=A_shared loop=k0},lw-compute-at{block=B_shared loop=k0},lw-double-buffer{block=C}' --verify-diagnostics | filecheck %s --check-prefix=COMPUTES
// RUN: xdsl-opt %s -p 'lw-cache-read{block=C buffer=A scope=shared},lw-cache-read{block=C buffer=B scope=shared},lw-compute-at{block=A_shared loop=k0},lw-compute-at{block=B_shared loop=k0},lw-double-buffer{block=A_shared},lw-double-buffer{block=A_shared}' --verify-diagnostics | filecheck %s --check-prefix=AGAIN
// RUN: xdsl-opt %s -p 'lw-cache-read{block=C buffer=A scope=shared},lw-double-buffer{block=A_shared}' --verify-diagnostics | filecheck %s --check-prefix=FAR
// RUN: xdsl-opt %s -p 'lw-cache-read{block=C buffer=A scope=shared},lw-compute-at{block=A_shared loop=k0},lw-pipeline{block=C loop=k0 stages=3},lw-cache-read{block=C buffer=B},lw-compute-at{block=B_local loop=k0},lw-double-buffer{block=B_local}' --verify-diagnostics | filecheck %s --check-prefix=OTHER

func.func @mm(%A: memref<6x12xf32> {lw.name = "A"}, %B: memref<12x8xf32> {lw.name = "B"}, %C: memref<6x8xf32> {lw.name = "C", lw.output}) {
  lw_loop.for i in 6 {
    lw_loop.for k0 in 4 {
      lw_loop.for k1 in 3 {
        lw_loop.for j in 8 {
          lw_loop.block C (i in 6 = i, j in 8 = j, reduce k in 12 = k0 * 3 + k1) writes %C[i, j] : memref<6x8xf32> add {
            %a = lw_loop.load %A[i, k] : memref<6x12xf32>
            %b = lw_loop.load %B[k, j] : memref<12x8xf32>
            %m = arith.mulf %a, %b : f32
            lw_te.yield %m : f32
          }
        }
      }
    }
  }
  func.return
}

// BOTH: %A_shared = lw_loop.alloc "A_shared" : memref<2x6x12xf32, "shared">
// BOTH-NEXT: %B_shared = lw_loop.alloc "B_shared" : memref<2x12x8xf32, "shared">
// BOTH-NEXT: lw_loop.for i in 6 {
// BOTH-NEXT: lw_loop.for k0 in 4 annotated {pipeline_stages = 2 : i64} {
// BOTH-NEXT: lw_loop.for ax1 in 3 {
// BOTH-NEXT: lw_loop.block A_shared (ax0 in 6 = i, ax1 in 12 = k0 * 3 + ax1, k0_stage in 2 = k0 mod 2) annotated {pipeline_stages = 2 : i64} writes %A_shared[k0_stage, ax0, ax1] : memref<2x6x12xf32, "shared"> {
// BOTH: lw_loop.for ax0 in 3 {
// BOTH-NEXT: lw_loop.for ax1 in 8 {
// BOTH-NEXT: lw_loop.block B_shared (ax0 in 12 = k0 * 3 + ax0, ax1 in 8 = ax1, k0_stage in 2 = k0 mod 2) annotated {pipeline_stages = 2 : i64} writes %B_shared[k0_stage, ax0, ax1] : memref<2x12x8xf32, "shared"> {
// BOTH: lw_loop.for k1 in 3 {
// BOTH-NEXT: lw_loop.for j in 8 {
// BOTH-NEXT: lw_loop.block C (i in 6 = i, j in 8 = j, reduce k in 12 = k0 * 3 + k1, reduce k0_stage in 2 = k0 mod 2) writes %C[i, j] : memref<6x8xf32> add {

// COMPUTES: lw-double-buffer{block="C"}: all uses of the buffer that 'C' writes must be in one loop; compute_at puts it there
// COMPUTES: >         lw_loop.block C (i in 6 = i, j in 8 = j, reduce k in 12 = k0 * 3 + k1) writes %C[i, j] : memref<6x8xf32> add {

// AGAIN: lw-double-buffer{block="A_shared"}: block 'A_shared' has its stages already
// AGAIN: >       lw_loop.block A_shared (ax0 in 6 = i, ax1 in 12 = k0 * 3 + ax1, k0_stage in 2 = k0 mod 2) annotated {pipeline_stages = 2 : i64} writes %A_shared[k0_stage, ax0, ax1] : memref<2x6x12xf32, "shared"> {

// FAR: lw-double-buffer{block="A_shared"}: all uses of the buffer that 'A_shared' writes must be in one loop; compute_at puts it there
// FAR: >     lw_loop.block A_shared (ax0 in 6 = ax0, ax1 in 12 = ax1) writes %A_shared[ax0, ax1] : memref<6x12xf32, "shared"> {

// OTHER: lw-double-buffer{block="B_local"}: loop 'k0' must not be pipelined yet, it has 3 stages
// OTHER: >   lw_loop.for k0 in 4 annotated {pipeline_stages = 3 : i64} {
