// RUN: xdsl-opt %s --split-input-file --verify-diagnostics --parsing-diagnostics | filecheck %s

// What the loop dialect prints parses back: kinds and annotations of loops, scopes and alignment of buffers, blocks.

func.func @tile(%a: memref<9x12xf32> {lw.name = "a"}, %out: memref<9xf32> {lw.name = "out", lw.output}) {
  %t = lw_loop.alloc "t" : memref<9xf32, "local">
  %rows = lw_loop.alloc "rows" align [0, 16, 3] : memref<9x12xf32, "shared">
  lw_loop.for i in 9 parallel {
    lw_loop.for j in 12 vectorized {
      lw_loop.block rows (i in 9 = i, j in 12 = j) writes %rows[i, j] : memref<9x12xf32, "shared"> {
        %0 = lw_loop.load %a[i, j - 1] where (j - 1 >= 0) : memref<9x12xf32>
        lw_te.yield %0 : f32
      }
    }
    lw_loop.for j0 in 3 annotated {auto_unroll_max_step = 16 : i64} {
      lw_loop.for j1 in 5 unrolled {
        lw_loop.block t (i in 9 = i, reduce j in 12 = j0 * 5 + j1) where (11 - j0 * 5 - j1 >= 0) annotated {seen} writes %t[i] : memref<9xf32, "local"> add {
          %0 = lw_loop.load %rows[i, j] : memref<9x12xf32, "shared">
          lw_te.yield %0 : f32
        }
      }
    }
  }
  lw_loop.for i in 9 threadIdx.x {
    lw_loop.block out (i in 9 = i) writes %out[i] : memref<9xf32> {
      %0 = lw_loop.load %t[i] : memref<9xf32, "local">
      lw_te.yield %0 : f32
    }
  }
  func.return
}

