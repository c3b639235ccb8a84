// RUN: xdsl-opt %s -p 'lw-online-softmax{block=c terms=4}' | filecheck %s
// RUN: xdsl-opt %s -p 'lw-online-softmax{block=c}' | filecheck %s --check-prefix=ONE
// RUN: xdsl-opt %s -p 'lw-online-softmax{block=c terms=4 padded=1}' | filecheck %s --check-prefix=PADDED
// RUN: xdsl-opt %s -p 'lw-online-softmax{block=c padded=1}' --verify-diagnostics | filecheck %s --check-prefix=WHOLE
// RUN: xdsl-opt %s -p 'lw-online-softmax{block=c terms=-1}' --verify-diagnostics | filecheck %s --check-prefix=TERMS
// RUN: xdsl-opt %s -p 'lw-online-softmax{block=total}' --verify-diagnostics | filecheck %s --check-prefix=SUM
// RUN: xdsl-opt %s -p 'lw-split{block=largest loop=k factors=0,4},lw-online-softmax{block=c}' --verify-diagnostics | filecheck %s --check-prefix=SPLIT
// RUN: xdsl-opt %s -p 'lw-compute-inline{block=w},lw-online-softmax{block=c}' --verify-diagnostics | filecheck %s --check-prefix=INLINED

func.func @weighted(%x: memref<2x7xf32> {lw.name = "x"}, %v: memref<7x3xf32> {lw.name = "v"}, %c: memref<2x3xf32> {lw.name = "c", lw.output}) {
  %largest = lw_loop.alloc "largest" : memref<2xf32>
  %e = lw_loop.alloc "e" : memref<2x7xf32>
  %total = lw_loop.alloc "total" : memref<2xf32>
  %w = lw_loop.alloc "w" : memref<2x7xf32>
  lw_loop.for i0 in 2 {
    lw_loop.for k in 7 {
      lw_loop.block largest (i0 in 2 = i0, reduce k in 7 = k) writes %largest[i0] : memref<2xf32> max {
        %0 = lw_loop.load %x[i0, k] : memref<2x7xf32>
        lw_te.yield %0 : f32
      }
    }
  }
  lw_loop.for i0 in 2 {
    lw_loop.for i1 in 7 {
      lw_loop.block e (i0 in 2 = i0, i1 in 7 = i1) writes %e[i0, i1] : memref<2x7xf32> {
        %1 = lw_loop.load %x[i0, i1] : memref<2x7xf32>
        %2 = lw_loop.load %largest[i0] : memref<2xf32>
        %3 = arith.subf %1, %2 : f32
        %4 = math.exp %3 : f32
        lw_te.yield %4 : f32
      }
    }
  }
  lw_loop.for i0 in 2 {
    lw_loop.for k in 7 {
      lw_loop.block total (i0 in 2 = i0, reduce k in 7 = k) writes %total[i0] : memref<2xf32> add {
        %5 = lw_loop.load %e[i0, k] : memref<2x7xf32>
        lw_te.yield %5 : f32
      }
    }
  }
  lw_loop.for i0 in 2 {
    lw_loop.for i1 in 7 {
      lw_loop.block w (i0 in 2 = i0, i1 in 7 = i1) writes %w[i0, i1] : memref<2x7xf32> {
        %6 = lw_loop.load %e[i0, i1] : memref<2x7xf32>
        %7 = lw_loop.load %total[i0] : memref<2xf32>
        %8 = arith.divf %6, %7 : f32
        lw_te.yield %8 : f32
      }
    }
  }
  lw_loop.for i in 2 {
    lw_loop.for j in 3 {
      lw_loop.for k in 7 {
        lw_loop.block c (i in 2 = i, j in 3 = j, reduce k in 7 = k) writes %c[i, j] : memref<2x3xf32> add {
          %9 = lw_loop.load %w[i, k] : memref<2x7xf32>
          %10 = lw_loop.load %v[k, j] : memref<7x3xf32>
          %11 = arith.mulf %9, %10 : f32
          lw_te.yield %11 : f32
        }
      }
    }
  }
  func.return
}

