// RUN: xdsl-opt %s -p 'lw-collapse{block=conv axes=y,x}' | filecheck %s --check-prefix=IMAGE
// RUN: xdsl-opt %s -p 'lw-collapse{block=strided axes=y,x}' | filecheck %s --check-prefix=STRIDED
// RUN: xdsl-opt %s -p 'lw-collapse{block=strided axes=f}' | filecheck %s --check-prefix=ONES
// RUN: xdsl-opt %s -p 'lw-collapse{block=conv axes=y,c}' --verify-diagnostics | filecheck %s --check-prefix=APART
// RUN: xdsl-opt %s -p 'lw-collapse{block=strided axes=c}' --verify-diagnostics | filecheck %s --check-prefix=REDUCE
// RUN: xdsl-opt %s -p 'lw-split{block=conv loop=y factors=0,2},lw-collapse{block=conv axes=y,x}' --verify-diagnostics | filecheck %s --check-prefix=LATE
// RUN: xdsl-opt %s -p 'lw-collapse{block=turned axes=a,b}' --verify-diagnostics | filecheck %s --check-prefix=TURNED
// RUN: xdsl-opt %s -p 'lw-collapse{block=relu axes=n,f}' | filecheck %s --check-prefix=OUTER
// RUN: xdsl-opt %s -p 'lw-cache-write{block=turned buffer=to},lw-storage-align{block=turned axis=0 factor=8 offset=4},lw-collapse{block=turned axes=a}' | filecheck %s --check-prefix=KEPT
// RUN: xdsl-opt %s -p 'lw-cache-read{block=column buffer=wide},lw-storage-align{block=wide_local axis=0 factor=8 offset=4},lw-collapse{block=column axes=a}' --verify-diagnostics | filecheck %s --check-prefix=ALIGNED

func.func @layer(%data: memref<2x3x4x6xf32> {lw.name = "data"}, %kernel: memref<5x3x1x1xf32> {lw.name = "kernel"}, %out: memref<2x5x4x6xf32> {lw.name = "out", lw.output}) {
  %sums = lw_loop.alloc "sums" : memref<2x5x4x6xf32>
  lw_loop.for n in 2 {
    lw_loop.for f in 5 {
      lw_loop.for y in 4 {
        lw_loop.for x in 6 {
          lw_loop.for c in 3 {
            lw_loop.for r in 1 {
              lw_loop.block conv (n in 2 = n, f in 5 = f, y in 4 = y, x in 6 = x, reduce c in 3 = c, reduce r in 1 = r) writes %sums[n, f, y, x] : memref<2x5x4x6xf32> add {
                %d = lw_loop.load %data[n, c, y, x + r] : memref<2x3x4x6xf32>
                %k = lw_loop.load %kernel[f, c, 0, r] : memref<5x3x1x1xf32>
                %p = arith.mulf %d, %k : f32
                lw_te.yield %p : f32
              }
            }
          }
        }
      }
    }
  }
  lw_loop.for n in 2 {
    lw_loop.for f in 5 {
      lw_loop.for i in 4 {
        lw_loop.for j in 6 {
          lw_loop.block relu (n in 2 = n, f in 5 = f, i in 4 = i, j in 6 = j) writes %out[n, f, i, j] : memref<2x5x4x6xf32> {
            %s = lw_loop.load %sums[n, f, i, j] : memref<2x5x4x6xf32>
            %z = arith.constant 0.000000e+00 : f32
            %m = arith.maximumf %s, %z : f32
            lw_te.yield %m : f32
          }
        }
      }
    }
  }
  func.return
}

// What reads the sums goes along, and arguments are noted with the shape that callers give.
// IMAGE: func.func @layer(%data: memref<2x3x24xf32> {lw.shape = array<i64: 2, 3, 4, 6>, lw.name = "data"}, %kernel: memref<5x3xf32> {lw.shape = array<i64: 5, 3, 1, 1>, lw.name = "kernel"}, %out: memref<2x5x24xf32> {lw.shape = array<i64: 2, 5, 4, 6>, lw.name = "out", lw.output}) {
// IMAGE: lw_loop.for y_x in 24 {
// IMAGE-NEXT: lw_loop.for c in 3 {
// IMAGE-NEXT: lw_loop.block conv (n in 2 = n, f in 5 = f, y_x in 24 = y_x, reduce c in 3 = c) writes %sums[n, f, y_x] : memref<2x5x24xf32> add {
// IMAGE: lw_loop.load %data[n, c, y_x] : memref<2x3x24xf32>
// IMAGE: lw_loop.load %kernel[f, c] : memref<5x3xf32>
// IMAGE: lw_loop.for i_j in 24 {
// IMAGE-NEXT: lw_loop.block relu (n in 2 = n, f in 5 = f, i_j in 24 = i_j) writes %out[n, f, i_j] : memref<2x5x24xf32> {

