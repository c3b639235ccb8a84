// RUN: xdsl-opt %s -p 'lw-compute-inline{block=P}' | filecheck %s --check-prefix=PAD
// RUN: xdsl-opt %s -p 'lw-compute-inline{block=E}' | filecheck %s --check-prefix=MASK
// RUN: xdsl-opt %s -p 'lw-fuse{block=D loops=j,i},lw-split{block=D loop=j_i factors=0,4},lw-compute-inline{block=D}' | filecheck %s --check-prefix=PERMUTED
// RUN: xdsl-opt %s -p 'lw-compute-inline{block=C}' --verify-diagnostics | filecheck %s --check-prefix=REDUCE
// RUN: xdsl-opt %s -p 'lw-compute-inline{block=F}' --verify-diagnostics | filecheck %s --check-prefix=OUTPUT
// RUN: xdsl-opt %s -p 'lw-compute-inline{block=C_init}' --verify-diagnostics | filecheck %s --check-prefix=WRITERS
// RUN: xdsl-opt %s -p 'lw-compute-inline{block=H}' --verify-diagnostics | filecheck %s --check-prefix=TRAP
// RUN: xdsl-opt %s -p 'lw-compute-inline{block=U}' --verify-diagnostics | filecheck %s --check-prefix=UNREAD
// RUN: xdsl-opt %s -p 'lw-compute-inline{block=L}' --verify-diagnostics | filecheck %s --check-prefix=PLAIN

// Padding becomes masked reads of the source; the condition that always holds is dropped (y + r - 1 <= 8).
func.func @conv(%X: memref<9xf32> {lw.name = "X"}, %W: memref<3xf32> {lw.name = "W"}, %Y: memref<8xf32> {lw.name = "Y", lw.output}) {
  %P = lw_loop.alloc "P" : memref<11xf32>
  lw_loop.for i in 11 {
    lw_loop.block P (i in 11 = i) writes %P[i] : memref<11xf32> {
      %x = lw_loop.load %X[i - 1] where (i - 1 >= 0, 9 - i >= 0) : memref<9xf32>
      lw_te.yield %x : f32
    }
  }
  lw_loop.for y in 8 {
    lw_loop.for r in 3 {
      lw_loop.block Y (y in 8 = y, reduce r in 3 = r) writes %Y[y] : memref<8xf32> add {
        %p = lw_loop.load %P[y + r] : memref<11xf32>
        %w = lw_loop.load %W[r] : memref<3xf32>
        %m = arith.mulf %p, %w : f32
        lw_te.yield %m : f32
      }
    }
  }
  func.return
}

// PAD: func.func @conv
// PAD-NEXT: lw_loop.for y in 8 {
// PAD-NEXT: lw_loop.for r in 3 {
// PAD-NEXT: lw_loop.block Y (y in 8 = y, reduce r in 3 = r) writes %Y[y] : memref<8xf32> add {
// PAD-NEXT: [[X:%.*]] = lw_loop.load %X[y + r - 1] where (y + r - 1 >= 0) : memref<9xf32>
// PAD-NEXT: [[W:%.*]] = lw_loop.load %W[r] : memref<3xf32>
// PAD-NEXT: arith.mulf [[X]], [[W]] : f32

// A value that is not zero where the reader's mask fails is replaced by zero there; equal reads share the value.
func.func @masked(%X: memref<4x6xf32> {lw.name = "X"}, %F: memref<6x4xf32> {lw.name = "F", lw.output}) {
  %D = lw_loop.alloc "D" : memref<4x6xf32>
  %E = lw_loop.alloc "E" : memref<6x4xf32>
  lw_loop.for j in 6 {
    lw_loop.for i in 4 {
      lw_loop.block D (j in 6 = j, i in 4 = i) writes %D[i, j] : memref<4x6xf32> {
        %x = lw_loop.load %X[i, 5 - j] : memref<4x6xf32>
        %v = lw_te.index j * 2 + i : i32
        %f = arith.sitofp %v : i32 to f32
        %s = arith.addf %x, %f : f32
        lw_te.yield %s : f32
      }
    }
  }
  lw_loop.for i in 6 {
    lw_loop.for j in 4 {
      lw_loop.block E (i in 6 = i, j in 4 = j) writes %E[i, j] : memref<6x4xf32> {
        %d = lw_loop.load %D[j, i] : memref<4x6xf32>
        %e = math.exp %d : f32
        lw_te.yield %e : f32
      }
    }
  }
  lw_loop.for a in 6 {
    lw_loop.for b in 4 {
      lw_loop.block F (a in 6 = a, b in 4 = b) writes %F[a, b] : memref<6x4xf32> {
        %e = lw_loop.load %E[a - 1, b] where (a - 1 >= 0, 4 - b >= 0) : memref<6x4xf32>
        %g = lw_loop.load %E[a - 1, b] where (a - 1 >= 0, 4 - b >= 0) : memref<6x4xf32>
        %m = arith.mulf %e, %g : f32
        lw_te.yield %m : f32
      }
    }
  }
  func.return
}