// Blocks of terms: their maxima, exponentials, sums and weighted sums, what is carried over them, and the division.
// CHECK: %largest = lw_loop.alloc "largest" : memref<2x2xf32>
// CHECK: %e = lw_loop.alloc "e" : memref<2x2x4xf32>
// CHECK: %total = lw_loop.alloc "total" : memref<2x2xf32>
// CHECK: %c_part = lw_loop.alloc "c_part" : memref<2x2x3xf32>
// CHECK: %c_run = lw_loop.alloc "c_run" : memref<2x3xf32>
// CHECK: %c_sum = lw_loop.alloc "c_sum" : memref<2x3xf32>
// CHECK: %c_max = lw_loop.alloc "c_max" : memref<2x3xf32>
// CHECK: lw_loop.for i0 in 2 {
// CHECK: lw_loop.for k0 in 2 {
// CHECK: lw_loop.for k1 in 4 {
// CHECK: lw_loop.block largest (i0 in 2 = i0, k0 in 2 = k0, reduce k1 in 4 = k1) where (6 - k0 * 4 - k1 >= 0) writes %largest[k0, i0] : memref<2x2xf32> max {
// CHECK: [[V0:%[0-9]+]] = lw_loop.load %x[i0, k0 * 4 + k1] : memref<2x7xf32>
// CHECK: lw_te.yield [[V0]] : f32
// CHECK: lw_loop.for i0 in 2 {
// CHECK: lw_loop.for i10 in 2 {
// CHECK: lw_loop.for i11 in 4 {
// CHECK: lw_loop.block e (i0 in 2 = i0, i10 in 2 = i10, i11 in 4 = i11) where (6 - i10 * 4 - i11 >= 0) writes %e[i10, i0, i11] : memref<2x2x4xf32> {
// CHECK: [[V1:%[0-9]+]] = lw_loop.load %largest[i10, i0] : memref<2x2xf32>
// CHECK: [[V2:%[0-9]+]] = arith.constant 0xff800000 : f32
// CHECK: [[V3:%[0-9]+]] = arith.constant 0.000000e+00 : f32
// CHECK: [[V4:%[0-9]+]] = arith.cmpf oeq, [[V1]], [[V2]] : f32
// CHECK: [[V5:%[0-9]+]] = arith.select [[V4]], [[V3]], [[V1]] : f32
// CHECK: [[V6:%[0-9]+]] = lw_loop.load %x[i0, i10 * 4 + i11] : memref<2x7xf32>
// CHECK: [[V7:%[0-9]+]] = arith.subf [[V6]], [[V5]] : f32
// CHECK: [[V8:%[0-9]+]] = math.exp [[V7]] : f32
// CHECK: lw_te.yield [[V8]] : f32
// CHECK: lw_loop.for i0 in 2 {
// CHECK: lw_loop.for k0 in 2 {
// CHECK: lw_loop.for k1 in 4 {
// CHECK: lw_loop.block total (i0 in 2 = i0, k0 in 2 = k0, reduce k1 in 4 = k1) where (6 - k0 * 4 - k1 >= 0) writes %total[k0, i0] : memref<2x2xf32> add {
// CHECK: [[V9:%[0-9]+]] = lw_loop.load %e[k0, i0, k1] : memref<2x2x4xf32>
// CHECK: lw_te.yield [[V9]] : f32
// CHECK: lw_loop.for i in 2 {
// CHECK: lw_loop.for j in 3 {
// CHECK: lw_loop.for k0 in 2 {
// CHECK: lw_loop.for k1 in 4 {
// CHECK: lw_loop.block c_part (i in 2 = i, j in 3 = j, k0 in 2 = k0, reduce k1 in 4 = k1) where (6 - k0 * 4 - k1 >= 0) writes %c_part[k0, i, j] : memref<2x2x3xf32> add {
// CHECK: [[V10:%[0-9]+]] = lw_loop.load %e[k0, i, k1] : memref<2x2x4xf32>
// CHECK: [[V11:%[0-9]+]] = lw_loop.load %v[k0 * 4 + k1, j] : memref<7x3xf32>
// CHECK: [[V12:%[0-9]+]] = arith.mulf [[V10]], [[V11]] : f32
// CHECK: lw_te.yield [[V12]] : f32
// CHECK: lw_loop.for i in 2 {
// CHECK: lw_loop.for j in 3 {
// CHECK: lw_loop.for k0 in 2 {
// CHECK: lw_loop.block c_run (i in 2 = i, j in 3 = j, reduce k0 in 2 = k0) writes %c_run[i, j] : memref<2x3xf32>, %c_sum[i, j] : memref<2x3xf32>, %c_max[i, j] : memref<2x3xf32> custom [0.000000e+00 : f32, 0.000000e+00 : f32, 0xff800000 : f32] {
// CHECK: [[V13:%[0-9]+]] = lw_loop.load %c_part[k0, i, j] : memref<2x2x3xf32>
// CHECK: [[V14:%[0-9]+]] = lw_loop.load %total[k0, i] : memref<2x2xf32>
// CHECK: [[V15:%[0-9]+]] = lw_loop.load %largest[k0, i] : memref<2x2xf32>
// CHECK: lw_te.yield [[V13]], [[V14]], [[V15]] : f32, f32, f32
// CHECK: } combine {
// CHECK: ^bb0([[V16:%[0-9]+]]: f32, [[V17:%[0-9]+]]: f32, [[V18:%[0-9]+]]: f32, [[V19:%[0-9]+]]: f32, [[V20:%[0-9]+]]: f32, [[V21:%[0-9]+]]: f32):
// CHECK: [[V22:%[0-9]+]] = arith.constant 1.000000e+00 : f32
// CHECK: [[V23:%[0-9]+]] = arith.constant 0.000000e+00 : f32
// CHECK: [[V24:%[0-9]+]] = arith.maximumf [[V18]], [[V21]] : f32
// CHECK: [[V25:%[0-9]+]] = arith.cmpf oge, [[V18]], [[V21]] : f32
// CHECK: [[V26:%[0-9]+]] = arith.cmpf oeq, [[V18]], [[V21]] : f32
// CHECK: [[V27:%[0-9]+]] = arith.subf [[V18]], [[V21]] : f32
// CHECK: [[V28:%[0-9]+]] = arith.subf [[V21]], [[V18]] : f32
// CHECK: [[V29:%[0-9]+]] = arith.minimumf [[V27]], [[V28]] : f32
// CHECK: [[V30:%[0-9]+]] = arith.select [[V26]], [[V23]], [[V29]] : f32
// CHECK: [[V31:%[0-9]+]] = math.exp [[V30]] : f32
// CHECK: [[V32:%[0-9]+]] = arith.select [[V25]], [[V22]], [[V31]] : f32
// CHECK: [[V33:%[0-9]+]] = arith.select [[V25]], [[V31]], [[V22]] : f32
// CHECK: [[V34:%[0-9]+]] = arith.mulf [[V16]], [[V32]] : f32
// CHECK: [[V35:%[0-9]+]] = arith.mulf [[V19]], [[V33]] : f32
// CHECK: [[V36:%[0-9]+]] = arith.addf [[V34]], [[V35]] : f32
// CHECK: [[V37:%[0-9]+]] = arith.mulf [[V17]], [[V32]] : f32
// CHECK: [[V38:%[0-9]+]] = arith.mulf [[V20]], [[V33]] : f32
// CHECK: [[V39:%[0-9]+]] = arith.addf [[V37]], [[V38]] : f32
// CHECK: lw_te.yield [[V36]], [[V39]], [[V24]] : f32, f32, f32
// CHECK: lw_loop.for i in 2 {
// CHECK: lw_loop.for j in 3 {
// CHECK: lw_loop.block c (i in 2 = i, j in 3 = j) writes %c[i, j] : memref<2x3xf32> {
// CHECK: [[V40:%[0-9]+]] = lw_loop.load %c_run[i, j] : memref<2x3xf32>
// CHECK: [[V41:%[0-9]+]] = lw_loop.load %c_sum[i, j] : memref<2x3xf32>
// CHECK: [[V42:%[0-9]+]] = arith.divf [[V40]], [[V41]] : f32
// CHECK: lw_te.yield [[V42]] : f32

