// RUN: xdsl-opt %s -p 'lw-fuse{block=C loops=i,j}' | filecheck %s --check-prefix=TWO
// RUN: xdsl-opt %s -p 'lw-split{block=C loop=j factors=0,2},lw-fuse{block=C loops=i,j0,j1},lw-split{block=C loop=i_j0_j1 factors=0,5},lw-fuse{block=C loops=k,r}' | filecheck %s --check-prefix=THREE
// RUN: xdsl-opt %s -p 'lw-split{block=C loop=j factors=3,1},lw-fuse{block=C loops=j0,j1}' | filecheck %s --check-prefix=BACK
// RUN: xdsl-opt %s -p 'lw-fuse{block=D loops=a,b}' | filecheck %s --check-prefix=ONES
// RUN: xdsl-opt %s -p 'lw-split{block=C loop=j factors=0,1},lw-fuse{block=C loops=i,j0,j1},lw-split{block=C loop=i_j0_j1 factors=0,8}' | filecheck %s --check-prefix=INNER
// RUN: xdsl-opt %s -p 'lw-split{block=C loop=i factors=1,0},lw-fuse{block=C loops=i0,i1},lw-split{block=C loop=i0_i1 factors=0,3}' | filecheck %s --check-prefix=OUTER
// RUN: xdsl-opt %s -p 'lw-fuse{block=G loops=e,f},lw-split{block=G loop=e_f factors=0,8}' | filecheck %s --check-prefix=COLUMN
// RUN: xdsl-opt %s -p 'lw-fuse{block=C loops=j,k}' --verify-diagnostics | filecheck %s --check-prefix=MIXED
// RUN: xdsl-opt %s -p 'lw-fuse{block=C loops=i,k}' --verify-diagnostics | filecheck %s --check-prefix=APART
// RUN: xdsl-opt %s -p 'lw-fuse{block=C loops=j,i}' --verify-diagnostics | filecheck %s --check-prefix=ORDER
// RUN: xdsl-opt %s -p 'lw-fuse{block=E loops=c,d}' --verify-diagnostics | filecheck %s --check-prefix=ALONE
// RUN: xdsl-opt %s -p 'lw-fuse{block=C loops=i}' --verify-diagnostics | filecheck %s --check-prefix=SINGLE
// RUN: xdsl-opt %s -p 'lw-unroll{block=C loop=j},lw-fuse{block=C loops=i,j}' --verify-diagnostics | filecheck %s --check-prefix=KIND

func.func @c(%A: memref<4x2x3xf32> {lw.name = "A"}, %C: memref<4x3xf32> {lw.name = "C", lw.output}) {
  lw_loop.for i in 4 {
    lw_loop.for j in 3 {
      lw_loop.for k in 2 {
        lw_loop.for r in 3 {
          lw_loop.block C (i in 4 = i, j in 3 = j, reduce k in 2 = k, reduce r in 3 = r) writes %C[i, j] : memref<4x3xf32> add {
            %a = lw_loop.load %A[i, k, r] : memref<4x2x3xf32>
            lw_te.yield %a : f32
          }
        }
      }
    }
  }
  func.return
}

// TWO: lw_loop.for [[F:i_j]] in 12 {
// TWO-NEXT: lw_loop.for k in 2 {
// TWO-NEXT: lw_loop.for r in 3 {
// TWO-NEXT: lw_loop.block C (i in 4 = [[F]] floordiv 3, j in 3 = [[F]] mod 3, reduce k in 2 = k, reduce r in 3 = r) writes %C[i, j] : memref<4x3xf32> add {

// Split, fused, split again: 16 points in tiles of 5, each with a tail of its own.
// THREE: lw_loop.for [[O:i_j0_j10]] in 4 {
// THREE-NEXT: lw_loop.for [[I:i_j0_j11]] in 5 {
// THREE-NEXT: lw_loop.for [[K:k_r]] in 6 {
// THREE-NEXT: lw_loop.block C (i in 4 = ([[O]] * 5 + [[I]]) floordiv 4, j in 3 = ([[O]] * 5 + [[I]]) mod 4, reduce k in 2 = [[K]] floordiv 3, reduce r in 3 = [[K]] mod 3) where (2 - ([[O]] * 5 + [[I]]) mod 4 >= 0, 15 - [[O]] * 5 - [[I]] >= 0) writes

