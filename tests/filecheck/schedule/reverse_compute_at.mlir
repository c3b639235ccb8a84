// RUN: xdsl-opt %s -p 'lw-split{block=C loop=i factors=0,2},lw-split{block=C loop=k factors=0,2},lw-reorder{block=C loops=i0,k0,i1,k1,j},lw-vectorize{block=C loop=j},lw-reverse-compute-at{block=R loop=i0}' | filecheck %s --check-prefix=TILED
// RUN: xdsl-opt %s -p 'lw-reorder{block=C loops=i,j,k},lw-fuse{block=C loops=i,j},lw-split{block=C loop=i_j factors=0,4},lw-reverse-compute-at{block=R loop=i_j0}' | filecheck %s --check-prefix=FUSED
// RUN: xdsl-opt %s -p 'lw-reverse-compute-at{block=S loop=a}' | filecheck %s --check-prefix=SLICE
// RUN: xdsl-opt %s -p 'lw-reverse-compute-at{block=T loop=a}' | filecheck %s --check-prefix=SUM
// RUN: xdsl-opt %s -p 'lw-fuse{block=P loops=u,v},lw-split{block=P loop=u_v factors=0,4},lw-reverse-compute-at{block=Q1 loop=u_v1}' | filecheck %s --check-prefix=TAIL
// RUN: xdsl-opt %s -p 'lw-reverse-compute-at{block=D loop=p}' | filecheck %s --check-prefix=UNEVEN
// RUN: xdsl-opt %s -p 'lw-reverse-compute-at{block=R loop=k}' --verify-diagnostics | filecheck %s --check-prefix=REDUCE
// RUN: xdsl-opt %s -p 'lw-reverse-compute-at{block=R loop=z}' --verify-diagnostics | filecheck %s --check-prefix=LOOP
// RUN: xdsl-opt %s -p 'lw-reverse-compute-at{block=C loop=i}' --verify-diagnostics | filecheck %s --check-prefix=INPUTS
// RUN: xdsl-opt %s -p 'lw-reverse-compute-at{block=R loop=i producer=Q}' --verify-diagnostics | filecheck %s --check-prefix=PRODUCER
// RUN: xdsl-opt %s -p 'lw-parallel{block=R loop=i},lw-reverse-compute-at{block=R loop=i}' --verify-diagnostics | filecheck %s --check-prefix=MARKED
// RUN: xdsl-opt %s -p 'lw-reverse-compute-at{block=M loop=a}' --verify-diagnostics | filecheck %s --check-prefix=MASK
// RUN: xdsl-opt %s -p 'lw-reverse-compute-at{block=N loop=a}' --verify-diagnostics | filecheck %s --check-prefix=TWICE
// RUN: xdsl-opt %s -p 'lw-reverse-compute-at{block=T loop=b}' --verify-diagnostics | filecheck %s --check-prefix=TORN
// RUN: xdsl-opt %s -p 'lw-reverse-compute-at{block=N loop=a producer=S}' --verify-diagnostics | filecheck %s --check-prefix=OTHER
// RUN: xdsl-opt %s -p 'lw-reverse-compute-at{block=G loop=p}' --verify-diagnostics | filecheck %s --check-prefix=NONE

func.func @matmul(%A: memref<3x4xf32> {lw.name = "A"}, %B: memref<4x7xf32> {lw.name = "B"}, %b: memref<3xf32> {lw.name = "b"}, %R: memref<7x2x3xf32> {lw.name = "R", lw.output}) {
  %C = lw_loop.alloc "C" : memref<3x7xf32>
  lw_loop.for i in 3 {
    lw_loop.for k in 4 {
      lw_loop.for j in 7 {
        lw_loop.block C (i in 3 = i, j in 7 = j, reduce k in 4 = k) writes %C[i, j] : memref<3x7xf32> add {
          %x = lw_loop.load %A[i, k] : memref<3x4xf32>
          %y = lw_loop.load %B[k, j] : memref<4x7xf32>
          %m = arith.mulf %x, %y : f32
          lw_te.yield %m : f32
        }
      }
    }
  }
  // Transposed, and broadcast over u.
  lw_loop.for j in 7 {
    lw_loop.for u in 2 {
      lw_loop.for i in 3 {
        lw_loop.block R (j in 7 = j, u in 2 = u, i in 3 = i) writes %R[j, u, i] : memref<7x2x3xf32> {
          %c = lw_loop.load %C[i, j] : memref<3x7xf32>
          %b1 = lw_loop.load %b[i] : memref<3xf32>
          %s = arith.addf %c, %b1 : f32
          lw_te.yield %s : f32
        }
      }
    }
  }
  func.return
}