// One block: the sum is divided, not its weights.
// ONE: %largest = lw_loop.alloc "largest" : memref<2xf32>
// ONE: %e = lw_loop.alloc "e" : memref<2x7xf32>
// ONE: %total = lw_loop.alloc "total" : memref<2xf32>
// ONE: %c_part = lw_loop.alloc "c_part" : memref<2x3xf32>
// ONE: lw_loop.for i0 in 2 {
// ONE: lw_loop.for k in 7 {
// ONE: lw_loop.block largest (i0 in 2 = i0, reduce k in 7 = k) writes %largest[i0] : memref<2xf32> max {
// ONE: [[V0:%[0-9]+]] = lw_loop.load %x[i0, k] : memref<2x7xf32>
// ONE: lw_te.yield [[V0]] : f32
// ONE: lw_loop.for i0 in 2 {
// ONE: lw_loop.for i1 in 7 {
// ONE: lw_loop.block e (i0 in 2 = i0, i1 in 7 = i1) writes %e[i0, i1] : memref<2x7xf32> {
// ONE: [[V1:%[0-9]+]] = lw_loop.load %x[i0, i1] : memref<2x7xf32>
// ONE: [[V2:%[0-9]+]] = lw_loop.load %largest[i0] : memref<2xf32>
// ONE: [[V3:%[0-9]+]] = arith.subf [[V1]], [[V2]] : f32
// ONE: [[V4:%[0-9]+]] = math.exp [[V3]] : f32
// ONE: lw_te.yield [[V4]] : f32
// ONE: lw_loop.for i0 in 2 {
// ONE: lw_loop.for k in 7 {
// ONE: lw_loop.block total (i0 in 2 = i0, reduce k in 7 = k) writes %total[i0] : memref<2xf32> add {
// ONE: [[V5:%[0-9]+]] = lw_loop.load %e[i0, k] : memref<2x7xf32>
// ONE: lw_te.yield [[V5]] : f32
// ONE: lw_loop.for i in 2 {
// ONE: lw_loop.for j in 3 {
// ONE: lw_loop.for k in 7 {
// ONE: lw_loop.block c_part (i in 2 = i, j in 3 = j, reduce k in 7 = k) writes %c_part[i, j] : memref<2x3xf32> add {
// ONE: [[V6:%[0-9]+]] = lw_loop.load %e[i, k] : memref<2x7xf32>
// ONE: [[V7:%[0-9]+]] = lw_loop.load %v[k, j] : memref<7x3xf32>
// ONE: [[V8:%[0-9]+]] = arith.mulf [[V6]], [[V7]] : f32
// ONE: lw_te.yield [[V8]] : f32
// ONE: lw_loop.for i in 2 {
// ONE: lw_loop.for j in 3 {
// ONE: lw_loop.block c (i in 2 = i, j in 3 = j) writes %c[i, j] : memref<2x3xf32> {
// ONE: [[V9:%[0-9]+]] = lw_loop.load %c_part[i, j] : memref<2x3xf32>
// ONE: [[V10:%[0-9]+]] = lw_loop.load %total[i] : memref<2xf32>
// ONE: [[V11:%[0-9]+]] = arith.divf [[V9]], [[V10]] : f32
// ONE: lw_te.yield [[V11]] : f32