// APART: lw-collapse{block="conv" axes="y","c"}: y, c must be iterators of 'conv' of several iterations, one after the other
// LATE: lw-collapse{block="conv" axes="y","x"}: block 'conv' must be in loops of its own, one for each iterator in their order, without a predicate: this step comes first

// From the last block back: what has no such dimensions side by side is read at parts of the axis.
// OUTER: lw_loop.block conv (n_f in 10 = n_f, y in 4 = y, x in 6 = x, reduce c in 3 = c) writes %sums[n_f, y, x] : memref<10x4x6xf32> add {
// OUTER: lw_loop.load %data[n_f floordiv 5, c, y, x] : memref<2x3x4x6xf32>
// OUTER: lw_loop.load %kernel[n_f mod 5, c] : memref<5x3xf32>
func.func @strided(%pixels: memref<1x3x7x11xf32> {lw.name = "pixels"}, %weights: memref<5x3xf32> {lw.name = "weights"}, %sums: memref<1x5x4x6xf32> {lw.name = "sums", lw.output}) {
  lw_loop.for n in 1 {
    lw_loop.for f in 5 {
      lw_loop.for y in 4 {
        lw_loop.for x in 6 {
          lw_loop.for c in 3 {
            lw_loop.block strided (n in 1 = n, f in 5 = f, y in 4 = y, x in 6 = x, reduce c in 3 = c) writes %sums[n, f, y, x] : memref<1x5x4x6xf32> add {
              %d = lw_loop.load %pixels[n, c, y * 2, x * 2] : memref<1x3x7x11xf32>
              %k = lw_loop.load %weights[f, c] : memref<5x3xf32>
              %p = arith.mulf %d, %k : f32
              lw_te.yield %p : f32
            }
          }
        }
      }
    }
  }
  func.return
}

// STRIDED: %pixels: memref<3x7x11xf32>
// STRIDED: lw_loop.for f in 5 {
// STRIDED-NEXT: lw_loop.for y_x in 24 {
// STRIDED: lw_loop.load %pixels[c, y_x floordiv 6 * 2, y_x mod 6 * 2] : memref<3x7x11xf32>

// One axis alone: iterators of one iteration go.
// ONES: lw_loop.block strided (f in 5 = f, y in 4 = y, x in 6 = x, reduce c in 3 = c) writes %sums[f, y, x]

// REDUCE: lw-collapse{block="strided" axes="c"}: c of 'strided' must not be reduced over

func.func @turned(%in: memref<4x6xf32> {lw.name = "in"}, %to: memref<6x4xf32> {lw.name = "to", lw.output}) {
  lw_loop.for a in 4 {
    lw_loop.for b in 6 {
      lw_loop.block turned (a in 4 = a, b in 6 = b) writes %to[b, a] : memref<6x4xf32> {
        %v = lw_loop.load %in[a, b] : memref<4x6xf32>
        lw_te.yield %v : f32
      }
    }
  }
  func.return
}

// TURNED: lw-collapse{block="turned" axes="a","b"}: 'turned' must write 'to' along a, b, all of neighbouring dimensions

// What is aligned may stay where it loses no dimension.
// KEPT: align [0, 8, 4] : memref<6x4xf32, "local">

func.func @column(%wide: memref<4x1xf32> {lw.name = "wide"}, %narrow: memref<4xf32> {lw.name = "narrow", lw.output}) {
  lw_loop.for a in 4 {
    lw_loop.block column (a in 4 = a) writes %narrow[a] : memref<4xf32> {
      %v = lw_loop.load %wide[a, 0] : memref<4x1xf32>
      lw_te.yield %v : f32
    }
  }
  func.return
}

// ALIGNED: 'wide_local' must not be aligned or swizzled yet: this step comes first
