// RUN: xdsl-opt %s -p 'lw-cache-read{block=C buffer=A scope=shared},lw-cache-read{block=C buffer=B scope=shared},lw-compute-at{block=A_shared loop=k0},lw-compute-at{block=B_shared loop=k0},lw-storage-align{block=B_shared axis=0 factor=32 offset=8},lw-pipeline{block=C loop=k0 stages=3}' | filecheck %s --check-prefix=THREE
// RUN: xdsl-opt %s -p 'lw-cache-read{block=C buffer=A scope=shared},lw-cache-read{block=C buffer=B scope=shared},lw-compute-at{block=A_shared loop=k0},lw-compute-at{block=B_shared loop=k0},lw-storage-align{block=B_shared axis=0 factor=32 offset=8},lw-pipeline{block=C loop=k0 stages=3 bulk=1}' | filecheck %s --check-prefix=BULK
// RUN: xdsl-opt %s -p 'lw-cache-read{block=C buffer=A scope=shared},lw-cache-read{block=C buffer=B scope=shared},lw-compute-at{block=A_shared loop=k0},lw-compute-at{block=B_shared loop=k0},lw-storage-align{block=B_shared axis=0 factor=32 offset=8},lw-pipeline{block=C loop=k0 stages=3 registers=1 bulk=1}' --verify-diagnostics | filecheck %s --check-prefix=BOTH
// RUN: xdsl-opt %s -p 'lw-split{block=C loop=i factors=0,2},lw-bind{block=C loop=i1 thread="blockIdx.y"},lw-cache-read{block=C buffer=A scope=shared},lw-cache-read{block=C buffer=B scope=shared},lw-compute-at{block=A_shared loop=k0},lw-compute-at{block=B_shared loop=k0},lw-pipeline{block=C loop=k0 stages=3 bulk=1 cluster="blockIdx.y"}' | filecheck %s --check-prefix=CLUSTER
// RUN: xdsl-opt %s -p 'lw-cache-read{block=C buffer=A scope=shared},lw-cache-read{block=C buffer=B scope=shared},lw-compute-at{block=A_shared loop=k0},lw-compute-at{block=B_shared loop=k0},lw-pipeline{block=C loop=k0 stages=3 bulk=1 cluster="blockIdx.y"}' --verify-diagnostics | filecheck %s --check-prefix=APART
// RUN: xdsl-opt %s -p 'lw-pipeline{block=C loop=k0 stages=2}' --verify-diagnostics | filecheck %s --check-prefix=NOTHING
// RUN: xdsl-opt %s -p 'lw-cache-read{block=C buffer=A scope=shared},lw-cache-read{block=C buffer=B scope=shared},lw-compute-at{block=A_shared loop=k0},lw-compute-at{block=B_shared loop=k0},lw-pipeline{block=C loop=i stages=2}' --verify-diagnostics | filecheck %s --check-prefix=OUTER
// RUN: xdsl-opt %s -p 'lw-cache-read{block=C buffer=A scope=shared},lw-cache-read{block=C buffer=B scope=shared},lw-compute-at{block=A_shared loop=k0},lw-compute-at{block=B_shared loop=k0},lw-pipeline{block=C loop=k0 stages=5}' --verify-diagnostics | filecheck %s --check-prefix=STAGES
// RUN: xdsl-opt %s -p 'lw-cache-read{block=C buffer=A scope=shared},lw-cache-read{block=C buffer=B scope=shared},lw-compute-at{block=A_shared loop=k0},lw-compute-at{block=B_shared loop=k0},lw-pipeline{block=C loop=k0 stages=2},lw-pipeline{block=C loop=k0 stages=2}' --verify-diagnostics | filecheck %s --check-prefix=TWICE
// RUN: xdsl-opt %s -p 'lw-cache-read{block=C buffer=A scope=shared},lw-cache-read{block=C buffer=B scope=shared},lw-compute-at{block=A_shared loop=k0},lw-compute-at{block=B_shared loop=k0},lw-unroll{block=C loop=k0},lw-pipeline{block=C loop=k0 stages=2}' --verify-diagnostics | filecheck %s --check-prefix=MARKED

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

