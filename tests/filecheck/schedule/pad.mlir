// RUN: xdsl-opt %s -p 'lw-pad{block=C loop=i factor=4},lw-pad{block=C loop=k factor=16}' | filecheck %s --check-prefix=PADDED
// RUN: xdsl-opt %s -p 'lw-pad{block=C loop=j factor=5}' | filecheck %s --check-prefix=EVEN
// RUN: xdsl-opt %s -p 'lw-pad{block=C loop=i factor=4},lw-cache-read{block=C buffer=A layout="i","k"}' | filecheck %s --check-prefix=COPY
// RUN: xdsl-opt %s -p 'lw-pad{block=out loop=a factor=4}' --verify-diagnostics | filecheck %s --check-prefix=OUTPUT
// RUN: xdsl-opt %s -p 'lw-pad{block=rows loop=i factor=4}' | filecheck %s --check-prefix=ROWS
// RUN: xdsl-opt %s -p 'lw-pad{block=rows loop=i factor=4},lw-pad{block=halves loop=i factor=4}' | filecheck %s --check-prefix=LONGER
// RUN: xdsl-opt %s -p 'lw-pad{block=rows loop=r factor=4}' --verify-diagnostics | filecheck %s --check-prefix=SUM
// RUN: xdsl-opt %s -p 'lw-pad{block=shares loop=i factor=4}' --verify-diagnostics | filecheck %s --check-prefix=DIVIDED
// RUN: xdsl-opt %s -p 'lw-pad{block=C loop=i factor=0}' --verify-diagnostics | filecheck %s --check-prefix=FACTOR
// RUN: xdsl-opt %s -p 'lw-split{block=C loop=i factors=0,2},lw-pad{block=C loop=i1 factor=4}' --verify-diagnostics | filecheck %s --check-prefix=SPLIT
// RUN: xdsl-opt %s -p 'lw-unroll{block=C loop=i},lw-pad{block=C loop=i factor=4}' --verify-diagnostics | filecheck %s --check-prefix=MARKED
// RUN: xdsl-opt %s -p 'lw-pad{block=D loop=i factor=4}' --verify-diagnostics | filecheck %s --check-prefix=ARGUMENT
// RUN: xdsl-opt %s -p 'lw-pad{block=D loop=r factor=4}' --verify-diagnostics | filecheck %s --check-prefix=ONE
// RUN: xdsl-opt %s -p 'lw-pad{block=P loop=c factor=4},lw-pad{block=U loop=r factor=4}' | filecheck %s --check-prefix=LENGTHENED
// RUN: xdsl-opt %s -p 'lw-pad{block=P loop=c factor=4},lw-pad{block=U loop=r factor=8}' | filecheck %s --check-prefix=BEYOND
// RUN: xdsl-opt %s -p 'lw-fuse{block=C loops=i,j},lw-reorder{block=C loops=k,i_j},lw-pad{block=C loop=i_j factor=16}' | filecheck %s --check-prefix=FUSED
// RUN: xdsl-opt %s -p 'lw-pad{block=Z loop=c factor=4},lw-pad{block=V loop=r factor=4}' | filecheck %s --check-prefix=WHOLE
// RUN: xdsl-opt %s -p 'lw-cache-write{block=most buffer=K layout="i/2","i%2"},lw-pad{block=K_local loop=i factor=2}' | filecheck %s --check-prefix=ROUNDED
// RUN: xdsl-opt %s -p 'lw-fuse{block=C loops=i,j},lw-reorder{block=C loops=k,i_j},lw-pad{block=C loop=i_j factor=16},lw-cache-write{block=C}' --verify-diagnostics | filecheck %s --check-prefix=PART
// RUN: xdsl-opt %s -p 'lw-fuse{block=C loops=i,j},lw-reorder{block=C loops=k,i_j},lw-pad{block=C loop=i_j factor=16},lw-cache-read{block=out buffer=C}' --verify-diagnostics | filecheck %s --check-prefix=HOLES

// A fused loop of 32 ends in a part of the seventh row: a copy of all seven would read what nobody writes.
// PART: 'C' must run for all values of the iterators that it writes at; padding of a fused loop and stages of a pipeline leave some out
// HOLES: all of 'C' must be written, its padding is not

// A place that a layout rounds up to is within the buffer, and nobody writes it.
// ROUNDED: memref<6xf32>
// ROUNDED: lw_loop.load %K_local[i floordiv 2, i mod 2] where (4 - i >= 0) : memref<3x2xf32, "local">
func.func @rounded(%X: memref<5x7xf32> {lw.name = "X"}, %N: memref<5xf32> {lw.name = "N", lw.output}) {
  %K = lw_loop.alloc "K" : memref<5xf32>
  lw_loop.for i in 5 {
    lw_loop.for r in 7 {
      lw_loop.block most (i in 5 = i, reduce r in 7 = r) writes %K[i] : memref<5xf32> max {
        %x = lw_loop.load %X[i, r] : memref<5x7xf32>
        lw_te.yield %x : f32
      }
    }
  }
  lw_loop.for i in 5 {
    lw_loop.block N (i in 5 = i) writes %N[i] : memref<5xf32> {
      %k = lw_loop.load %K[i] : memref<5xf32>
      lw_te.yield %k : f32
    }
  }
  func.return
}

