// RUN: xdsl-opt %s | filecheck %s
// RUN: xdsl-opt %s -p lw-lower-te-to-loop | filecheck %s --check-prefix=LOOP
// RUN: xdsl-opt %s -p 'lw-lower-te-to-loop,lw-compute-at{block=doubled loop=s}' | filecheck %s --check-prefix=WHOLE
// RUN: xdsl-opt %s -p 'lw-lower-te-to-loop,lw-reverse-compute-inline{block=scaled}' | filecheck %s --check-prefix=BEHIND
// RUN: xdsl-opt %s -p 'lw-lower-te-to-loop,lw-compute-inline{block=start}' | filecheck %s --check-prefix=PLACES
// RUN: xdsl-opt %s -p 'lw-lower-te-to-loop,lw-cache-read{block=found buffer=doubled}' | filecheck %s --check-prefix=CACHE
// RUN: xdsl-opt %s -p 'lw-lower-te-to-loop,lw-compute-inline{block=doubled}' --verify-diagnostics | filecheck %s --check-prefix=TABLE
// RUN: xdsl-opt %s -p 'lw-lower-te-to-loop,lw-cache-read{block=found buffer=doubled layout="s","j"}' --verify-diagnostics | filecheck %s --check-prefix=PANEL

// Reads where data say: what the dialects print parses back, and what primitives know of it is that it is any row.

func.func @embedding(%table: tensor<50x24xf32> {lw.name = "table"}, %ids: tensor<7xi64> {lw.name = "ids"}) -> tensor<7x24xf32> {
  %doubled = lw_te.compute "doubled" [i = 50, j = 24] -> tensor<50x24xf32> {
    %0 = lw_te.read %table[i, j] : tensor<50x24xf32>
    %1 = arith.addf %0, %0 : f32
    lw_te.yield %1 : f32
  }
  %start = lw_te.compute "start" [s = 7] -> tensor<7xi64> {
    %0 = lw_te.read %ids[s] : tensor<7xi64>
    %1 = arith.constant 1 : i64
    %2 = arith.subi %0, %1 : i64
    lw_te.yield %2 : i64
  }
  %found = lw_te.compute "found" [s = 7, j = 24] -> tensor<7x24xf32> {
    %0 = lw_te.read %start[s] : tensor<7xi64>
    %1 = lw_te.read %doubled[?0(s) of 50, j] at (%0 : i64) : tensor<50x24xf32>
    lw_te.yield %1 : f32
  }
  %scaled = lw_te.compute "scaled" [s = 7, j = 24] -> tensor<7x24xf32> {
    %0 = lw_te.read %found[s, j] : tensor<7x24xf32>
    %1 = arith.negf %0 : f32
    lw_te.yield %1 : f32
  }
  func.return %scaled : tensor<7x24xf32>
}

// CHECK: %found = lw_te.compute "found" [s = 7, j = 24] -> tensor<7x24xf32> {
// CHECK-NEXT: %[[P:[0-9]+]] = lw_te.read %start[s] : tensor<7xi64>
// CHECK-NEXT: %[[V:[0-9]+]] = lw_te.read %doubled[?0(s) of 50, j] at (%[[P]] : i64) : tensor<50x24xf32>
// CHECK-NEXT: lw_te.yield %[[V]] : f32

// LOOP: lw_loop.block found (s in 7 = s, j in 24 = j) writes %found[s, j] : memref<7x24xf32> {
// LOOP-NEXT: %[[P:[0-9]+]] = lw_loop.load %start[s] : memref<7xi64>
// LOOP-NEXT: %[[V:[0-9]+]] = lw_loop.load %doubled[?0(s) of 50, j] at (%[[P]] : i64) : memref<50x24xf32>

// All rows are computed for each place, as any of them may be read.
// WHOLE: lw_loop.block start
// WHOLE: lw_loop.for s in 7 {
// WHOLE-NEXT: lw_loop.for i in 50 {
// WHOLE-NEXT: lw_loop.for j in 24 {
// WHOLE-NEXT: lw_loop.block doubled (i in 50 = i, j in 24 = j) writes %doubled[i, j] : memref<50x24xf32> {

// BEHIND: lw_loop.block found (s in 7 = s, j in 24 = j) writes %scaled[s, j] : memref<7x24xf32> {
// BEHIND-NEXT: %[[P:[0-9]+]] = lw_loop.load %start[s] : memref<7xi64>
// BEHIND-NEXT: %[[V:[0-9]+]] = lw_loop.load %doubled[?0(s) of 50, j] at (%[[P]] : i64) : memref<50x24xf32>
// BEHIND-NEXT: %[[N:[0-9]+]] = arith.negf %[[V]] : f32

// PLACES: lw_loop.block found (s in 7 = s, j in 24 = j) writes %found[s, j] : memref<7x24xf32> {
// PLACES-NEXT: %[[L:[0-9]+]] = lw_loop.load %ids[s] : memref<7xi64>
// PLACES-NEXT: %[[C:[0-9]+]] = arith.constant 1 : i64
// PLACES-NEXT: %[[P:[0-9]+]] = arith.subi %[[L]], %[[C]] : i64
// PLACES-NEXT: lw_loop.load %doubled[?0(s) of 50, j] at (%[[P]] : i64) : memref<50x24xf32>

// CACHE: lw_loop.block doubled_local (ax0 in 50 = ax0, ax1 in 24 = ax1) writes %doubled_local[ax0, ax1]
// CACHE: lw_loop.load %doubled_local[?0(s) of 50, j] at (%{{[0-9]+}} : i64) : memref<50x24xf32, "local">

// TABLE: lw-compute-inline{block="doubled"}: 'found' must read 'doubled' where its iterators say, not where data does
// TABLE: > lw_loop.block found

// PANEL: lw-cache-read{block="found" buffer="doubled" layout="s","j"}: with a layout, 'doubled' must be read where the iterators of 'found' say, not where data does; without one, all of it is copied
// PANEL: > lw_loop.block found
