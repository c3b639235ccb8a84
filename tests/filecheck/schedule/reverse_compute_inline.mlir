// RUN: xdsl-opt %s -p 'lw-split{block=P loop=i factors=0,3},lw-reverse-compute-inline{block=Q}' | filecheck %s --check-prefix=MOVE
// RUN: xdsl-opt %s -p 'lw-reverse-compute-inline{block=Q},lw-reverse-compute-inline{block=O}' | filecheck %s --check-prefix=BOTH
// RUN: xdsl-opt %s -p 'lw-reverse-compute-inline{block=R}' --verify-diagnostics | filecheck %s --check-prefix=REDUCE
// RUN: xdsl-opt %s -p 'lw-reverse-compute-inline{block=S}' --verify-diagnostics | filecheck %s --check-prefix=REDUCED
// RUN: xdsl-opt %s -p 'lw-reverse-compute-inline{block=U}' --verify-diagnostics | filecheck %s --check-prefix=READERS
// RUN: xdsl-opt %s -p 'lw-reverse-compute-inline{block=T}' --verify-diagnostics | filecheck %s --check-prefix=LATER
// RUN: xdsl-opt %s -p 'lw-reverse-compute-inline{block=P}' --verify-diagnostics | filecheck %s --check-prefix=INPUTS
// RUN: xdsl-opt %s -p 'lw-reverse-compute-inline{block=V}' --verify-diagnostics | filecheck %s --check-prefix=PART
// RUN: xdsl-opt %s -p 'lw-reverse-compute-inline{block=W}' --verify-diagnostics | filecheck %s --check-prefix=OUTPUT

// Transposed reads; the producer keeps its name and its loops.
func.func @chain(%X: memref<4x5xf32> {lw.name = "X"}, %b: memref<5xf32> {lw.name = "b"}, %O: memref<5x4xf32> {lw.name = "O", lw.output}) {
  %P = lw_loop.alloc "P" : memref<4x5xf32>
  %Q = lw_loop.alloc "Q" : memref<5x4xf32>
  lw_loop.for i in 4 {
    lw_loop.for j in 5 {
      lw_loop.block P (i in 4 = i, j in 5 = j) writes %P[i, j] : memref<4x5xf32> {
        %x = lw_loop.load %X[i, j] : memref<4x5xf32>
        %e = math.exp %x : f32
        lw_te.yield %e : f32
      }
    }
  }
  lw_loop.for c in 5 {
    lw_loop.for r in 4 {
      lw_loop.block Q (c in 5 = c, r in 4 = r) writes %Q[c, r] : memref<5x4xf32> {
        %p = lw_loop.load %P[r, c] : memref<4x5xf32>
        %b1 = lw_loop.load %b[c] : memref<5xf32>
        %s = arith.addf %p, %b1 : f32
        lw_te.yield %s : f32
      }
    }
  }
  lw_loop.for c in 5 {
    lw_loop.for r in 4 {
      lw_loop.block O (c in 5 = c, r in 4 = r) writes %O[c, r] : memref<5x4xf32> {
        %q = lw_loop.load %Q[c, r] : memref<5x4xf32>
        %m = arith.mulf %q, %q : f32
        lw_te.yield %m : f32
      }
    }
  }
  func.return
}

// MOVE: func.func @chain
// MOVE-NEXT: %Q = lw_loop.alloc "Q" : memref<5x4xf32>
// MOVE-NEXT: lw_loop.for i0 in 2 {
// MOVE-NEXT: lw_loop.for i1 in 3 {
// MOVE-NEXT: lw_loop.for j in 5 {
// MOVE-NEXT: lw_loop.block P (i in 4 = i0 * 3 + i1, j in 5 = j) where (3 - i0 * 3 - i1 >= 0) writes %Q[j, i] : memref<5x4xf32> {
// MOVE-NEXT: [[X:%.*]] = lw_loop.load %X[i, j] : memref<4x5xf32>
// MOVE-NEXT: [[E:%.*]] = math.exp [[X]] : f32
// MOVE-NEXT: [[B:%.*]] = lw_loop.load %b[j] : memref<5xf32>
// MOVE-NEXT: [[S:%.*]] = arith.addf [[E]], [[B]] : f32
// MOVE-NEXT: lw_te.yield [[S]] : f32
// MOVE: lw_loop.block O

// BOTH: func.func @chain
// BOTH-NEXT: lw_loop.for i in 4 {
// BOTH-NEXT: lw_loop.for j in 5 {
// BOTH-NEXT: lw_loop.block P (i in 4 = i, j in 5 = j) writes %O[j, i] : memref<5x4xf32> {
// BOTH: [[S:%.*]] = arith.addf
// BOTH-NEXT: arith.mulf [[S]], [[S]] : f32
// BOTH-NOT: lw_loop.block
// BOTH: func.return