func.func @rows(%X: memref<5x6xf32> {lw.name = "X"}, %S: memref<3x6xf32> {lw.name = "S", lw.output}, %T: memref<5xf32> {lw.name = "T", lw.output}, %M: memref<5x6xf32> {lw.name = "M", lw.output}, %N: memref<3x5xf32> {lw.name = "N", lw.output}) {
  %Q = lw_loop.alloc "Q" : memref<5x6xf32>
  lw_loop.for a in 5 {
    lw_loop.for b in 6 {
      lw_loop.block Q (a in 5 = a, b in 6 = b) writes %Q[a, b] : memref<5x6xf32> {
        %x = lw_loop.load %X[a, b] : memref<5x6xf32>
        lw_te.yield %x : f32
      }
    }
  }
  lw_loop.for i in 3 {
    lw_loop.for j in 6 {
      lw_loop.block S (i in 3 = i, j in 6 = j) writes %S[i, j] : memref<3x6xf32> {
        %q = lw_loop.load %Q[i + 1, j] : memref<5x6xf32>
        lw_te.yield %q : f32
      }
    }
  }
  lw_loop.for i in 5 {
    lw_loop.for j in 6 {
      lw_loop.block T (i in 5 = i, reduce j in 6 = j) writes %T[i] : memref<5xf32> add {
        %q = lw_loop.load %Q[i, j] : memref<5x6xf32>
        lw_te.yield %q : f32
      }
    }
  }
  lw_loop.for i in 5 {
    lw_loop.for j in 6 {
      lw_loop.block M (i in 5 = i, j in 6 = j) writes %M[i, j] : memref<5x6xf32> {
        %q = lw_loop.load %Q[i - 1, j] where (i - 1 >= 0) : memref<5x6xf32>
        lw_te.yield %q : f32
      }
    }
  }
  lw_loop.for i in 3 {
    lw_loop.for j in 5 {
      lw_loop.block N (i in 3 = i, j in 5 = j) writes %N[i, j] : memref<3x5xf32> {
        %q = lw_loop.load %Q[i, j] : memref<5x6xf32>
        %r = lw_loop.load %Q[i, j + 1] : memref<5x6xf32>
        %s = arith.addf %q, %r : f32
        lw_te.yield %s : f32
      }
    }
  }
  func.return
}

// The spatial loops below i0 again, in their order and serial; the reduce loops not. Iterator u has a loop of its own.
// TILED: lw_loop.for i0 in 2 {
// TILED-NEXT: lw_loop.for k0 in 2 {
// TILED-NEXT: lw_loop.for i1 in 2 {
// TILED-NEXT: lw_loop.for k1 in 2 {
// TILED-NEXT: lw_loop.for j in 7 vectorized {
// TILED-NEXT: lw_loop.block C (i in 3 = i0 * 2 + i1, j in 7 = j, reduce k in 4 = k0 * 2 + k1) where (2 - i0 * 2 - i1 >= 0) writes %C[i, j] : memref<3x7xf32> add {
// TILED: lw_loop.for [[I:i1]] in 2 {
// TILED-NEXT: lw_loop.for [[J:j]] in 7 {
// TILED-NEXT: lw_loop.for [[U:u]] in 2 {
// TILED-NEXT: lw_loop.block R (j in 7 = [[J]], u in 2 = [[U]], i in 3 = i0 * 2 + [[I]]) where (2 - i0 * 2 - [[I]] >= 0) writes %R[j, u, i] : memref<7x2x3xf32> {

// FUSED: lw_loop.for i_j0 in 6 {
// FUSED-NEXT: lw_loop.for i_j1 in 4 {
// FUSED-NEXT: lw_loop.for k in 4 {
// FUSED: lw_loop.for i_j1 in 4 {
// FUSED-NEXT: lw_loop.for u in 2 {
// FUSED-NEXT: lw_loop.block R (j in 7 = (i_j0 * 4 + i_j1) mod 7, u in 2 = u, i in 3 = (i_j0 * 4 + i_j1) floordiv 7) where (20 - i_j0 * 4 - i_j1 >= 0) writes %R[j, u, i] : memref<7x2x3xf32> {

// Rows 1 to 3 only.
// SLICE: lw_loop.for a in 5 {
// SLICE-NEXT: lw_loop.for b in 6 {
// SLICE-NEXT: lw_loop.block Q
// SLICE: lw_loop.for [[B:b]] in 6 {
// SLICE-NEXT: lw_loop.block S (i in 3 = a - 1, j in 6 = [[B]]) where (a - 1 >= 0, 3 - a >= 0) writes %S[i, j] : memref<3x6xf32> {
// SLICE: lw_loop.block T

// A reduction over what one iteration computes.
// SUM: lw_loop.for a in 5 {
// SUM-NEXT: lw_loop.for b in 6 {
// SUM-NEXT: lw_loop.block Q
// SUM: lw_loop.for [[B:b]] in 6 {
// SUM-NEXT: lw_loop.block T (i in 5 = a, reduce j in 6 = [[B]]) writes %T[i] : memref<5xf32> add {
// SUM: lw_loop.block S

// REDUCE: lw-reverse-compute-at{block="R" loop="k"}: 'C' must be final in 'k', but 'k' still reduces into it
// REDUCE-NEXT: try: lw-reverse-compute-at{block="R" loop="i"}
// REDUCE: > lw_loop.for k in 4 {