// MASK: lw_loop.block F (a in 6 = a, b in 4 = b) writes %F[a, b] : memref<6x4xf32> {
// MASK-NEXT: [[D:%.*]] = lw_loop.load %D[b, a - 1] where (a - 1 >= 0) : memref<4x6xf32>
// MASK-NEXT: [[E:%.*]] = math.exp [[D]] : f32
// MASK-NEXT: [[IN:%.*]] = lw_te.predicate (a - 1 >= 0)
// MASK-NEXT: [[ZERO:%.*]] = arith.constant 0.000000e+00 : f32
// MASK-NEXT: [[V:%.*]] = arith.select [[IN]], [[E]], [[ZERO]] : f32
// MASK-NEXT: [[M:%.*]] = arith.mulf [[V]], [[V]] : f32
// MASK-NEXT: lw_te.yield [[M]] : f32

// Whatever became of its loops, the block is what it computes.
// PERMUTED: func.func @masked
// PERMUTED-NEXT: %E = lw_loop.alloc "E" : memref<6x4xf32>
// PERMUTED-NEXT: lw_loop.for i in 6 {
// PERMUTED-NEXT: lw_loop.for j in 4 {
// PERMUTED-NEXT: lw_loop.block E (i in 6 = i, j in 4 = j) writes %E[i, j] : memref<6x4xf32> {
// PERMUTED-NEXT: [[X:%.*]] = lw_loop.load %X[j, 5 - i] : memref<4x6xf32>
// PERMUTED-NEXT: [[V:%.*]] = lw_te.index i * 2 + j : i32
// PERMUTED-NEXT: [[F:%.*]] = arith.sitofp [[V]] : i32 to f32
// PERMUTED-NEXT: [[S:%.*]] = arith.addf [[X]], [[F]] : f32
// PERMUTED-NEXT: math.exp [[S]] : f32

func.func @refusals(%X: memref<4xi32> {lw.name = "X"}, %Z: memref<4xi32> {lw.name = "Z", lw.output}) {
  %C = lw_loop.alloc "C" : memref<4xi32>
  %H = lw_loop.alloc "H" : memref<4xi32>
  %U = lw_loop.alloc "U" : memref<4xi32>
  %L = lw_loop.alloc "L" : memref<8xi32>
  lw_loop.for i in 4 {
    lw_loop.block C_init (i in 4 = i) writes %C[i] : memref<4xi32> {
      %z = arith.constant 0 : i32
      lw_te.yield %z : i32
    }
    lw_loop.for k in 4 {
      lw_loop.block C (i in 4 = i, reduce k in 4 = k) writes %C[i] : memref<4xi32> add no_init {
        %x = lw_loop.load %X[k] : memref<4xi32>
        lw_te.yield %x : i32
      }
    }
  }
  lw_loop.for i in 4 {
    lw_loop.block H (i in 4 = i) writes %H[i] : memref<4xi32> {
      %c = lw_loop.load %C[i] : memref<4xi32>
      %x = lw_loop.load %X[i] : memref<4xi32>
      %q = arith.divsi %c, %x : i32
      lw_te.yield %q : i32
    }
  }
  lw_loop.for i in 4 {
    lw_loop.block U (i in 4 = i) writes %U[i] : memref<4xi32> {
      %x = lw_loop.load %X[i] : memref<4xi32>
      lw_te.yield %x : i32
    }
  }
  lw_loop.for i in 4 {
    lw_loop.block L (i in 4 = i) writes %L[i * 2] : memref<8xi32> {
      %x = lw_loop.load %X[i] : memref<4xi32>
      lw_te.yield %x : i32
    }
  }
  lw_loop.for i in 4 {
    lw_loop.block Z (i in 4 = i) writes %Z[i] : memref<4xi32> {
      %h = lw_loop.load %H[i - 1] where (i - 1 >= 0) : memref<4xi32>
      %l = lw_loop.load %L[i * 2] : memref<8xi32>
      %s = arith.addi %h, %l : i32
      lw_te.yield %s : i32
    }
  }
  func.return
}

// REDUCE: lw-compute-inline{block="C"}: block 'C' must not be a reduction, its value takes a loop to compute; compute_at moves it to its readers
// REDUCE: > lw_loop.block C

// OUTPUT: lw-compute-inline{block="F"}: 'F' must not be an output of the function; reverse_compute_inline puts a block into what it reads
// OUTPUT: > lw_loop.block F

// WRITERS: lw-compute-inline{block="C_init"}: 'C' must be written by 'C_init' alone, 'C' writes it too
// WRITERS: > lw_loop.block C_init

// TRAP: lw-compute-inline{block="H"}: 'H' divides integers, which must not run where 'Z' reads under a mask
// TRAP: > lw_loop.block Z

// UNREAD: lw-compute-inline{block="U"}: no block reads 'U'
// UNREAD: > lw_loop.block U

// PLAIN: lw-compute-inline{block="L"}: block 'L' must write all of 'L' at plain iterators, each of its own once; do this step before transform_layout
// PLAIN: > lw_loop.block L
