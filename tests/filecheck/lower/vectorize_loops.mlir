// RUN: xdsl-opt %s -p lw-tell-loops-apart,lw-place-buffers,lw-drop-edges,lw-join-launches,lw-place-barriers,lw-start-reductions,lw-end-loops,lw-carry-sums,lw-fill-tails,lw-expand-pipelines,lw-settle-loop-kinds,lw-place-predicates,lw-vectorize-loops --split-input-file --verify-diagnostics --parsing-diagnostics | filecheck %s
// RUN: xdsl-opt %s -p lw-tell-loops-apart,lw-place-buffers,lw-vectorize-loops --split-input-file --verify-diagnostics --parsing-diagnostics | filecheck %s --check-prefix=EARLY

// Lanes touch one element, neighbours, some that are a row apart, or each its own. Nothing else has lanes.

func.func @ways(%a: memref<6x32xf32> {lw.name = "a"}, %b: memref<32x16xf32> {lw.name = "b"}, %t: memref<16x32xf32> {lw.name = "t"}, %c: memref<6x16xf32> {lw.name = "c", lw.output}) {
  lw_loop.for i in 6 {
    lw_loop.for k in 32 {
      lw_loop.for j in 16 vectorized {
        lw_loop.block c (i in 6 = i, j in 16 = j, reduce k in 32 = k) writes %c[i, j] : memref<6x16xf32> add {
          %0 = lw_loop.load %a[i, k] : memref<6x32xf32>
          %1 = lw_loop.load %b[k, j] : memref<32x16xf32>
          %2 = lw_loop.load %t[j, k] : memref<16x32xf32>
          %3 = lw_loop.load %a[i, j floordiv 3] : memref<6x32xf32>
          %4 = arith.addf %0, %1 : f32
          %5 = arith.addf %2, %3 : f32
          %6 = arith.addf %4, %5 : f32
          lw_te.yield %6 : f32
        }
      }
    }
  }
  func.return
}

// CHECK: func.func @ways({{.*}}) attributes {lw.lowered_by = "lw-vectorize-loops"} {
// CHECK: lw_loop.for j in 16 vectorized {
// CHECK-NEXT: lw_loop.block c$start ({{.*}}) annotated {{.*}} writes %c[i, j] as vector :
// CHECK: lw_loop.for k in 32 {
// CHECK-NEXT: lw_loop.for j in 16 vectorized {
// CHECK-NEXT: lw_loop.block c ({{.*}}) writes %c[i, j] as vector : memref<6x16xf32> add no_init {
// CHECK-NEXT: lw_loop.load %a[i, k] as scalar : memref<6x32xf32>
// CHECK-NEXT: lw_loop.load %b[k, j] as vector : memref<32x16xf32>
// CHECK-NEXT: lw_loop.load %t[j, k] as strided 32 : memref<16x32xf32>
// CHECK-NEXT: lw_loop.load %a[i, j floordiv 3] as scattered : memref<6x32xf32>

// EARLY: lw-vectorize-loops: function 'ways': run lw-place-predicates right before this, lw-place-buffers was the last step

// -----

// Where elements lie decides it, not how they are indexed: the rows of a buffer of which one column is kept are neighbours.

func.func @placed(%x: memref<8x4xf32> {lw.name = "x"}, %b: memref<8x4xf32> {lw.name = "b", lw.output}) {
  %r = lw_loop.alloc "r" : memref<8x4xf32, "local">
  lw_loop.for i in 4 {
    lw_loop.for j in 8 vectorized {
      lw_loop.block r (j in 8 = j, i in 4 = i) writes %r[j, i] : memref<8x4xf32, "local"> {
        %0 = lw_loop.load %x[j, i] : memref<8x4xf32>
        lw_te.yield %0 : f32
      }
    }
    lw_loop.for j in 8 {
      lw_loop.block b (j in 8 = j, i in 4 = i) writes %b[j, i] : memref<8x4xf32> {
        %0 = lw_loop.load %r[j, i] : memref<8x4xf32, "local">
        lw_te.yield %0 : f32
      }
    }
  }
  func.return
}

// CHECK: func.func @placed
// CHECK: lw_loop.block r ({{.*}}) writes %r[j, i] as vector : memref<8x4xf32, "local"> {
// CHECK-NEXT: lw_loop.load %x[j, i] as strided 4 : memref<8x4xf32>
// CHECK: lw_loop.block b ({{.*}}) writes %b[j, i] : memref<8x4xf32> {
// CHECK-NEXT: lw_loop.load %r[j, i] : memref<8x4xf32, "local">

// -----