// BACK: lw_loop.for [[F:j0_j1]] in 3 {
// BACK-NEXT: lw_loop.for k in 2 {
// BACK: lw_loop.block C (i in 4 = i, j in 3 = [[F]], reduce k in 2 = k, reduce r in 3 = r) writes

// MIXED: lw-fuse{block="C" loops="j","k"}: loops over reduce iterators fuse with their like only, 'k' is one and others are not
// MIXED: > lw_loop.for j in 3 {

// APART: lw-fuse{block="C" loops="i","k"}: each loop must be directly in the one before and alone there, 'k' is not in 'i'; reorder first
// APART: > lw_loop.for i in 4 {

// ORDER: lw-fuse{block="C" loops="j","i"}: each loop must be directly in the one before and alone there, 'i' is not in 'j'; reorder first

// SINGLE: lw-fuse{block="C" loops="i"}: at least two loops are needed, got 1

// KIND: lw-fuse{block="C" loops="i","j"}: loop 'j' must be serial, it is unrolled; do this step before marking the loop

func.func @ones(%D: memref<1x1xf32> {lw.name = "D", lw.output}, %E: memref<2x2xf32> {lw.name = "E", lw.output}, %F: memref<2xf32> {lw.name = "F", lw.output}) {
  lw_loop.for a in 1 {
    lw_loop.for b in 1 {
      lw_loop.block D (i in 1 = a, j in 1 = b) writes %D[i, j] : memref<1x1xf32> {
        %o = arith.constant 1.0 : f32
        lw_te.yield %o : f32
      }
    }
  }
  lw_loop.for c in 2 {
    lw_loop.for d in 2 {
      lw_loop.block E (i in 2 = c, j in 2 = d) writes %E[i, j] : memref<2x2xf32> {
        %o = arith.constant 1.0 : f32
        lw_te.yield %o : f32
      }
    }
    lw_loop.block F (i in 2 = c) writes %F[i] : memref<2xf32> {
      %o = arith.constant 1.0 : f32
      lw_te.yield %o : f32
    }
  }
  func.return
}

// ONES: lw_loop.for a_b in 1 {
// ONES-NEXT: lw_loop.block D (i in 1 = 0, j in 1 = 0) writes

// ALONE: lw-fuse{block="E" loops="c","d"}: each loop must be directly in the one before and alone there, 'd' is not in 'c'; reorder first
// ALONE: > lw_loop.for c in 2 {

// A loop of one iteration is at 0, in a tail too: no index divides by the extents of the others.

func.func @column(%x: memref<12x1xf32> {lw.name = "x"}, %G: memref<1x12xf32> {lw.name = "G", lw.output}) {
  lw_loop.for e in 1 {
    lw_loop.for f in 12 {
      lw_loop.block G (i in 1 = e, j in 12 = f) writes %G[i, j] : memref<1x12xf32> {
        %v = lw_loop.load %x[j, i] : memref<12x1xf32>
        lw_te.yield %v : f32
      }
    }
  }
  func.return
}

// COLUMN: lw_loop.for e_f0 in 2 {
// COLUMN-NEXT: lw_loop.for e_f1 in 8 {
// COLUMN-NEXT: lw_loop.block G (i in 1 = 0, j in 12 = e_f0 * 8 + e_f1) where (11 - e_f0 * 8 - e_f1 >= 0) writes

// INNER: lw_loop.block C (i in 4 = (i_j0_j10 * 8 + i_j0_j11) floordiv 3, j in 3 = (i_j0_j10 * 8 + i_j0_j11) mod 3, reduce k in 2 = k, reduce r in 3 = r) where (11 - i_j0_j10 * 8 - i_j0_j11 >= 0) writes
// OUTER: lw_loop.block C (i in 4 = i0_i10 * 3 + i0_i11, j in 3 = j, reduce k in 2 = k, reduce r in 3 = r) where (3 - i0_i10 * 3 - i0_i11 >= 0) writes