// Of integers one factor that is zero beyond the end is enough.
// WHOLE: lw_loop.load %Q[r] : memref<4xi32>
// WHOLE-NEXT: lw_loop.load %Z[r] : memref<4xi32>
func.func @whole(%Q: memref<4xi32> {lw.name = "Q"}, %Y: memref<3xi32> {lw.name = "Y"}, %V: memref<1xi32> {lw.name = "V", lw.output}) {
  %Z = lw_loop.alloc "Z" : memref<3xi32>
  lw_loop.for c in 3 {
    lw_loop.block Z (c in 3 = c) writes %Z[c] : memref<3xi32> {
      %y = lw_loop.load %Y[c] : memref<3xi32>
      lw_te.yield %y : i32
    }
  }
  lw_loop.for r in 3 {
    lw_loop.block V (reduce r in 3 = r) writes %V[0] : memref<1xi32> add {
      %q = lw_loop.load %Q[r] : memref<4xi32>
      %z = lw_loop.load %Z[r] : memref<3xi32>
      %v = arith.muli %q, %z : i32
      lw_te.yield %v : i32
    }
  }
  func.return
}

func.func @lengthened(%X: memref<3xf32> {lw.name = "X"}, %W: memref<3x5xf32> {lw.name = "W", lw.constant}, %U: memref<5xf32> {lw.name = "U", lw.output}) {
  %P = lw_loop.alloc "P" : memref<3xf32>
  lw_loop.for c in 3 {
    lw_loop.block P (c in 3 = c) writes %P[c] : memref<3xf32> {
      %x = lw_loop.load %X[c] : memref<3xf32>
      lw_te.yield %x : f32
    }
  }
  lw_loop.for j in 5 {
    lw_loop.for r in 3 {
      lw_loop.block U (j in 5 = j, reduce r in 3 = r) writes %U[j] : memref<5xf32> add {
        %p = lw_loop.load %P[r] : memref<3xf32>
        %w = lw_loop.load %W[r, j] : memref<3x5xf32>
        %u = arith.mulf %p, %w : f32
        lw_te.yield %u : f32
      }
    }
  }
  func.return
}

// Of two steps along the same elements the second finds the zeros of the first, and needs no mask on these.
// LENGTHENED: lw_loop.load %X[c] where (2 - c >= 0) : memref<3xf32>
// LENGTHENED: lw_loop.load %P[r] : memref<4xf32>
// LENGTHENED: lw_loop.load %W[r, j] where (2 - r >= 0) : memref<3x5xf32>
// BEYOND: lw_loop.load %P[r] where (2 - r >= 0) : memref<4xf32>

func.func @matmul(%A: memref<6x9xf32> {lw.name = "A"}, %B: memref<9x5xf32> {lw.name = "B"}, %O: memref<6x5xf32> {lw.name = "O", lw.output}) {
  %C = lw_loop.alloc "C" : memref<6x5xf32>
  lw_loop.for i in 6 {
    lw_loop.for j in 5 {
      lw_loop.for k in 9 {
        lw_loop.block C (i in 6 = i, j in 5 = j, reduce k in 9 = k) writes %C[i, j] : memref<6x5xf32> add {
          %a = lw_loop.load %A[i, k] : memref<6x9xf32>
          %b = lw_loop.load %B[k, j] : memref<9x5xf32>
          %c = arith.mulf %a, %b : f32
          lw_te.yield %c : f32
        }
      }
    }
  }
  lw_loop.for a in 6 {
    lw_loop.for b in 5 {
      lw_loop.block out (a in 6 = a, b in 5 = b) writes %O[a, b] : memref<6x5xf32> {
        %c = lw_loop.load %C[a, b] : memref<6x5xf32>
        lw_te.yield %c : f32
      }
    }
  }
  func.return
}

func.func @argument(%X: memref<6xf32> {lw.name = "X"}, %Y: memref<6x3xf32> {lw.name = "Y"}, %D: memref<6xf32> {lw.name = "D", lw.output}) {
  lw_loop.for i in 6 {
    lw_loop.for r in 3 {
      lw_loop.block D (i in 6 = i, reduce r in 3 = r) writes %D[i] : memref<6xf32> add {
        %x = lw_loop.load %X[i] : memref<6xf32>
        %y = lw_loop.load %Y[i, r] : memref<6x3xf32>
        %d = arith.mulf %x, %y : f32
        lw_te.yield %d : f32
      }
    }
  }
  func.return
}

