// RUN: xdsl-opt %s -p lw-tell-loops-apart --split-input-file --verify-diagnostics | filecheck %s
// RUN: xdsl-opt %s -p lw-tell-loops-apart,lw-tell-loops-apart --split-input-file --verify-diagnostics | filecheck %s

// Loops beside each other that share a name, of which one is taken by a person; nothing else changes.

func.func @beside(%a: memref<8xf32> {lw.name = "a"}, %b: memref<8xf32> {lw.name = "b", lw.output}) {
  lw_loop.for i in 8 {
    lw_loop.block first (x in 8 = i) where (6 - i >= 0) writes %b[x] : memref<8xf32> {
      %0 = lw_loop.load %a[x] : memref<8xf32>
      lw_te.yield %0 : f32
    }
  }
  lw_loop.for i in 4 {
    lw_loop.for i$1 in 2 {
      lw_loop.block second (x in 8 = i * 2 + i$1) where (5 - i * 2 >= 0) writes %b[x] : memref<8xf32> {
        %0 = lw_loop.load %a[x] : memref<8xf32>
        lw_te.yield %0 : f32
      }
    }
  }
  func.return
}

// CHECK: func.func @beside
// CHECK-NEXT: lw_loop.for i in 8 {
// CHECK-NEXT: lw_loop.block first (x in 8 = i) where (6 - i >= 0)
// CHECK: lw_loop.for i$2 in 4 {
// CHECK-NEXT: lw_loop.for i$1 in 2 {
// CHECK-NEXT: lw_loop.block second (x in 8 = i$2 * 2 + i$1) where (5 - i$2 * 2 >= 0)

// -----

// On a GPU, bound loops are called by their axis, also where all threads fill shared memory together inside of one; a
// serial loop that a person has called so gets another name.

module attributes {lw.target = #lw.target<"opencl">} {
func.func @threads(%x: memref<4x16xf32> {lw.name = "x"}, %b: memref<4x16xf32> {lw.name = "b", lw.output}) {
  %a = lw_loop.alloc "a" : memref<4x16xf32, "shared">
  lw_loop.for i in 4 blockIdx.x {
    lw_loop.for j in 16 threadIdx.x {
      lw_loop.for f in 16 threadIdx.x {
        lw_loop.block a (i in 4 = i, f in 16 = f) writes %a[i, f] : memref<4x16xf32, "shared"> {
          %v = lw_loop.load %x[i, f] : memref<4x16xf32>
          lw_te.yield %v : f32
        }
      }
      lw_loop.for blockIdx.x in 1 {
        lw_loop.block b (i in 4 = i, j in 16 = j + blockIdx.x) writes %b[i, j] : memref<4x16xf32> {
          %v = lw_loop.load %a[i, 15 - j] : memref<4x16xf32, "shared">
          lw_te.yield %v : f32
        }
      }
    }
  }
  func.return
}
}

// CHECK: func.func @threads
// CHECK: lw_loop.for blockIdx.x in 4 blockIdx.x {
// CHECK-NEXT: lw_loop.for threadIdx.x in 16 threadIdx.x {
// CHECK-NEXT: lw_loop.for threadIdx.x in 16 threadIdx.x {
// CHECK-NEXT: lw_loop.block a (i in 4 = blockIdx.x, f in 16 = threadIdx.x) writes
// CHECK: lw_loop.for blockIdx.x$1 in 1 {
// CHECK-NEXT: lw_loop.block b (i in 4 = blockIdx.x, j in 16 = threadIdx.x + blockIdx.x$1) writes

// -----

// Threads that each run the same loop again on their own axis do not exist.

module attributes {lw.target = #lw.target<"opencl">} {
func.func @twice(%x: memref<4x16xf32> {lw.name = "x"}, %b: memref<4x16xf32> {lw.name = "b", lw.output}) {
  lw_loop.for i in 4 threadIdx.x {
    lw_loop.for j in 16 threadIdx.x {
      lw_loop.block b (i in 4 = i, j in 16 = j) writes %b[i, j] : memref<4x16xf32> {
        %v = lw_loop.load %x[i, j] : memref<4x16xf32>
        lw_te.yield %v : f32
      }
    }
  }
  func.return
}
}

// CHECK: lw-lower-loop-to-kernel: loops 'j' and 'i' around it are both bound to threadIdx.x, which only fills of shared buffers may be; bind one of them to another axis

// -----

// Nothing is renamed once layouts speak of loops.

func.func @again() attributes {lw.lowered_by = "lw-place-barriers"} {
  %a = lw_loop.alloc "a" : memref<4xf32>
  func.return
}

// CHECK: lw-tell-loops-apart: function 'again' has been through lw-place-barriers: run the steps behind that
