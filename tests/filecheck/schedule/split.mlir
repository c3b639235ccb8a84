// RUN: xdsl-opt %s -p 'lw-split{block=S loop=i factors=3,4}' | filecheck %s --check-prefix=EXACT
// RUN: xdsl-opt %s -p 'lw-split{block=S loop=i factors=0,5},lw-split{block=S loop=k factors=2,0,2}' | filecheck %s --check-prefix=TAIL
// RUN: xdsl-opt %s -p 'lw-split{block=S loop=k factors=4,4}' | filecheck %s --check-prefix=BEYOND
// RUN: xdsl-opt %s -p 'lw-split{block=T loop=i factors=0,5}' | filecheck %s --check-prefix=TAKEN
// RUN: xdsl-opt %s -p 'lw-split{block=U loop=i factors=0,2}' | filecheck %s --check-prefix=BOTH
// RUN: xdsl-opt %s -p 'lw-split{block=S loop=i factors=2,4}' --verify-diagnostics | filecheck %s --check-prefix=COVER
// RUN: xdsl-opt %s -p 'lw-split{block=S loop=i factors=0,0}' --verify-diagnostics | filecheck %s --check-prefix=INFERRED
// RUN: xdsl-opt %s -p 'lw-split{block=S loop=i factors=-2,6}' --verify-diagnostics | filecheck %s --check-prefix=SIGN
// RUN: xdsl-opt %s -p 'lw-split{block=S loop=i factors=12}' --verify-diagnostics | filecheck %s --check-prefix=ONE
// RUN: xdsl-opt %s -p 'lw-split{block=S loop=j factors=0,2}' --verify-diagnostics | filecheck %s --check-prefix=LOOP
// RUN: xdsl-opt %s -p 'lw-split{block=Z loop=i factors=0,2}' --verify-diagnostics | filecheck %s --check-prefix=BLOCK
// RUN: xdsl-opt %s -p 'lw-parallel{block=S loop=i},lw-split{block=S loop=i factors=0,2}' --verify-diagnostics | filecheck %s --check-prefix=KIND

func.func @sum(%A: memref<12x7xf32> {lw.name = "A"}, %S: memref<12xf32> {lw.name = "S", lw.output}) {
  lw_loop.for i in 12 {
    lw_loop.for k in 7 {
      lw_loop.block S (i in 12 = i, reduce k in 7 = k) writes %S[i] : memref<12xf32> add {
        %a = lw_loop.load %A[i, k] : memref<12x7xf32>
        lw_te.yield %a : f32
      }
    }
  }
  func.return
}

// EXACT: lw_loop.for i0 in 3 {
// EXACT-NEXT: lw_loop.for i1 in 4 {
// EXACT-NEXT: lw_loop.for k in 7 {
// EXACT-NEXT: lw_loop.block S (i in 12 = i0 * 4 + i1, reduce k in 7 = k) writes %S[i] : memref<12xf32> add {
// EXACT-NEXT: lw_loop.load %A[i, k] : memref<12x7xf32>

// The factor 0 is inferred, rounding up; what is too much is left out by the predicate.
// TAIL: lw_loop.for i0 in 3 {
// TAIL-NEXT: lw_loop.for i1 in 5 {
// TAIL-NEXT: lw_loop.for k0 in 2 {
// TAIL-NEXT: lw_loop.for k1 in 2 {
// TAIL-NEXT: lw_loop.for k2 in 2 {
// TAIL-NEXT: lw_loop.block S (i in 12 = i0 * 5 + i1, reduce k in 7 = k0 * 4 + k1 * 2 + k2) where (11 - i0 * 5 - i1 >= 0, 6 - k0 * 4 - k1 * 2 - k2 >= 0) writes

// BEYOND: lw_loop.for k0 in 4 {
// BEYOND-NEXT: lw_loop.for k1 in 4 {
// BEYOND-NEXT: lw_loop.block S (i in 12 = i, reduce k in 7 = k0 * 4 + k1) where (6 - k0 * 4 - k1 >= 0) writes

// COVER: lw-split{block="S" loop="i" factors=2,4}: factors must cover the extent of 'i', got 8 for extent 12
// COVER-NEXT: try: lw-split{block="S" loop="i" factors=0,4}
// COVER: > lw_loop.for i in 12 {

// INFERRED: lw-split{block="S" loop="i" factors=0,0}: factors must be positive, and at most one 0 (inferred), got 0,0

// SIGN: lw-split{block="S" loop="i" factors=-2,6}: factors must be positive, and at most one 0 (inferred), got -2,6

// ONE: lw-split{block="S" loop="i" factors=12}: at least two factors are needed, got 1

// LOOP: lw-split{block="S" loop="j" factors=0,2}: block 'S' is in no loop 'j'; loops around it: i, k
// LOOP: > lw_loop.block S

// BLOCK: lw-split{block="Z" loop="i" factors=0,2}: no block is called 'Z'; blocks here: S, T, U

// KIND: lw-split{block="S" loop="i" factors=0,2}: loop 'i' must be serial, it is parallel; do this step before marking the loop

// A child's name is taken by another loop; two blocks are below; the tail of an earlier split stays.
func.func @pair(%A: memref<12xf32> {lw.name = "A"}, %T: memref<12x2xf32> {lw.name = "T", lw.output}, %U: memref<12x2xf32> {lw.name = "U", lw.output}) {
  lw_loop.for i0 in 2 {
    lw_loop.for i in 9 {
      lw_loop.block T (t in 12 = i, u in 2 = i0) where (11 - i >= 0) writes %T[t, u] : memref<12x2xf32> {
        %a = lw_loop.load %A[t] : memref<12xf32>
        lw_te.yield %a : f32
      }
      lw_loop.block U (t in 12 = i + 3, u in 2 = i0) writes %U[t, u] : memref<12x2xf32> {
        %a = lw_loop.load %A[t] : memref<12xf32>
        lw_te.yield %a : f32
      }
    }
  }
  func.return
}

// TAKEN: lw_loop.for i0 in 2 {
// TAKEN-NEXT: lw_loop.for [[O:i[_0-9]*]] in 2 {
// TAKEN-NEXT: lw_loop.for [[I:i1]] in 5 {
// TAKEN-NEXT: lw_loop.block T (t in 12 = [[O]] * 5 + [[I]], u in 2 = i0) where (11 - [[O]] * 5 - [[I]] >= 0, 8 - [[O]] * 5 - [[I]] >= 0) writes

// BOTH: lw_loop.for i0 in 2 {
// BOTH-NEXT: lw_loop.for [[O:i[_0-9]*]] in 5 {
// BOTH-NEXT: lw_loop.for [[I:i1]] in 2 {
// BOTH: lw_loop.block U (t in 12 = [[O]] * 2 + [[I]] + 3, u in 2 = i0) where (8 - [[O]] * 2 - [[I]] >= 0) writes