func.func @others(%X: memref<6x3xf32> {lw.name = "X"}, %N: memref<6xi32> {lw.name = "N"}, %Y: memref<6xf32> {lw.name = "Y", lw.output}, %Z: memref<6xi32> {lw.name = "Z", lw.output}) {
  %L = lw_loop.alloc "L" : memref<6xf32>
  %H = lw_loop.alloc "H" : memref<6xf32>
  %S = lw_loop.alloc "S" : memref<6xi32>
  lw_loop.for i in 6 {
    lw_loop.for r in 3 {
      lw_loop.block rows (i in 6 = i, reduce r in 3 = r) writes %L[i] : memref<6xf32> max {
        %x = lw_loop.load %X[i, r] : memref<6x3xf32>
        lw_te.yield %x : f32
      }
    }
  }
  lw_loop.for i in 6 {
    lw_loop.block halves (i in 6 = i) writes %H[i] : memref<6xf32> {
      %l = lw_loop.load %L[i] : memref<6xf32>
      %c = arith.constant 0.5 : f32
      %h = arith.mulf %l, %c : f32
      lw_te.yield %h : f32
    }
  }
  lw_loop.for i in 6 {
    lw_loop.block shares (i in 6 = i) writes %S[i] : memref<6xi32> {
      %n = lw_loop.load %N[i] : memref<6xi32>
      %c = arith.constant 12 : i32
      %s = arith.divsi %c, %n : i32
      lw_te.yield %s : i32
    }
  }
  lw_loop.for i in 6 {
    lw_loop.block last (i in 6 = i) writes %Y[i] : memref<6xf32>, %Z[i] : memref<6xi32> {
      %h = lw_loop.load %H[i] : memref<6xf32>
      %s = lw_loop.load %S[i] : memref<6xi32>
      lw_te.yield %h, %s : f32, i32
    }
  }
  func.return
}

// PADDED: %C = lw_loop.alloc "C" : memref<8x5xf32>
// PADDED: lw_loop.for i in 8 {
// PADDED: lw_loop.for k in 16 {
// PADDED: lw_loop.block C (i in 8 = i, j in 5 = j, reduce k in 16 = k) writes %C[i, j] : memref<8x5xf32> add {
// PADDED: lw_loop.load %A[i, k] where (5 - i >= 0, 8 - k >= 0) : memref<6x9xf32>
// PADDED: lw_loop.load %B[k, j] where (8 - k >= 0) : memref<9x5xf32>
// PADDED: lw_loop.for a in 6 {
// PADDED: lw_loop.load %C[a, b] : memref<8x5xf32>

// A multiple stays as it is, without a mask.
// EVEN: lw_loop.for j in 5 {
// EVEN-NOT: where

// The mask goes into a copy with a layout, and leaves the product without one.
// COPY: lw_loop.block A_packed (i in 8 = i, k in 9 = k) writes %{{.*}}[i, k]
// COPY: lw_loop.load %A[i, k] where (5 - i >= 0) : memref<6x9xf32>
// COPY: lw_loop.block C
// COPY-NEXT: lw_loop.load %A_packed[i, k] : memref<8x9xf32, "local">

// OUTPUT: 'O' gets longer, so it must be no argument and not aligned yet: cache_write before
// Of other blocks, what is loaded beyond the end of an argument is zero; what another block has written longer is there.
// ROWS: %L = lw_loop.alloc "L" : memref<8xf32>
// ROWS: lw_loop.block rows (i in 8 = i, reduce r in 3 = r) writes %L[i] : memref<8xf32> max {
// ROWS-NEXT: lw_loop.load %X[i, r] where (5 - i >= 0) : memref<6x3xf32>
// ROWS: lw_loop.block halves (i in 6 = i)
// LONGER: lw_loop.block halves (i in 8 = i) writes %H[i] : memref<8xf32> {
// LONGER-NEXT: lw_loop.load %L[i] : memref<8xf32>
// LONGER: lw_loop.block last (i in 6 = i)

// SUM: 'rows' must be a sum of products
// DIVIDED: 'shares' divides integers, which may be by the zeros beyond the end
// FACTOR: factor must be at least 1, got 0
// SPLIT: loop 'i1' must be an iterator of 'C': pad first
// MARKED: loop 'i' must be serial and carry no annotation
// ARGUMENT: 'D' gets longer, so it must be no argument and not aligned yet: cache_write before
// ONE: 'r' is padded with zeros, so both factors must move with it

// A loop that iterators were fused to ends in a part of the outermost one's last: 30 become 32, which are 7 times 5.
// FUSED: %C = lw_loop.alloc "C" : memref<7x5xf32>
// FUSED: lw_loop.for i_j in 32 {
// FUSED: lw_loop.block C (i in 7 = i_j floordiv 5, j in 5 = i_j mod 5, reduce k in 9 = k) writes %C[i, j] : memref<7x5xf32> add {
// FUSED: lw_loop.load %A[i, k] where (5 - i >= 0) : memref<6x9xf32>
// FUSED: lw_loop.load %B[k, j] : memref<9x5xf32>