// CHECK: func.func @tile(%a: memref<9x12xf32> {lw.name = "a"}, %out: memref<9xf32> {lw.name = "out", lw.output}) {
// CHECK-NEXT: %t = lw_loop.alloc "t" : memref<9xf32, "local">
// CHECK-NEXT: %rows = lw_loop.alloc "rows" align [0, 16, 3] : memref<9x12xf32, "shared">
// CHECK-NEXT: lw_loop.for i in 9 parallel {
// CHECK-NEXT: lw_loop.for j in 12 vectorized {
// CHECK-NEXT: lw_loop.block rows (i in 9 = i, j in 12 = j) writes %rows[i, j] : memref<9x12xf32, "shared"> {
// CHECK-NEXT: %[[V0:[0-9]+]] = lw_loop.load %a[i, j - 1] where (j - 1 >= 0) : memref<9x12xf32>
// CHECK-NEXT: lw_te.yield %[[V0]] : f32
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: lw_loop.for j0 in 3 annotated {auto_unroll_max_step = 16 : i64} {
// CHECK-NEXT: lw_loop.for j1 in 5 unrolled {
// CHECK-NEXT: lw_loop.block t (i in 9 = i, reduce j in 12 = j0 * 5 + j1) where (11 - j0 * 5 - j1 >= 0) annotated {seen} writes %t[i] : memref<9xf32, "local"> add {
// CHECK-NEXT: %[[V1:[0-9]+]] = lw_loop.load %rows[i, j] : memref<9x12xf32, "shared">
// CHECK-NEXT: lw_te.yield %[[V1]] : f32
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: lw_loop.for i in 9 threadIdx.x {
// CHECK-NEXT: lw_loop.block out (i in 9 = i) writes %out[i] : memref<9xf32> {
// CHECK-NEXT: %[[V2:[0-9]+]] = lw_loop.load %t[i] : memref<9xf32, "local">
// CHECK-NEXT: lw_te.yield %[[V2]] : f32
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: func.return
// CHECK-NEXT: }

// -----

func.func @bad(%a: memref<4xf32>, %out: memref<4xf32>) {
  lw_loop.for i in 0 {
    lw_loop.block out (i in 4 = i) writes %out[i] : memref<4xf32> {
      %0 = lw_loop.load %a[i] : memref<4xf32>
      lw_te.yield %0 : f32
    }
  }
  func.return
}

// CHECK: loop 'i' has extent 0, at least 1 is needed

// -----

func.func @bad(%a: memref<4xf32>, %out: memref<4xf32>) {
  lw_loop.for i in 4 {
    lw_loop.block out (i in 4 = j) writes %out[i] : memref<4xf32> {
      %0 = lw_loop.load %a[i] : memref<4xf32>
      lw_te.yield %0 : f32
    }
  }
  func.return
}

// CHECK: block 'out': bound to 'j', which is no loop around it

// -----

func.func @bad(%a: memref<4xf32>, %out: memref<4xf32>) {
  lw_loop.for i in 4 {
    lw_loop.block out (i in 4 = i) where (2 - j >= 0) writes %out[i] : memref<4xf32> {
      %0 = lw_loop.load %a[i] : memref<4xf32>
      lw_te.yield %0 : f32
    }
  }
  func.return
}

// CHECK: block 'out': bound to 'j', which is no loop around it

// -----

func.func @bad(%a: memref<4xf32>, %out: memref<4xf32>) {
  lw_loop.for i in 4 {
    lw_loop.block out (i in 4 = i) writes %out[i, i] : memref<4xf32> {
      %0 = lw_loop.load %a[i] : memref<4xf32>
      lw_te.yield %0 : f32
    }
  }
  func.return
}

// CHECK: block 'out': 2 indices for memref<4xf32>

// -----

func.func @bad(%a: memref<4xf32>, %out: memref<4xf32>) {
  lw_loop.for i in 4 {
    lw_loop.block out (v in 4 = i) writes %out[i] : memref<4xf32> {
      %0 = lw_loop.load %a[v] : memref<4xf32>
      lw_te.yield %0 : f32
    }
  }
  func.return
}

// CHECK: block 'out': writes at 'i', which is no iterator of it

// -----

func.func @bad(%a: memref<4xf32>, %out: memref<4xf32>) {
  lw_loop.for i in 4 {
    lw_loop.block out (i in 4 = i) writes %out[i] : memref<4xf32> {
      %0 = lw_loop.load %a[j] : memref<4xf32>
      lw_te.yield %0 : f32
    }
  }
  func.return
}

// CHECK: block 'out': the body names 'j', which is no axis of it

// -----

func.func @bad(%a: memref<4xf32>, %out: memref<4xf32>) {
  lw_loop.for i in 4 {
    lw_loop.block out (i in 4 = i) writes %out[i] : memref<4xf32> {
      %0 = lw_loop.load %a[i, i] : memref<4xf32>
      lw_te.yield %0 : f32
    }
  }
  func.return
}

// CHECK: 2 indices for a buffer of rank 1

// -----

func.func @bad(%a: memref<4xf32>, %out: memref<4xf32>) {
  lw_loop.for i in 4 {
    lw_loop.block out (i in 4 = i) writes %out[i] : memref<4xf32> {
      %0 = lw_loop.load %a[i] : memref<4xf32>
      lw_te.yield %0, %0 : f32, f32
    }
  }
  func.return
}

// CHECK: block 'out': the body yields one value per output

// -----

func.func @bad(%a: memref<4xf32>, %out: memref<4xf32>) {
  lw_loop.for i in 4 {
    lw_loop.block out (i in 4 = i) writes %out[i] : memref<4xf32> {
      %0 = lw_te.index i : i32
      lw_te.yield %0 : i32
    }
  }
  func.return
}

// CHECK: block 'out': the body yields i32 where f32 is kept

// -----

func.func @bad(%a: memref<4xf32>, %out: memref<4xf32>) {
  lw_loop.for i in 4 {
    lw_loop.block out (i in 4 = i) writes %out[i] : memref<4xf32> custom [0.0 : f32] {
      %0 = lw_loop.load %a[i] : memref<4xf32>
      lw_te.yield %0 : f32
    }
  }
  func.return
}

// CHECK: block 'out': a custom combiner has a region, others do not

// -----

func.func @bad(%a: memref<4xf32>, %out: memref<4xf32>) {
  lw_loop.for i in 4 {
    %b = lw_loop.alloc "b" : memref<4xf32>
  }
  func.return
}

// CHECK: loop 'i' holds 'lw_loop.alloc', only loops and blocks belong there

// -----

func.func @bad(%a: memref<4xf32>, %out: memref<4xf32>) {
  lw_loop.for i in 4 sideways {
  }
  func.return
}

// CHECK: Expected region!

// -----

func.func @bad(%a: memref<4xf32>, %out: memref<4xf32>) {
  %b = lw_loop.alloc "b" : tensor<4xf32>
  func.return
}

// CHECK: expected a memref type