// TERMS: lw-online-softmax{block="c" terms=-1}: terms must be at least 1, or 0 for all in one block, got -1
// SUM: lw-online-softmax{block="total"}: 'total' must be a sum weighted by a softmax, each in blocks of their own: 'total' is no sum of products
// SPLIT: lw-online-softmax{block="c"}: 'c' must be a sum weighted by a softmax, each in blocks of their own: 'largest' has been scheduled already
// INLINED: lw-online-softmax{block="c"}: 'c' must be a sum weighted by a softmax, each in blocks of their own: no factor of 'c' is a quotient that it alone reads

// With whole blocks, terms beyond the end are -inf, their exponentials 0, and so is what they weigh.
// PADDED-NOT: lw_loop.block {{.*}} where
// PADDED: lw_loop.block largest (i0 in 2 = i0, k0 in 2 = k0, reduce k1 in 4 = k1) writes
// PADDED: %[[X:[0-9]+]] = lw_loop.load %x[i0, k0 * 4 + k1] where (6 - k0 * 4 - k1 >= 0) : memref<2x7xf32>
// PADDED: %[[IN:[0-9]+]] = lw_te.predicate (6 - k0 * 4 - k1 >= 0)
// PADDED: %[[LOW:[0-9]+]] = arith.constant 0xff800000 : f32
// PADDED: arith.select %[[IN]], %[[X]], %[[LOW]] : f32
// PADDED: lw_loop.block e (
// PADDED: %[[IN2:[0-9]+]] = lw_te.predicate
// PADDED: %[[ZERO:[0-9]+]] = arith.constant 0.000000e+00 : f32
// PADDED: arith.select %[[IN2]], %{{[0-9]+}}, %[[ZERO]] : f32
// PADDED: lw_loop.block c_part (
// PADDED: lw_loop.load %v[k0 * 4 + k1, j] where (6 - k0 * 4 - k1 >= 0) : memref<7x3xf32>
// WHOLE: padded must be 0, or 1 for blocks of terms, got 1
