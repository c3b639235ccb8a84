// RUN: xdsl-opt %s -p 'lw-winograd{block=conv}' | filecheck %s
// RUN: xdsl-opt %s -p 'lw-winograd{block=last}' | filecheck %s --check-prefix=LAST
// RUN: xdsl-opt %s -p 'lw-winograd{block=conv tile_size=4}' | filecheck %s --check-prefix=FOUR
// RUN: xdsl-opt %s -p 'lw-winograd{block=conv tile_size=3}' --verify-diagnostics | filecheck %s --check-prefix=SIZE
// RUN: xdsl-opt %s -p 'lw-split{block=conv loop=x factors=0,2},lw-winograd{block=conv}' --verify-diagnostics | filecheck %s --check-prefix=SPLIT
// RUN: xdsl-opt %s -p 'lw-unroll{block=conv loop=x},lw-winograd{block=conv}' --verify-diagnostics | filecheck %s --check-prefix=SPLIT
// RUN: xdsl-opt %s -p 'lw-winograd{block=strided}' --verify-diagnostics | filecheck %s --check-prefix=WINDOW
// RUN: xdsl-opt %s -p 'lw-winograd{block=largest}' --verify-diagnostics | filecheck %s --check-prefix=SUM
// RUN: xdsl-opt %s -p 'lw-winograd{block=masked}' --verify-diagnostics | filecheck %s --check-prefix=MASKED
// RUN: xdsl-opt %s -p 'lw-winograd{block=whole}' --verify-diagnostics | filecheck %s --check-prefix=TYPE

// Tiles of 2x2 results, the last of which reach beyond the data of 5x5.
// CHECK-DAG: %kernel_pack = lw_loop.alloc "kernel_pack" : memref<4x4x2x6xf32>
// CHECK-DAG: %data_pack = lw_loop.alloc "data_pack" : memref<4x4x2x4xf32>
// CHECK-DAG: %bgemm = lw_loop.alloc "bgemm" : memref<4x4x6x4xf32>
// CHECK: lw_loop.block kernel_rows (eps in 4 = eps, rx in 3 = rx, ci in 2 = ci, co in 6 = co)
// CHECK-NEXT: lw_loop.load %W[co, ci, 0, rx]
// CHECK: lw_loop.block data_rows (eps in 4 = eps, j in 4 = j, c in 2 = c, p in 4 = p)
// CHECK-NEXT: lw_loop.load %X[0, c, p floordiv 2 * 2, p mod 2 * 2 + j] where (4 - p mod 2 * 2 - j >= 0)
// CHECK: lw_loop.load %X[0, c, p floordiv 2 * 2 + 3, p mod 2 * 2 + j] where (1 - p floordiv 2 * 2 >= 0, 4 - p mod 2 * 2 - j >= 0)
// CHECK: lw_loop.block bgemm (eps in 4 = eps, nu in 4 = nu, co in 6 = co, p in 4 = p, reduce ci in 2 = ci) writes %bgemm[eps, nu, co, p] : memref<4x4x6x4xf32> add {
// CHECK-NEXT: lw_loop.load %kernel_pack[eps, nu, ci, co]
// CHECK-NEXT: lw_loop.load %data_pack[eps, nu, ci, p]
// CHECK: lw_loop.block conv (n in 1 = n, o in 6 = o, y in 3 = y, x in 3 = x) writes %conv[n, o, y, x]
// CHECK-NEXT: lw_loop.load %inverse[y mod 2, x mod 2, o, y floordiv 2 * 2 + x floordiv 2]

// Channels last: they are so in what is made of the data, too.
// LAST: lw_loop.block data_rows (eps in 4 = eps, j in 4 = j, p in 4 = p, c in 2 = c)
// LAST-NEXT: lw_loop.load %Y[p floordiv 2, 0, p mod 2 * 2 + j, c] where (4 - p mod 2 * 2 - j >= 0)
// LAST: lw_loop.block bgemm (eps in 4 = eps, nu in 4 = nu, p in 4 = p, co in 3 = co, reduce ci in 2 = ci)
// LAST: lw_loop.block last (n in 2 = n, y in 2 = y, x in 3 = x, o in 3 = o)
// LAST-NEXT: lw_loop.load %inverse[y mod 2, x mod 2, n * 2 + x floordiv 2, o]