// Copies of an unrolled loop in which rows of 14 do not end between lanes read a vector. A serial loop is one code.

func.func @copies(%x: memref<4x28xf32> {lw.name = "x"}, %b: memref<56xf32> {lw.name = "b", lw.output}, %c: memref<56xf32> {lw.name = "c", lw.output}) {
  lw_loop.for f in 7 unrolled {
    lw_loop.for j in 8 vectorized {
      lw_loop.block b (i in 56 = f * 8 + j) writes %b[i] : memref<56xf32> {
        %0 = lw_loop.load %x[i floordiv 14, i mod 14] : memref<4x28xf32>
        lw_te.yield %0 : f32
      }
    }
  }
  lw_loop.for g in 7 {
    lw_loop.for j in 8 vectorized {
      lw_loop.block c (i in 56 = g * 8 + j) writes %c[i] : memref<56xf32> {
        %0 = lw_loop.load %x[i floordiv 14, i mod 14] : memref<4x28xf32>
        lw_te.yield %0 : f32
      }
    }
  }
  func.return
}

// CHECK: func.func @copies
// CHECK: lw_loop.load %x[i floordiv 14, i mod 14] as vector, scattered where (f - 1 >= 0, 1 - f >= 0) or (f - 3 >= 0, 3 - f >= 0) or (f - 5 >= 0, 5 - f >= 0) : memref<4x28xf32>
// CHECK: lw_loop.load %x[i floordiv 14, i mod 14] as scattered : memref<4x28xf32>

// -----

// A reduction over lanes joins them, whatever is in them. The tail is a mask; what holds for all lanes is none.

func.func @joined(%x: memref<30xf32> {lw.name = "x"}, %b: memref<1xf32> {lw.name = "b", lw.output}, %c: memref<30x12xf32> {lw.name = "c", lw.output}) {
  lw_loop.for i in 1 {
    lw_loop.for k0 in 4 {
      lw_loop.for k1 in 8 vectorized {
        lw_loop.block b (i in 1 = i, reduce k in 30 = k0 * 8 + k1) where (29 - k0 * 8 - k1 >= 0) writes %b[i] : memref<1xf32> add {
          %0 = arith.constant 2.0 : f32
          lw_te.yield %0 : f32
        }
      }
    }
  }
  lw_loop.for i in 32 {
    lw_loop.for j0 in 4 {
      lw_loop.for j1 in 4 vectorized {
        lw_loop.block c (i in 30 = i, j in 12 = j0 * 4 + j1) where (29 - i >= 0, 11 - j0 * 4 - j1 >= 0) writes %c[i, j] : memref<30x12xf32> {
          %0 = lw_loop.load %x[i] : memref<30xf32>
          lw_te.yield %0 : f32
        }
      }
    }
  }
  func.return
}

// CHECK: func.func @joined
// CHECK: lw_loop.block b ({{.*}}) where (29 - k0 * 8 - k1 >= 0) masked (29 - k0 * 8 - k1 >= 0) writes %b[i] as joined : memref<1xf32> add no_init {
// CHECK: lw_loop.block c ({{.*}}) where (29 - i$1 >= 0, 11 - j0 * 4 - j1 >= 0) writes %c[i, j] as vector : memref<30x12xf32> {
// CHECK-NEXT: lw_loop.load %x[i] as scalar : memref<30xf32>

// -----

// Where a loop of one iteration was split, one lane is on.

func.func @single(%x: memref<5x2xf32> {lw.name = "x"}, %b: memref<5xf32> {lw.name = "b", lw.output}) {
  lw_loop.for i in 5 {
    lw_loop.for j in 4 vectorized {
      lw_loop.block b (i in 5 = i, j in 1 = j) where (0 - j >= 0) writes %b[i] : memref<5xf32> {
        %0 = lw_loop.load %x[i, j] : memref<5x2xf32>
        lw_te.yield %0 : f32
      }
    }
  }
  func.return
}

// CHECK: func.func @single
// CHECK: lw_loop.block b ({{.*}}) where (0 - j >= 0) masked (0 - j >= 0) writes %b[i] as single : memref<5xf32> {
// CHECK-NEXT: lw_loop.load %x[i, j] as vector : memref<5x2xf32>

// -----

// Lanes that a GPU writes as copies in some copies of a loop around are vectors in the others.

