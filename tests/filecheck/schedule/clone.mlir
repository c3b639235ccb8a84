// RUN: xdsl-opt %s -p 'lw-clone{block=p reader=c}' | filecheck %s
// RUN: xdsl-opt %s -p 'lw-clone{block=p reader=c label=q},lw-compute-at{block=q loop=i}' | filecheck %s --check-prefix=MOVED
// RUN: xdsl-opt %s -p 'lw-clone{block=p reader=p}' --verify-diagnostics | filecheck %s --check-prefix=READER
// RUN: xdsl-opt %s -p 'lw-clone{block=c reader=d}' --verify-diagnostics | filecheck %s --check-prefix=OUTPUT
// RUN: xdsl-opt %s -p 'lw-split{block=p loop=x factors=0,4},lw-clone{block=p reader=c}' --verify-diagnostics | filecheck %s --check-prefix=TOUCHED
// RUN: xdsl-opt %s -p 'lw-clone{block=s reader=u}' | filecheck %s --check-prefix=SCALAR

func.func @two(%a: memref<8x6xf32> {lw.name = "a"}, %c: memref<8xf32> {lw.name = "c", lw.output}, %d: memref<8xf32> {lw.name = "d", lw.output}) {
  %p = lw_loop.alloc "p" : memref<8xf32>
  lw_loop.for x in 8 {
    lw_loop.for k in 6 {
      lw_loop.block p (x in 8 = x, reduce k in 6 = k) writes %p[x] : memref<8xf32> add {
        %0 = lw_loop.load %a[x, k] : memref<8x6xf32>
        lw_te.yield %0 : f32
      }
    }
  }
  lw_loop.for i in 8 {
    lw_loop.block c (i in 8 = i) writes %c[i] : memref<8xf32> {
      %1 = lw_loop.load %p[i] : memref<8xf32>
      lw_te.yield %1 : f32
    }
  }
  lw_loop.for j in 8 {
    lw_loop.block d (j in 8 = j) writes %d[j] : memref<8xf32> {
      %2 = lw_loop.load %p[7 - j] : memref<8xf32>
      lw_te.yield %2 : f32
    }
  }
  func.return
}

func.func @scalar(%b: memref<8xf32> {lw.name = "b"}, %u: memref<f32> {lw.name = "u", lw.output}, %v: memref<f32> {lw.name = "v", lw.output}) {
  %s = lw_loop.alloc "s" : memref<f32>
  lw_loop.block s () writes %s[] : memref<f32> {
    %3 = lw_loop.load %b[2] : memref<8xf32>
    lw_te.yield %3 : f32
  }
  lw_loop.block u () writes %u[] : memref<f32> {
    %4 = lw_loop.load %s[] : memref<f32>
    lw_te.yield %4 : f32
  }
  lw_loop.block v () writes %v[] : memref<f32> {
    %5 = lw_loop.load %s[] : memref<f32>
    lw_te.yield %5 : f32
  }
  func.return
}

// CHECK: %p_clone = lw_loop.alloc "p_clone" : memref<8xf32>
// CHECK: lw_loop.block p (x in 8 = x, reduce k in 6 = k) writes %p[x]
// CHECK: lw_loop.for x in 8 {
// CHECK-NEXT: lw_loop.for k in 6 {
// CHECK-NEXT: lw_loop.block p_clone (x in 8 = x, reduce k in 6 = k) writes %p_clone[x] : memref<8xf32> add {
// CHECK-NEXT: lw_loop.load %a[x, k]
// CHECK: lw_loop.block c
// CHECK-NEXT: lw_loop.load %p_clone[i]
// CHECK: lw_loop.block d
// CHECK-NEXT: lw_loop.load %p[

// MOVED: lw_loop.block p (
// MOVED: lw_loop.for i in 8 {
// MOVED: lw_loop.block q (
// MOVED: lw_loop.block c (

// READER: 'p' must be one of several blocks that read what 'p' writes; those that do: c, d
// OUTPUT: block 'c' must write one buffer, which is no output of the function
// TOUCHED: block 'p' must stand alone in a loop for each of its iterators; do this step before others of it

// SCALAR: lw_loop.block s ()
// SCALAR: lw_loop.block s_clone () writes %s_clone[] : memref<f32> {
// SCALAR-NEXT: lw_loop.load %b[2]
// SCALAR: lw_loop.block u ()
// SCALAR-NEXT: lw_loop.load %s_clone[]
// SCALAR: lw_loop.block v ()
// SCALAR-NEXT: lw_loop.load %s[]
