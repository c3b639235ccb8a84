// RUN: xdsl-opt %s -p 'lw-split{block=C loop=j factors=3,3},lw-unroll{block=C loop=j1}' | filecheck %s --check-prefix=TAIL
// RUN: xdsl-opt %s -p 'lw-unroll{block=C loop=j},lw-unroll{block=C loop=j}' --verify-diagnostics | filecheck %s --check-prefix=TWICE
// RUN: xdsl-opt %s -p 'lw-unroll{block=C loop=q}' --verify-diagnostics | filecheck %s --check-prefix=NONE
// RUN: xdsl-opt %s -p 'lw-cache-read{block=C buffer=A},lw-compute-at{block=A_local loop=k0},lw-double-buffer{block=A_local},lw-unroll{block=C loop=k0}' --verify-diagnostics | filecheck %s --check-prefix=PIPELINED

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

// TAIL: lw_loop.for i in 6 {
// TAIL-NEXT: lw_loop.for k0 in 4 {
// TAIL-NEXT: lw_loop.for k1 in 3 {
// TAIL-NEXT: lw_loop.for j0 in 3 {
// TAIL-NEXT: lw_loop.for j1 in 3 unrolled {
// TAIL-NEXT: lw_loop.block C (i in 6 = i, j in 8 = j0 * 3 + j1, reduce k in 12 = k0 * 3 + k1) where (7 - j0 * 3 - j1 >= 0) writes %C[i, j] : memref<6x8xf32> add {

// TWICE: lw-unroll{block="C" loop="j"}: loop 'j' must be serial to be marked, it is unrolled
// TWICE: >       lw_loop.for j in 8 unrolled {

// NONE: lw-unroll{block="C" loop="q"}: block 'C' is in no loop 'q'; loops around it: i, k0, k1, j
// NONE: >         lw_loop.block C (i in 6 = i, j in 8 = j, reduce k in 12 = k0 * 3 + k1) writes %C[i, j] : memref<6x8xf32> add {

// PIPELINED: lw-unroll{block="C" loop="k0"}: loop 'k0' is pipelined, so its iterations keep their order
// PIPELINED: >   lw_loop.for k0 in 4 annotated {pipeline_stages = 2 : i64} {