// LOOP: lw-reverse-compute-at{block="R" loop="z"}: loop must be around a producer of 'R', got 'z'; there are: i, k, j

// INPUTS: lw-reverse-compute-at{block="C" loop="i"}: 'C' must read what a block writes, it reads from no block

// PRODUCER: lw-reverse-compute-at{block="R" loop="i" producer="Q"}: 'R' must read what a block 'Q' writes, it reads from C

// MARKED: lw-reverse-compute-at{block="R" loop="i"}: loop 'i' must be serial, it is parallel; do this step before marking the loop

// MASK: lw-reverse-compute-at{block="M" loop="a"}: 'M' must read 'Q' without a mask; compute_at moves producers
// MASK: > lw_loop.block M

// TWICE: lw-reverse-compute-at{block="N" loop="a"}: 'N' must read 'Q' at one place, it reads at [i, j] and [i, j + 1]

// TORN: lw-reverse-compute-at{block="T" loop="b"}: 'T' reduces over what it reads, all of which must be computed inside of 'b' in loops of its own

// OTHER: lw-reverse-compute-at{block="N" loop="a" producer="S"}: 'N' must read what a block 'S' writes, it reads from Q

// A tail: in the last iterations the axis of extent 1 would be 1, were they not masked; the reader has the mask too.
func.func @tail(%x: memref<1x6x2xf32> {lw.name = "x"}, %y: memref<1x6xf32> {lw.name = "y", lw.output}) {
  %p = lw_loop.alloc "p" : memref<1x6xf32>
  lw_loop.for u in 1 {
    lw_loop.for v in 6 {
      lw_loop.for r in 2 {
        lw_loop.block P (u in 1 = u, v in 6 = v, reduce r in 2 = r) writes %p[u, v] : memref<1x6xf32> add {
          %e = lw_loop.load %x[u, v, r] : memref<1x6x2xf32>
          lw_te.yield %e : f32
        }
      }
    }
  }
  lw_loop.for v in 6 {
    lw_loop.block Q1 (v in 6 = v) writes %y[0, v] : memref<1x6xf32> {
      %e = lw_loop.load %p[0, v] : memref<1x6xf32>
      %f = arith.addf %e, %e : f32
      lw_te.yield %f : f32
    }
  }
  func.return
}
// TAIL-LABEL: func.func @tail
// TAIL: lw_loop.for u_v0 in 2 {
// TAIL-NEXT: lw_loop.for u_v1 in 4 {
// TAIL-NEXT: lw_loop.for r in 2 {
// TAIL-NEXT: lw_loop.block P ({{.*}}) where (5 - u_v0 * 4 - u_v1 >= 0)
// TAIL: lw_loop.block Q1 (v in 6 = u_v0 * 4 + u_v1) where (5 - u_v0 * 4 - u_v1 >= 0)

// Parts of a reduction, the last one shorter: each has a first term, so that its result is there.
func.func @uneven(%x: memref<7xf32> {lw.name = "x"}, %y: memref<3xf32> {lw.name = "y", lw.output}, %z: memref<3xf32> {lw.name = "z", lw.output}) {
  %q = lw_loop.alloc "q" : memref<3xf32>
  %o = lw_loop.alloc "o" : memref<3xf32>
  lw_loop.for p in 3 {
    lw_loop.for r in 3 {
      lw_loop.block U (p in 3 = p, reduce r in 3 = r) where (6 - p * 3 - r >= 0) writes %q[p] : memref<3xf32> add {
        %e = lw_loop.load %x[p * 3 + r] : memref<7xf32>
        lw_te.yield %e : f32
      }
    }
  }
  lw_loop.for i in 3 {
    lw_loop.block D (i in 3 = i) writes %y[i] : memref<3xf32> {
      %e = lw_loop.load %q[i] : memref<3xf32>
      lw_te.yield %e : f32
    }
  }
  lw_loop.for p in 3 {
    lw_loop.for r in 3 {
      lw_loop.block V (p in 3 = p, reduce r in 3 = r) where (5 - p * 3 - r >= 0) writes %o[p] : memref<3xf32> add {
        %e = lw_loop.load %x[p * 3 + r] : memref<7xf32>
        lw_te.yield %e : f32
      }
    }
  }
  lw_loop.for i in 3 {
    lw_loop.block G (i in 3 = i) writes %z[i] : memref<3xf32> {
      %e = lw_loop.load %o[i] : memref<3xf32>
      lw_te.yield %e : f32
    }
  }
  func.return
}
// UNEVEN-LABEL: func.func @uneven
// UNEVEN: lw_loop.for p in 3 {
// UNEVEN-NEXT: lw_loop.for r in 3 {
// UNEVEN-NEXT: lw_loop.block U ({{.*}}) where (6 - p * 3 - r >= 0)
// UNEVEN: lw_loop.block D (i in 3 = p) writes
// NONE: lw-reverse-compute-at{block="G" loop="p"}: the predicate (5 - p * 3 - r >= 0) of 'V' must not mix loops over spatial and reduce iterators