// FOUR: %data_pack = lw_loop.alloc "data_pack" : memref<6x6x2x1xf32>

// SIZE: tile_size must be one of 2, 4 for windows of 3x3, got 3
// SPLIT: block 'conv' must be in loops of its own, one for each iterator: this step comes first
// WINDOW: block 'strided' must be a convolution of square windows of 3x3 or more that move by 1
// SUM: block 'largest' must be a sum of fp32 or fp64
// MASKED: block 'masked' must have no predicate
// TYPE: block 'whole' must be a sum of fp32 or fp64

func.func @first(%X: memref<1x2x5x5xf32> {lw.name = "X"}, %W: memref<6x2x3x3xf32> {lw.name = "W"}, %conv: memref<1x6x3x3xf32> {lw.name = "conv", lw.output}) {
  lw_loop.for n in 1 {
    lw_loop.for o in 6 {
      lw_loop.for y in 3 {
        lw_loop.for x in 3 {
          lw_loop.for c in 2 {
            lw_loop.for ry in 3 {
              lw_loop.for rx in 3 {
                lw_loop.block conv (n in 1 = n, o in 6 = o, y in 3 = y, x in 3 = x, reduce c in 2 = c, reduce ry in 3 = ry, reduce rx in 3 = rx) writes %conv[n, o, y, x] : memref<1x6x3x3xf32> add {
                  %a = lw_loop.load %X[n, c, y + ry, x + rx] : memref<1x2x5x5xf32>
                  %b = lw_loop.load %W[o, c, ry, rx] : memref<6x2x3x3xf32>
                  %c = arith.mulf %a, %b : f32
                  lw_te.yield %c : f32
                }
              }
            }
          }
        }
      }
    }
  }
  func.return
}

func.func @second(%Y: memref<2x4x5x2xf32> {lw.name = "Y"}, %V: memref<3x3x2x3xf32> {lw.name = "V"}, %last: memref<2x2x3x3xf32> {lw.name = "last", lw.output}) {
  lw_loop.for n in 2 {
    lw_loop.for y in 2 {
      lw_loop.for x in 3 {
        lw_loop.for o in 3 {
          lw_loop.for ry in 3 {
            lw_loop.for rx in 3 {
              lw_loop.for c in 2 {
                lw_loop.block last (n in 2 = n, y in 2 = y, x in 3 = x, o in 3 = o, reduce ry in 3 = ry, reduce rx in 3 = rx, reduce c in 2 = c) writes %last[n, y, x, o] : memref<2x2x3x3xf32> add {
                  %a = lw_loop.load %Y[n, y + ry, x + rx, c] : memref<2x4x5x2xf32>
                  %b = lw_loop.load %V[ry, rx, c, o] : memref<3x3x2x3xf32>
                  %c = arith.mulf %a, %b : f32
                  lw_te.yield %c : f32
                }
              }
            }
          }
        }
      }
    }
  }
  func.return
}

func.func @third(%X2: memref<1x2x7x7xf32> {lw.name = "X2"}, %W2: memref<6x2x3x3xf32> {lw.name = "W2"}, %strided: memref<1x6x3x3xf32> {lw.name = "strided", lw.output}) {
  lw_loop.for n in 1 {
    lw_loop.for o in 6 {
      lw_loop.for y in 3 {
        lw_loop.for x in 3 {
          lw_loop.for c in 2 {
            lw_loop.for ry in 3 {
              lw_loop.for rx in 3 {
                lw_loop.block strided (n in 1 = n, o in 6 = o, y in 3 = y, x in 3 = x, reduce c in 2 = c, reduce ry in 3 = ry, reduce rx in 3 = rx) writes %strided[n, o, y, x] : memref<1x6x3x3xf32> add {
                  %a = lw_loop.load %X2[n, c, y * 2 + ry, x * 2 + rx] : memref<1x2x7x7xf32>
                  %b = lw_loop.load %W2[o, c, ry, rx] : memref<6x2x3x3xf32>
                  %c = arith.mulf %a, %b : f32
                  lw_te.yield %c : f32
                }
              }
            }
          }
        }
      }
    }
  }
  func.return
}

