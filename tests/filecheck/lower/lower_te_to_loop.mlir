// RUN: xdsl-opt %s -p lw-lower-te-to-loop --split-input-file --verify-diagnostics --parsing-diagnostics | filecheck %s

// One nest and one block for each expression; what is returned becomes an argument behind the inputs, the rest a buffer.
// Attributes of arguments stay.

func.func @conv(%data: tensor<1x2x5xf32> {lw.name = "data"}, %w: tensor<3x2x3xf32> {lw.name = "w", lw.constant}) -> tensor<1x3x5xf32> {
  %pad = lw_te.compute "pad" [n = 1, c = 2, x = 7] -> tensor<1x2x7xf32> {
    %0 = lw_te.read %data[n, c, x - 1] where (x - 1 >= 0, 5 - x >= 0) : tensor<1x2x5xf32>
    lw_te.yield %0 : f32
  }
  %conv = lw_te.compute "conv" [n = 1, f = 3, x = 5, reduce c = 2, reduce r = 3] add -> tensor<1x3x5xf32> {
    %0 = lw_te.read %pad[n, c, x + r] : tensor<1x2x7xf32>
    %1 = lw_te.read %w[f, c, r] : tensor<3x2x3xf32>
    %2 = arith.mulf %0, %1 : f32
    lw_te.yield %2 : f32
  }
  func.return %conv : tensor<1x3x5xf32>
}

