// RUN: xdsl-opt %s -p lw-tell-loops-apart,lw-place-buffers,lw-drop-edges,lw-join-launches,lw-place-barriers --split-input-file --verify-diagnostics | filecheck %s
// RUN: xdsl-opt %s -p lw-tell-loops-apart,lw-place-barriers --split-input-file --verify-diagnostics | filecheck %s --check-prefix=EARLY

// A shared tile that is filled and read in each iteration of a serial loop: threads wait before they read it, and before
// they fill it again. What a thread keeps in registers needs no barrier.

module attributes {lw.target = #lw.target<"opencl max_threads_per_block=64">} {
func.func @serial(%x: memref<8x16xf32> {lw.name = "x"}, %b: memref<8x16xf32> {lw.name = "b", lw.output}) {
  %t = lw_loop.alloc "t" : memref<8x16xf32, "shared">
  %r = lw_loop.alloc "r" : memref<8x16xf32, "local">
  lw_loop.for k in 8 {
    lw_loop.for f in 16 threadIdx.x {
      lw_loop.block t (i in 8 = k, j in 16 = f) writes %t[i, j] : memref<8x16xf32, "shared"> {
        %0 = lw_loop.load %x[i, j] : memref<8x16xf32>
        lw_te.yield %0 : f32
      }
    }
    lw_loop.for j in 16 threadIdx.x {
      lw_loop.block r (i in 8 = k, j in 16 = j) writes %r[i, j] : memref<8x16xf32, "local"> {
        %0 = lw_loop.load %t[i, 15 - j] : memref<8x16xf32, "shared">
        lw_te.yield %0 : f32
      }
      lw_loop.block b (i in 8 = k, j in 16 = j) writes %b[i, j] : memref<8x16xf32> {
        %0 = lw_loop.load %r[i, j] : memref<8x16xf32, "local">
        lw_te.yield %0 : f32
      }
    }
  }
  func.return
}
}

// CHECK: func.func @serial({{.*}}) attributes {lw.lowered_by = "lw-place-barriers"} {
// CHECK-NEXT: lw_loop.for k in 8 {
// CHECK-NEXT: %t = lw_loop.alloc "t" placed [k, 0] of [1, 16] strides [16, 1] : memref<8x16xf32, "shared">
// CHECK-NEXT: lw_loop.barrier{{$}}
// CHECK-NEXT: lw_loop.for threadIdx.x in 16 threadIdx.x {
// CHECK-NEXT: lw_loop.block t
// CHECK: lw_loop.barrier{{$}}
// CHECK-NEXT: lw_loop.for threadIdx.x in 16 threadIdx.x {
// CHECK-NOT: lw_loop.barrier
// CHECK: func.return

// EARLY: lw-place-barriers: function 'serial': run lw-join-launches right before this, it is not on its way to a kernel

// -----

// Of an unrolled loop, whose copies follow each other, the first one finds nobody reading.

module attributes {lw.target = #lw.target<"opencl max_threads_per_block=64">} {
func.func @unrolled(%x: memref<4x16xf32> {lw.name = "x"}, %b: memref<4x16xf32> {lw.name = "b", lw.output}) {
  %t = lw_loop.alloc "t" : memref<4x16xf32, "shared">
  lw_loop.for k in 4 unrolled {
    lw_loop.for f in 16 threadIdx.x {
      lw_loop.block t (i in 4 = k, j in 16 = f) writes %t[i, j] : memref<4x16xf32, "shared"> {
        %0 = lw_loop.load %x[i, j] : memref<4x16xf32>
        lw_te.yield %0 : f32
      }
    }
    lw_loop.for j in 16 threadIdx.x {
      lw_loop.block b (i in 4 = k, j in 16 = j) writes %b[i, j] : memref<4x16xf32> {
        %0 = lw_loop.load %t[i, 15 - j] : memref<4x16xf32, "shared">
        lw_te.yield %0 : f32
      }
    }
  }
  func.return
}
}

// CHECK: func.func @unrolled
// CHECK: lw_loop.barrier where (k - 1 >= 0)
// CHECK-NEXT: lw_loop.for threadIdx.x in 16 threadIdx.x {
// CHECK-NEXT: lw_loop.block t
// CHECK: lw_loop.barrier{{$}}
// CHECK-NEXT: lw_loop.for threadIdx.x in 16 threadIdx.x {
// CHECK-NEXT: lw_loop.block b

// -----

// Values that blocks of threads pass on have no barrier.

module attributes {lw.target = #lw.target<"opencl max_threads_per_block=64">} {
func.func @blocks(%x: memref<4x16xf32> {lw.name = "x"}, %a: memref<4x16xf32> {lw.name = "a", lw.output}, %b: memref<4x16xf32> {lw.name = "b", lw.output}) {
  lw_loop.for o in 1 {
    lw_loop.for i in 4 blockIdx.x {
      lw_loop.block a (i in 4 = i) writes %a[i, 0] : memref<4x16xf32> {
        %0 = lw_loop.load %x[i, 0] : memref<4x16xf32>
        lw_te.yield %0 : f32
      }
    }
    lw_loop.for i in 4 blockIdx.x {
      lw_loop.block b (i in 4 = i) writes %b[i, 0] : memref<4x16xf32> {
        %0 = lw_loop.load %a[3 - i, 0] : memref<4x16xf32>
        lw_te.yield %0 : f32
      }
    }
  }
  func.return
}
}

// CHECK: lw-lower-loop-to-kernel: 'a' is written by block 'a' and used by block 'b' at another blockIdx.x, and blocks do not wait for each other: keep the two in nests apart, scope global

// -----

// Nor have some of the threads.

module attributes {lw.target = #lw.target<"opencl max_threads_per_block=64">} {
func.func @some(%x: memref<8x16xf32> {lw.name = "x"}, %b: memref<8x16xf32> {lw.name = "b", lw.output}, %c: memref<32xf32> {lw.name = "c", lw.output}) {
  %t = lw_loop.alloc "t" : memref<8x16xf32, "shared">
  lw_loop.for o in 1 {
    lw_loop.for i in 8 threadIdx.x {
      lw_loop.for k in 16 {
        lw_loop.block t (i in 8 = i, j in 16 = k) writes %t[i, j] : memref<8x16xf32, "shared"> {
          %0 = lw_loop.load %x[i, j] : memref<8x16xf32>
          lw_te.yield %0 : f32
        }
      }
      lw_loop.for j in 16 {
        lw_loop.block b (i in 8 = i, j in 16 = j) writes %b[i, j] : memref<8x16xf32> {
          %0 = lw_loop.load %t[7 - i, j] : memref<8x16xf32, "shared">
          lw_te.yield %0 : f32
        }
      }
    }
    lw_loop.for l in 32 threadIdx.x {
      lw_loop.block c (l in 32 = l) writes %c[l] : memref<32xf32> {
        %0 = lw_loop.load %x[0, 0] : memref<8x16xf32>
        lw_te.yield %0 : f32
      }
    }
  }
  func.return
}
}

// CHECK: lw-lower-loop-to-kernel: loop 'threadIdx.x' has 8 of the 32 threads of threadIdx.x, which wait for each other in it; give it all of them

// -----

// A barrier asks for loops around it.

func.func @alone() {
  lw_loop.for i in 2 {
    lw_loop.barrier where (k >= 0)
  }
  func.return
}

// CHECK: a barrier asks for 'k', which is no loop around it