module attributes {lw.target = #lw.target<"opencl max_threads_per_block=64">} {
func.func @sometimes(%x: memref<8x32xf32> {lw.name = "x"}, %b: memref<8x32xf32> {lw.name = "b", lw.output}) {
  lw_loop.for t in 8 threadIdx.x {
    lw_loop.for r in 3 unrolled {
      lw_loop.for j in 4 vectorized {
        lw_loop.block b (i in 8 = t, r in 3 = r, j in 4 = j) writes %b[i, j] : memref<8x32xf32> {
          %0 = lw_loop.load %x[i, r * 2 + j] : memref<8x32xf32>
          lw_te.yield %0 : f32
        }
      }
    }
    lw_loop.for j in 4 vectorized {
      lw_loop.block never (i in 8 = t, j in 4 = j) writes %b[i, j] : memref<8x32xf32> {
        %0 = lw_loop.load %x[j, i] : memref<8x32xf32>
        lw_te.yield %0 : f32
      }
    }
  }
  func.return
}
}

// CHECK: func.func @sometimes
// CHECK: lw_loop.for j in 4 vectorized as unrolled unless (0 - r >= 0) or (r - 2 >= 0) {
// CHECK-NEXT: lw_loop.block b ({{.*}}) writes %b[i, j] as vector : memref<8x32xf32> {
// CHECK-NEXT: lw_loop.load %x[i, r * 2 + j] as vector : memref<8x32xf32>
// CHECK: lw_loop.for j$1 in 4 vectorized as unrolled {
// CHECK-NEXT: lw_loop.block never ({{.*}}) writes %b[i, j] : memref<8x32xf32> {
// CHECK-NEXT: lw_loop.load %x[j, i] : memref<8x32xf32>

// -----

// What is decided is decided by lowering, in lanes, with loops that are there.

func.func @early(%x: memref<8xf32> {lw.name = "x"}, %b: memref<8xf32> {lw.name = "b", lw.output}) {
  lw_loop.for i in 8 vectorized {
    lw_loop.block b (i in 8 = i) writes %b[i] : memref<8xf32> {
      %0 = lw_loop.load %x[i] as vector : memref<8xf32>
      lw_te.yield %0 : f32
    }
  }
  func.return
}

// CHECK: 'x' is touched as vector in functions on their way to a kernel only

// -----

func.func @serial(%b: memref<8xf32> {lw.name = "b", lw.output}) attributes {lw.lowered_by = "lw-vectorize-loops"} {
  lw_loop.for i in 8 vectorized as serial {
    lw_loop.block b (i in 8 = i) writes %b[i] as vector : memref<8xf32> {
      %0 = arith.constant 1.0 : f32
      lw_te.yield %0 : f32
    }
  }
  func.return
}

// CHECK: what block 'b' writes is touched as vector, but no loop around it has lanes

// -----

func.func @nowhere(%b: memref<8xf32> {lw.name = "b", lw.output}) attributes {lw.lowered_by = "lw-vectorize-loops"} {
  lw_loop.for i in 8 vectorized {
    lw_loop.block b (i in 8 = i) writes %b[i] as vector, scattered where (j >= 0) : memref<8xf32> {
      %0 = arith.constant 1.0 : f32
      lw_te.yield %0 : f32
    }
  }
  func.return
}

// CHECK: what block 'b' writes asks for 'j', which is no loop around it

// -----

func.func @read(%x: memref<8xf32> {lw.name = "x"}, %b: memref<8xf32> {lw.name = "b", lw.output}) attributes {lw.lowered_by = "lw-vectorize-loops"} {
  lw_loop.for i in 8 vectorized {
    lw_loop.block b (i in 8 = i) writes %b[i] as vector : memref<8xf32> {
      %0 = lw_loop.load %x[i] as joined : memref<8xf32>
      lw_te.yield %0 : f32
    }
  }
  func.return
}

// CHECK: lanes write elements as joined, none is read so

// -----

func.func @mask(%b: memref<8xf32> {lw.name = "b", lw.output}) attributes {lw.lowered_by = "lw-vectorize-loops"} {
  lw_loop.for i in 8 vectorized {
    lw_loop.block b (i in 8 = i) where (7 - i >= 0) masked (6 - i >= 0) writes %b[i] as vector : memref<8xf32> {
      %0 = arith.constant 1.0 : f32
      lw_te.yield %0 : f32
    }
  }
  func.return
}

// CHECK: block 'b': lanes are masked by parts of its predicate

// -----

func.func @unheard_of(%b: memref<8xf32> {lw.name = "b", lw.output}) attributes {lw.lowered_by = "lw-vectorize-loops"} {
  lw_loop.for i in 8 vectorized {
    lw_loop.block b (i in 8 = i) writes %b[i] as wide : memref<8xf32> {
    }
  }
  func.return
}

// CHECK: lanes touch elements as one of scalar, vector, scattered, joined, transposed, single, strided, got wide