func.func @refusals(%X: memref<4x5xf32> {lw.name = "X"}, %A: memref<4xf32> {lw.name = "A", lw.output}, %T: memref<4xf32> {lw.name = "T", lw.output}, %V: memref<3xf32> {lw.name = "V", lw.output}, %W: memref<3xf32> {lw.name = "W", lw.output}) {
  %R = lw_loop.alloc "R" : memref<4xf32>
  %K = lw_loop.alloc "K" : memref<4xf32>
  %L = lw_loop.alloc "L" : memref<4xf32>
  lw_loop.for i in 4 {
    lw_loop.block L (i in 4 = i) writes %L[i] : memref<4xf32> {
      %x = lw_loop.load %X[i, 0] : memref<4x5xf32>
      lw_te.yield %x : f32
    }
  }
  lw_loop.for i in 4 {
    lw_loop.for k in 5 {
      lw_loop.block R (i in 4 = i, reduce k in 5 = k) writes %R[i] : memref<4xf32> add {
        %x = lw_loop.load %X[i, k] : memref<4x5xf32>
        lw_te.yield %x : f32
      }
    }
  }
  lw_loop.for i in 4 {
    lw_loop.block S (i in 4 = i) writes %A[i] : memref<4xf32> {
      %r = lw_loop.load %R[i] : memref<4xf32>
      %n = arith.negf %r : f32
      lw_te.yield %n : f32
    }
  }
  lw_loop.for i in 4 {
    lw_loop.block K (i in 4 = i) writes %K[i] : memref<4xf32> {
      %x = lw_loop.load %X[i, 1] : memref<4x5xf32>
      lw_te.yield %x : f32
    }
  }
  // What T reads besides L is written after L.
  lw_loop.for i in 4 {
    lw_loop.block T (i in 4 = i) writes %T[i] : memref<4xf32> {
      %l = lw_loop.load %L[i] : memref<4xf32>
      %r = lw_loop.load %A[i] : memref<4xf32>
      %n = arith.addf %l, %r : f32
      lw_te.yield %n : f32
    }
  }
  lw_loop.for i in 3 {
    lw_loop.block V (i in 3 = i) writes %V[i] : memref<3xf32> {
      %k = lw_loop.load %K[i + 1] : memref<4xf32>
      lw_te.yield %k : f32
    }
  }
  lw_loop.for i in 3 {
    lw_loop.block W (i in 3 = i) writes %W[i] : memref<3xf32> {
      %v = lw_loop.load %V[i] : memref<3xf32>
      lw_te.yield %v : f32
    }
  }
  func.return
}

func.func @shared(%X: memref<4xf32> {lw.name = "X"}, %U: memref<4xf32> {lw.name = "U", lw.output}, %Y: memref<4xf32> {lw.name = "Y", lw.output}) {
  %M = lw_loop.alloc "M" : memref<4xf32>
  lw_loop.for i in 4 {
    lw_loop.block M (i in 4 = i) writes %M[i] : memref<4xf32> {
      %x = lw_loop.load %X[i] : memref<4xf32>
      lw_te.yield %x : f32
    }
  }
  lw_loop.for i in 4 {
    lw_loop.block U (i in 4 = i) writes %U[i] : memref<4xf32> {
      %m = lw_loop.load %M[i] : memref<4xf32>
      lw_te.yield %m : f32
    }
  }
  lw_loop.for i in 4 {
    lw_loop.block Y (i in 4 = i) writes %Y[i] : memref<4xf32> {
      %m = lw_loop.load %M[3 - i] : memref<4xf32>
      lw_te.yield %m : f32
    }
  }
  func.return
}

// REDUCE: lw-reverse-compute-inline{block="R"}: block 'R' must be elementwise, it is a reduction
// REDUCE: > lw_loop.block R

// REDUCED: lw-reverse-compute-inline{block="S"}: 'R' must not be reduced by 'R', it is final after a loop only; reverse_compute_at moves 'S' there
// REDUCED: > lw_loop.block S

// READERS: lw-reverse-compute-inline{block="U"}: no other block must use 'M', 'Y' does
// READERS: > lw_loop.block U

// LATER: lw-reverse-compute-inline{block="T"}: what 'T' reads must be there, but 'S' writes 'A' later
// LATER: > lw_loop.block S

// INPUTS: lw-reverse-compute-inline{block="P"}: no block writes what 'P' reads
// INPUTS: > lw_loop.block P

// PART: lw-reverse-compute-inline{block="V"}: 'V' must read all of 'K' at iterators of its own, each once, got [i + 1]
// PART: > lw_loop.block V

// OUTPUT: lw-reverse-compute-inline{block="W"}: 'V' must not be an argument of the function, it would be gone
// OUTPUT: > lw_loop.block W