// CHECK: func.func @conv(%data: memref<1x2x5xf32> {lw.name = "data"}, %w: memref<3x2x3xf32> {lw.name = "w", lw.constant}, %conv: memref<1x3x5xf32> {lw.name = "conv", lw.output}) {
// CHECK-NEXT: %pad = lw_loop.alloc "pad" : memref<1x2x7xf32>
// CHECK-NEXT: lw_loop.for n in 1 {
// CHECK-NEXT: lw_loop.for c in 2 {
// CHECK-NEXT: lw_loop.for x in 7 {
// CHECK-NEXT: lw_loop.block pad (n in 1 = n, c in 2 = c, x in 7 = x) writes %pad[n, c, x] : memref<1x2x7xf32> {
// CHECK-NEXT: %[[V0:[0-9]+]] = lw_loop.load %data[n, c, x - 1] where (x - 1 >= 0, 5 - x >= 0) : memref<1x2x5xf32>
// CHECK-NEXT: lw_te.yield %[[V0]] : f32
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: lw_loop.for n in 1 {
// CHECK-NEXT: lw_loop.for f in 3 {
// CHECK-NEXT: lw_loop.for x in 5 {
// CHECK-NEXT: lw_loop.for c in 2 {
// CHECK-NEXT: lw_loop.for r in 3 {
// CHECK-NEXT: lw_loop.block conv (n in 1 = n, f in 3 = f, x in 5 = x, reduce c in 2 = c, reduce r in 3 = r) writes %conv[n, f, x] : memref<1x3x5xf32> add {
// CHECK-NEXT: %[[V1:[0-9]+]] = lw_loop.load %pad[n, c, x + r] : memref<1x2x7xf32>
// CHECK-NEXT: %[[V2:[0-9]+]] = lw_loop.load %w[f, c, r] : memref<3x2x3xf32>
// CHECK-NEXT: %[[V3:[0-9]+]] = arith.mulf %[[V1]], %[[V2]] : f32
// CHECK-NEXT: lw_te.yield %[[V3]] : f32
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: func.return
// CHECK-NEXT: }

// -----

// Several results of one expression, of which one is returned, and a combiner of its own.

func.func @argmax(%x: tensor<4x7xf32> {lw.name = "x"}) -> tensor<4xi32> {
  %best:2 = lw_te.compute "best" [i = 4, reduce k = 7] custom [-1 : i32, -1.000000e+30 : f32] -> tensor<4xi32>, tensor<4xf32> {
    %0 = lw_te.index k : i32
    %1 = lw_te.read %x[i, k] : tensor<4x7xf32>
    lw_te.yield %0, %1 : i32, f32
  } combine {
  ^bb0(%p0: i32, %v0: f32, %p1: i32, %v1: f32):
    %2 = arith.cmpf oge, %v0, %v1 : f32
    %3 = arith.select %2, %p0, %p1 : i32
    %4 = arith.select %2, %v0, %v1 : f32
    lw_te.yield %3, %4 : i32, f32
  }
  func.return %best#0 : tensor<4xi32>
}

// CHECK: func.func @argmax(%x: memref<4x7xf32> {lw.name = "x"}, %best: memref<4xi32> {lw.name = "best", lw.output}) {
// CHECK-NEXT: %best1 = lw_loop.alloc "best1" : memref<4xf32>
// CHECK-NEXT: lw_loop.for i in 4 {
// CHECK-NEXT: lw_loop.for k in 7 {
// CHECK-NEXT: lw_loop.block best (i in 4 = i, reduce k in 7 = k) writes %best[i] : memref<4xi32>, %best1[i] : memref<4xf32> custom [-1 : i32, -1.000000e+30 : f32] {
// CHECK-NEXT: %[[V0:[0-9]+]] = lw_te.index k : i32
// CHECK-NEXT: %[[V1:[0-9]+]] = lw_loop.load %x[i, k] : memref<4x7xf32>
// CHECK-NEXT: lw_te.yield %[[V0]], %[[V1]] : i32, f32
// CHECK-NEXT: } combine {
// CHECK-NEXT: ^bb0(%p0: i32, %v0: f32, %p1: i32, %v1: f32):
// CHECK-NEXT: %[[V2:[0-9]+]] = arith.cmpf oge, %v0, %v1 : f32
// CHECK-NEXT: %[[V3:[0-9]+]] = arith.select %[[V2]], %p0, %p1 : i32
// CHECK-NEXT: %[[V4:[0-9]+]] = arith.select %[[V2]], %v0, %v1 : f32
// CHECK-NEXT: lw_te.yield %[[V3]], %[[V4]] : i32, f32
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: func.return
// CHECK-NEXT: }

// -----

// A result that is returned twice, and an input that is returned, are copied; equal names are told apart.

func.func @copies(%x: tensor<3xf32> {lw.name = "x"}) -> (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) {
  %y = lw_te.compute "x" [i = 3] -> tensor<3xf32> {
    %0 = lw_te.read %x[2 - i] : tensor<3xf32>
    lw_te.yield %0 : f32
  }
  func.return %y, %y, %x : tensor<3xf32>, tensor<3xf32>, tensor<3xf32>
}

// CHECK: func.func @copies(%x: memref<3xf32> {lw.name = "x"}, %x1: memref<3xf32> {lw.name = "x1", lw.output}, %x2: memref<3xf32> {lw.name = "x2", lw.output}, %output: memref<3xf32> {lw.name = "output", lw.output}) {
// CHECK-NEXT: lw_loop.for i in 3 {
// CHECK-NEXT: lw_loop.block x (i in 3 = i) writes %x1[i] : memref<3xf32> {
// CHECK-NEXT: %[[V0:[0-9]+]] = lw_loop.load %x[2 - i] : memref<3xf32>
// CHECK-NEXT: lw_te.yield %[[V0]] : f32
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: lw_loop.for i0 in 3 {
// CHECK-NEXT: lw_loop.block x2 (i0 in 3 = i0) writes %x2[i0] : memref<3xf32> {
// CHECK-NEXT: %[[V1:[0-9]+]] = lw_loop.load %x1[i0] : memref<3xf32>
// CHECK-NEXT: lw_te.yield %[[V1]] : f32
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: lw_loop.for i0 in 3 {
// CHECK-NEXT: lw_loop.block output (i0 in 3 = i0) writes %output[i0] : memref<3xf32> {
// CHECK-NEXT: %[[V2:[0-9]+]] = lw_loop.load %x[i0] : memref<3xf32>
// CHECK-NEXT: lw_te.yield %[[V2]] : f32
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: func.return
// CHECK-NEXT: }

// -----

// No loops for no axes.

func.func @scalar(%x: tensor<f32>) -> tensor<f32> {
  %y = lw_te.compute "y" [] -> tensor<f32> {
    %0 = lw_te.read %x[] : tensor<f32>
    %1 = arith.addf %0, %0 : f32
    lw_te.yield %1 : f32
  }
  func.return %y : tensor<f32>
}

// CHECK: func.func @scalar(%x: memref<f32> {lw.name = "x"}, %y: memref<f32> {lw.name = "y", lw.output}) {
// CHECK-NEXT: lw_loop.block y () writes %y[] : memref<f32> {
// CHECK-NEXT: %[[V0:[0-9]+]] = lw_loop.load %x[] : memref<f32>
// CHECK-NEXT: %[[V1:[0-9]+]] = arith.addf %[[V0]], %[[V0]] : f32
// CHECK-NEXT: lw_te.yield %[[V1]] : f32
// CHECK-NEXT: }
// CHECK-NEXT: func.return
// CHECK-NEXT: }

// -----

// Functions on anything but tensors stay as they are.

func.func @other(%x: memref<4xf32>, %i: index) {
  func.return
}

// CHECK: func.func @other(%x: memref<4xf32>, %i: index) {
// CHECK-NEXT: func.return
// CHECK-NEXT: }

// -----

func.func @unknown(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = "test.op"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// CHECK: lw-lower-te-to-loop: expected one function of lw_te.compute on tensors, it holds test.op; loops and other dialects are not read

// -----

// Loops and iterators are not called as parts of other axes will be, or as several of them fused: `i0` and `i_j` are not.

func.func @parts(%a: tensor<4x2x3xf32>) -> tensor<4x3xf32> {
  %out = lw_te.compute "out" [i = 4, i_j = 3, reduce i0 = 2] add -> tensor<4x3xf32> {
    %0 = lw_te.read %a[i, 1 - i0, i_j] where (i_j - 1 >= 0) : tensor<4x2x3xf32>
    lw_te.yield %0 : f32
  }
  func.return %out : tensor<4x3xf32>
}

// CHECK: func.func @parts(%a: memref<4x2x3xf32> {lw.name = "a"}, %out: memref<4x3xf32> {lw.name = "out", lw.output}) {
// CHECK-NEXT: lw_loop.for i in 4 {
// CHECK-NEXT: lw_loop.for i_j in 3 {
// CHECK-NEXT: lw_loop.for i0x in 2 {
// CHECK-NEXT: lw_loop.block out (i in 4 = i, i_j in 3 = i_j, reduce i0x in 2 = i0x) writes %out[i, i_j] : memref<4x3xf32> add {
// CHECK-NEXT: %[[V0:[0-9]+]] = lw_loop.load %a[i, 1 - i0x, i_j] where (i_j - 1 >= 0) : memref<4x2x3xf32>

// -----

// What no result hangs on has no nest, nor what that alone reads.

func.func @unread(%x: tensor<3xf32> {lw.name = "x"}) -> tensor<3xf32> {
  %below = lw_te.compute "below" [i = 3] -> tensor<3xf32> {
    %0 = lw_te.read %x[i] : tensor<3xf32>
    lw_te.yield %0 : f32
  }
  %unread = lw_te.compute "unread" [i = 3] -> tensor<3xf32> {
    %0 = lw_te.read %below[i] : tensor<3xf32>
    lw_te.yield %0 : f32
  }
  %y = lw_te.compute "y" [i = 3] -> tensor<3xf32> {
    %0 = lw_te.read %x[i] : tensor<3xf32>
    lw_te.yield %0 : f32
  }
  func.return %y : tensor<3xf32>
}

// CHECK: func.func @unread(%x: memref<3xf32> {lw.name = "x"}, %y: memref<3xf32> {lw.name = "y", lw.output}) {
// CHECK-NEXT: lw_loop.for i in 3 {
// CHECK-NEXT: lw_loop.block y (i in 3 = i) writes %y[i] : memref<3xf32> {
// CHECK-NEXT: %[[V0:[0-9]+]] = lw_loop.load %x[i] : memref<3xf32>
// CHECK-NEXT: lw_te.yield %[[V0]] : f32
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: func.return
// CHECK-NEXT: }
