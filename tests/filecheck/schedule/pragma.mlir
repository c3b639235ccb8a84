// RUN: xdsl-opt %s -p 'lw-pragma{block=D loop=i auto_unroll_max_step=64 unroll_explicit=1},lw-parallel{block=D loop=i}' | filecheck %s --check-prefix=BOTH
// RUN: xdsl-opt %s -p 'lw-pragma{block=D loop=j auto_unroll_max_step=64 unroll_explicit=0},lw-pragma{block=D loop=j auto_unroll_max_step=16}' | filecheck %s --check-prefix=ONE
// RUN: xdsl-opt %s -p 'lw-pragma{block=D loop=i}' --verify-diagnostics | filecheck %s --check-prefix=NEITHER
// RUN: xdsl-opt %s -p 'lw-pragma{block=D loop=i auto_unroll_max_step=-1}' --verify-diagnostics | filecheck %s --check-prefix=NEGATIVE
// RUN: xdsl-opt %s -p 'lw-pragma{block=D loop=i unroll_explicit=2}' --verify-diagnostics | filecheck %s --check-prefix=FLAG
// RUN: xdsl-opt %s -p 'lw-pragma{block=D loop=i blocks_per_sm=2}' --verify-diagnostics | filecheck %s --check-prefix=UNBOUND

func.func @mm(%A: memref<6x10xf32> {lw.name = "A"}, %B: memref<10x8xf32> {lw.name = "B"}, %D: memref<6x8xf32> {lw.name = "D", lw.output}) {
  %C = lw_loop.alloc "C" : memref<6x8xf32>
  lw_loop.for i in 6 {
    lw_loop.for j in 8 {
      lw_loop.for k in 10 {
        lw_loop.block C (i in 6 = i, j in 8 = j, reduce k in 10 = k) writes %C[i, j] : memref<6x8xf32> add {
          %a = lw_loop.load %A[i, k] : memref<6x10xf32>
          %b = lw_loop.load %B[k, j] : memref<10x8xf32>
          %m = arith.mulf %a, %b : f32
          lw_te.yield %m : f32
        }
      }
    }
  }
  lw_loop.for i in 6 {
    lw_loop.for j in 8 {
      lw_loop.block D (i in 6 = i, j in 8 = j) writes %D[i, j] : memref<6x8xf32> {
        %c = lw_loop.load %C[i, j] : memref<6x8xf32>
        %e = math.exp %c : f32
        lw_te.yield %e : f32
      }
    }
  }
  func.return
}

// BOTH: %C = lw_loop.alloc "C" : memref<6x8xf32>
// BOTH-NEXT: lw_loop.for i in 6 {
// BOTH-NEXT: lw_loop.for j in 8 {
// BOTH-NEXT: lw_loop.for k in 10 {
// BOTH-NEXT: lw_loop.block C (i in 6 = i, j in 8 = j, reduce k in 10 = k) writes %C[i, j] : memref<6x8xf32> add {
// BOTH: lw_loop.for i in 6 parallel annotated {auto_unroll_max_step = 64 : i64, unroll_explicit = 1 : i64} {
// BOTH-NEXT: lw_loop.for j in 8 {
// BOTH-NEXT: lw_loop.block D (i in 6 = i, j in 8 = j) writes %D[i, j] : memref<6x8xf32> {

// A second pragma changes what it names only.
// ONE: %C = lw_loop.alloc "C" : memref<6x8xf32>
// ONE-NEXT: lw_loop.for i in 6 {
// ONE-NEXT: lw_loop.for j in 8 {
// ONE-NEXT: lw_loop.for k in 10 {
// ONE-NEXT: lw_loop.block C (i in 6 = i, j in 8 = j, reduce k in 10 = k) writes %C[i, j] : memref<6x8xf32> add {
// ONE: lw_loop.for i in 6 {
// ONE-NEXT: lw_loop.for j in 8 annotated {auto_unroll_max_step = 16 : i64, unroll_explicit = 0 : i64} {
// ONE-NEXT: lw_loop.block D (i in 6 = i, j in 8 = j) writes %D[i, j] : memref<6x8xf32> {

// NEITHER: lw-pragma{block="D" loop="i"}: auto_unroll_max_step, unroll_explicit or blocks_per_sm must be given, got none
// NEITHER-NEXT: try: lw-pragma{block="D" loop="i" auto_unroll_max_step=64}
// NEITHER: > lw_loop.for i in 6 {

// NEGATIVE: lw-pragma{block="D" loop="i" auto_unroll_max_step=-1}: auto_unroll_max_step must be at least 0, got -1
// NEGATIVE: > lw_loop.for i in 6 {

// FLAG: lw-pragma{block="D" loop="i" unroll_explicit=2}: unroll_explicit must be 0 or 1, got 2
// FLAG: > lw_loop.for i in 6 {

// UNBOUND: blocks_per_sm is for a loop bound to blockIdx, 'i' is serial
// UNBOUND: > lw_loop.for i in 6 {
