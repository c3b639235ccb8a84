// RUN: xdsl-opt %s -p lw-tell-loops-apart,lw-place-buffers,lw-drop-edges --split-input-file --verify-diagnostics | filecheck %s
// RUN: xdsl-opt %s -p lw-tell-loops-apart,lw-drop-edges --split-input-file --verify-diagnostics | filecheck %s --check-prefix=EARLY

// Three tiles of four rows for ten, and two vectors of four columns for seven: the lane that the last ones have more
// writes to memory that is there, and that nobody reads. The results themselves have no such room.

module attributes {lw.target = #lw.target<"cuda max_threads_per_block=64 compute_capability=90">} {
func.func @room(%x: memref<10x7xf32> {lw.name = "x"}, %c: memref<10x7xf32> {lw.name = "c", lw.output}) {
  %t = lw_loop.alloc "t" : memref<10x7xf32, "local">
  %w = lw_loop.alloc "w" : memref<10x7xf32>
  lw_loop.for i0 in 3 blockIdx.x {
    lw_loop.for i1 in 4 threadIdx.x {
      lw_loop.for j0 in 2 {
        lw_loop.for j1 in 4 {
          lw_loop.block t (i in 10 = i0 * 4 + i1, j in 7 = j0 * 4 + j1) where (9 - i0 * 4 - i1 >= 0, 6 - j0 * 4 - j1 >= 0) writes %t[i, j] : memref<10x7xf32, "local"> {
            %0 = lw_loop.load %x[i, j] : memref<10x7xf32>
            lw_te.yield %0 : f32
          }
        }
        lw_loop.for j1 in 4 vectorized {
          lw_loop.block w (i in 10 = i0 * 4 + i1, j in 7 = j0 * 4 + j1) where (9 - i0 * 4 - i1 >= 0, 6 - j0 * 4 - j1 >= 0) writes %w[i, j] : memref<10x7xf32> {
            %0 = lw_loop.load %t[i, j] : memref<10x7xf32, "local">
            lw_te.yield %0 : f32
          }
        }
      }
    }
  }
  lw_loop.for i in 10 blockIdx.x {
    lw_loop.for j in 7 threadIdx.x {
      lw_loop.block c (i in 10 = i, j in 7 = j) writes %c[i, j] : memref<10x7xf32> {
        %0 = lw_loop.load %w[i, j] : memref<10x7xf32>
        lw_te.yield %0 : f32
      }
    }
  }
  func.return
}
}

// CHECK: func.func @room({{.*}}) attributes {lw.lowered_by = "lw-drop-edges"} {
// CHECK: %w = lw_loop.alloc "w" placed [0, 0] of [12, 8] strides [8, 1] : memref<10x7xf32>
// CHECK: lw_loop.block t ({{.*}}) where (9 - blockIdx.x * 4 - threadIdx.x >= 0, 6 - j0 * 4 - j1 >= 0) writes %t
// CHECK: lw_loop.block w (i in 10 = blockIdx.x * 4 + threadIdx.x, j in 7 = j0 * 4 + j1$1) where (9 - blockIdx.x * 4 - threadIdx.x >= 0) writes %w

// EARLY: lw-drop-edges: function 'room': run lw-place-buffers right before this, it is not on its way to a kernel

// -----

module attributes {lw.target = #lw.target<"cuda max_threads_per_block=64 compute_capability=90">} {
func.func @results(%x: memref<10xf32> {lw.name = "x"}, %c: memref<10xf32> {lw.name = "c", lw.output}) {
  %t = lw_loop.alloc "t" : memref<10xf32, "local">
  lw_loop.for i0 in 3 threadIdx.x {
    lw_loop.for i1 in 4 vectorized {
      lw_loop.block t (i in 10 = i0 * 4 + i1) where (9 - i0 * 4 - i1 >= 0) writes %t[i] : memref<10xf32, "local"> {
        %0 = lw_loop.load %x[i] : memref<10xf32>
        lw_te.yield %0 : f32
      }
      lw_loop.block c (i in 10 = i0 * 4 + i1) where (9 - i0 * 4 - i1 >= 0) writes %c[i] : memref<10xf32> {
        %0 = lw_loop.load %t[i] : memref<10xf32, "local">
        lw_te.yield %0 : f32
      }
    }
  }
  func.return
}
}

// CHECK: func.func @results(
// CHECK: lw_loop.block c ({{.*}}) where (9 - threadIdx.x * 4 - i1 >= 0) writes %c

// -----

// In one dimension the lane beyond the end of a row writes the first element of the next one.

module attributes {lw.target = #lw.target<"cuda max_threads_per_block=64 compute_capability=90">} {
func.func @one_dimension(%x: memref<10x7xf32> {lw.name = "x"}, %c: memref<10x7xf32> {lw.name = "c", lw.output}) {
  %t = lw_loop.alloc "t" : memref<10x7xf32, "local">
  %w = lw_loop.alloc "w" : memref<70xf32>
  lw_loop.for i0 in 3 blockIdx.x {
    lw_loop.for i1 in 4 threadIdx.x {
      lw_loop.for j0 in 2 {
        lw_loop.for j1 in 4 {
          lw_loop.block t (i in 10 = i0 * 4 + i1, j in 7 = j0 * 4 + j1) where (9 - i0 * 4 - i1 >= 0, 6 - j0 * 4 - j1 >= 0) writes %t[i, j] : memref<10x7xf32, "local"> {
            %0 = lw_loop.load %x[i, j] : memref<10x7xf32>
            lw_te.yield %0 : f32
          }
        }
        lw_loop.for j1 in 4 vectorized {
          lw_loop.block w (i in 10 = i0 * 4 + i1, j in 7 = j0 * 4 + j1) where (9 - i0 * 4 - i1 >= 0, 6 - j0 * 4 - j1 >= 0) writes %w[i * 7 + j] : memref<70xf32> {
            %0 = lw_loop.load %t[i, j] : memref<10x7xf32, "local">
            lw_te.yield %0 : f32
          }
        }
      }
    }
  }
  lw_loop.for i in 10 blockIdx.x {
    lw_loop.for j in 7 threadIdx.x {
      lw_loop.block c (i in 10 = i, j in 7 = j) writes %c[i, j] : memref<10x7xf32> {
        %0 = lw_loop.load %w[i * 7 + j] : memref<70xf32>
        lw_te.yield %0 : f32
      }
    }
  }
  func.return
}
}

// CHECK: func.func @one_dimension(
// CHECK: lw_loop.block w ({{.*}}) where (9 - blockIdx.x * 4 - threadIdx.x >= 0, 6 - j0 * 4 - j1$1 >= 0) writes %w