// THREE: %A_shared = lw_loop.alloc "A_shared" : memref<3x6x12xf32, "shared">
// THREE-NEXT: %B_shared = lw_loop.alloc "B_shared" align [1, 32, 8] : memref<3x12x8xf32, "shared">
// THREE-NEXT: lw_loop.for i in 6 {
// THREE-NEXT: lw_loop.for k0 in 4 annotated {pipeline_stages = 3 : i64} {
// THREE-NEXT: lw_loop.for ax1 in 3 {
// THREE-NEXT: lw_loop.block A_shared (ax0 in 6 = i, ax1 in 12 = k0 * 3 + ax1, k0_stage in 3 = k0 mod 3) annotated {pipeline_stages = 3 : i64} writes %A_shared[k0_stage, ax0, ax1] : memref<3x6x12xf32, "shared"> {
// THREE-NEXT: [[V0:%[0-9]+]] = lw_loop.load %A[ax0, ax1] : memref<6x12xf32>
// THREE-NEXT: lw_te.yield [[V0]] : f32
// THREE-NEXT: }
// THREE-NEXT: }
// THREE-NEXT: lw_loop.for ax0 in 3 {
// THREE-NEXT: lw_loop.for ax1 in 8 {
// THREE-NEXT: lw_loop.block B_shared (ax0 in 12 = k0 * 3 + ax0, ax1 in 8 = ax1, k0_stage in 3 = k0 mod 3) annotated {pipeline_stages = 3 : i64} writes %B_shared[k0_stage, ax0, ax1] : memref<3x12x8xf32, "shared"> {
// THREE-NEXT: [[V1:%[0-9]+]] = lw_loop.load %B[ax0, ax1] : memref<12x8xf32>
// THREE-NEXT: lw_te.yield [[V1]] : f32
// THREE-NEXT: }
// THREE-NEXT: }
// THREE-NEXT: }
// THREE-NEXT: lw_loop.for k1 in 3 {
// THREE-NEXT: lw_loop.for j in 8 {
// THREE-NEXT: lw_loop.block C (i in 6 = i, j in 8 = j, reduce k in 12 = k0 * 3 + k1, reduce k0_stage in 3 = k0 mod 3) writes %C[i, j] : memref<6x8xf32> add {
// THREE-NEXT: %a = lw_loop.load %A_shared[k0_stage, i, k] : memref<3x6x12xf32, "shared">
// THREE-NEXT: %b = lw_loop.load %B_shared[k0_stage, k, j] : memref<3x12x8xf32, "shared">
// THREE-NEXT: %m = arith.mulf %a, %b : f32
// THREE-NEXT: lw_te.yield %m : f32
// THREE-NEXT: }
// THREE-NEXT: }
// THREE-NEXT: }
// THREE-NEXT: }
// THREE-NEXT: }

// NOTHING: lw-pipeline{block="C" loop="k0" stages=2}: loop 'k0' must hold a copy into a buffer that one iteration of it fills and uses; cache_read and compute_at make one
// NOTHING: >   lw_loop.for k0 in 4 {

// The buffers are used in one iteration of k0, not of i.
// OUTER: lw-pipeline{block="C" loop="i" stages=2}: loop 'i' must hold a copy into a buffer that one iteration of it fills and uses; cache_read and compute_at make one
// OUTER: > lw_loop.for i in 6 {

// STAGES: lw-pipeline{block="C" loop="k0" stages=5}: stages must be from 1 to the extent of 'k0', got 5, extent 4
// STAGES: >   lw_loop.for k0 in 4 {

// TWICE: lw-pipeline{block="C" loop="k0" stages=2}: loop 'k0' must not be pipelined yet, it has 2 stages
// TWICE: >   lw_loop.for k0 in 4 annotated {pipeline_stages = 2 : i64} {

// MARKED: lw-pipeline{block="C" loop="k0" stages=2}: loop 'k0' must be serial, it is unrolled
// MARKED: >   lw_loop.for k0 in 4 unrolled {

// BULK: lw_loop.for k0 in 4 annotated {pipeline_stages = 3 : i64} {
// BULK: annotated {pipeline_stages = 3 : i64, pipeline_bulk}

// BOTH: bulk must be 0, or 1 where registers is 0, got 1

// CLUSTER: lw_loop.for k0 in 4 annotated {pipeline_stages = 3 : i64, pipeline_cluster = "blockIdx.y"} {

// APART: a cluster takes bulk=1, and loops around bound to its axes, got 'blockIdx.y'; loops around are bound to no axis of blocks