func.func @fourth(%X3: memref<1x2x5x5xf32> {lw.name = "X3"}, %W3: memref<6x2x3x3xf32> {lw.name = "W3"}, %largest: memref<1x6x3x3xf32> {lw.name = "largest", lw.output}) {
  lw_loop.for n in 1 {
    lw_loop.for o in 6 {
      lw_loop.for y in 3 {
        lw_loop.for x in 3 {
          lw_loop.for c in 2 {
            lw_loop.for ry in 3 {
              lw_loop.for rx in 3 {
                lw_loop.block largest (n in 1 = n, o in 6 = o, y in 3 = y, x in 3 = x, reduce c in 2 = c, reduce ry in 3 = ry, reduce rx in 3 = rx) writes %largest[n, o, y, x] : memref<1x6x3x3xf32> max {
                  %a = lw_loop.load %X3[n, c, y + ry, x + rx] : memref<1x2x5x5xf32>
                  %b = lw_loop.load %W3[o, c, ry, rx] : memref<6x2x3x3xf32>
                  %c = arith.mulf %a, %b : f32
                  lw_te.yield %c : f32
                }
              }
            }
          }
        }
      }
    }
  }
  func.return
}

func.func @fifth(%X4: memref<1x2x5x5xf32> {lw.name = "X4"}, %W4: memref<6x2x3x3xf32> {lw.name = "W4"}, %masked: memref<1x6x3x3xf32> {lw.name = "masked", lw.output}) {
  lw_loop.for n in 1 {
    lw_loop.for o in 6 {
      lw_loop.for y in 3 {
        lw_loop.for x in 3 {
          lw_loop.for c in 2 {
            lw_loop.for ry in 3 {
              lw_loop.for rx in 3 {
                lw_loop.block masked (n in 1 = n, o in 6 = o, y in 3 = y, x in 3 = x, reduce c in 2 = c, reduce ry in 3 = ry, reduce rx in 3 = rx) writes %masked[n, o, y, x] : memref<1x6x3x3xf32> add {
                  %a = lw_loop.load %X4[n, c, y + ry, x + rx] where (3 - y - ry >= 0) : memref<1x2x5x5xf32>
                  %b = lw_loop.load %W4[o, c, ry, rx] : memref<6x2x3x3xf32>
                  %c = arith.mulf %a, %b : f32
                  lw_te.yield %c : f32
                }
              }
            }
          }
        }
      }
    }
  }
  func.return
}

func.func @sixth(%X5: memref<1x2x5x5xf16> {lw.name = "X5"}, %W5: memref<6x2x3x3xf16> {lw.name = "W5"}, %whole: memref<1x6x3x3xf16> {lw.name = "whole", lw.output}) {
  lw_loop.for n in 1 {
    lw_loop.for o in 6 {
      lw_loop.for y in 3 {
        lw_loop.for x in 3 {
          lw_loop.for c in 2 {
            lw_loop.for ry in 3 {
              lw_loop.for rx in 3 {
                lw_loop.block whole (n in 1 = n, o in 6 = o, y in 3 = y, x in 3 = x, reduce c in 2 = c, reduce ry in 3 = ry, reduce rx in 3 = rx) writes %whole[n, o, y, x] : memref<1x6x3x3xf16> add {
                  %a = lw_loop.load %X5[n, c, y + ry, x + rx] : memref<1x2x5x5xf16>
                  %b = lw_loop.load %W5[o, c, ry, rx] : memref<6x2x3x3xf16>
                  %c = arith.mulf %a, %b : f16
                  lw_te.yield %c : f16
                }
              }
            }
          }
        }
      }
    }
  }
  func.return
}
