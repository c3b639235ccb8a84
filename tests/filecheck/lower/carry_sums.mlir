// RUN: xdsl-opt %s -p lw-carry-sums --split-input-file --verify-diagnostics | filecheck %s
// RUN: xdsl-opt %s -p lw-carry-sums,lw-carry-sums --split-input-file --verify-diagnostics | filecheck %s --check-prefix=EARLY

// Exponentials are relative to the maximum of all blocks so far, so that what they weigh is added to the running sums.

builtin.module attributes {lw.target = #lw.target<"cuda max_threads_per_block=64 warp_size=32 compute_capability=90">} {
  func.func @main(%x: memref<8x12xf32> {lw.name = "x"}, %v: memref<12x2xf32> {lw.name = "v"}, %out: memref<8x2xf32> {lw.name = "out", lw.output}) attributes {lw.lowered_by = "lw-end-loops"} {
    lw_loop.for blockIdx.x in 2 blockIdx.x {
      lw_loop.for threadIdx.x in 4 threadIdx.x {
        %out_run = lw_loop.alloc "out_run" placed [blockIdx.x * 4 + threadIdx.x, 0] of [1, 2] strides [2, 1] : memref<8x2xf32, "local">
        %out_sum = lw_loop.alloc "out_sum" placed [blockIdx.x * 4 + threadIdx.x, 0] of [1, 1] strides [1, 1] : memref<8x2xf32, "local">
        %out_max = lw_loop.alloc "out_max" placed [blockIdx.x * 4 + threadIdx.x, 0] of [1, 1] strides [1, 1] : memref<8x2xf32, "local">
        lw_loop.for c$1 in 2 {
          lw_loop.block out_run$start (i in 8 = blockIdx.x * 4 + threadIdx.x, c in 2 = c$1) annotated {starts = "out_run"} writes %out_run[i, c] : memref<8x2xf32, "local">, %out_sum[i, 0] : memref<8x2xf32, "local">, %out_max[i, 0] : memref<8x2xf32, "local"> {
            %0 = arith.constant 0.000000e+00 : f32
            %1 = arith.constant 0.000000e+00 : f32
            %2 = arith.constant 0xff800000 : f32
            lw_te.yield %0, %1, %2 : f32, f32, f32
          }
        }
        lw_loop.for r0 in 3 {
          %largest = lw_loop.alloc "largest" placed [r0, blockIdx.x * 4 + threadIdx.x] of [1, 1] strides [1, 1] : memref<3x8xf32, "local">
          %powers = lw_loop.alloc "powers" placed [r0, blockIdx.x * 4 + threadIdx.x, 0] of [1, 1, 4] strides [4, 4, 1] : memref<3x8x4xf32, "local">
          %out_part = lw_loop.alloc "out_part" placed [r0, blockIdx.x * 4 + threadIdx.x, 0] of [1, 1, 2] strides [2, 2, 1] : memref<3x8x2xf32, "local">
          %total = lw_loop.alloc "total" placed [r0, blockIdx.x * 4 + threadIdx.x] of [1, 1] strides [1, 1] : memref<3x8xf32, "local">
          lw_loop.block largest$start (i in 8 = blockIdx.x * 4 + threadIdx.x, k0 in 3 = r0) annotated {starts = "largest"} writes %largest[k0, i] : memref<3x8xf32, "local"> {
            %3 = arith.constant 0xff800000 : f32
            lw_te.yield %3 : f32
          }
          lw_loop.for k1 in 4 {
            lw_loop.block largest (i in 8 = blockIdx.x * 4 + threadIdx.x, k0 in 3 = r0, reduce k1 in 4 = k1) writes %largest[k0, i] : memref<3x8xf32, "local"> max no_init {
              %4 = lw_loop.load %x[i, k0 * 4 + k1] : memref<8x12xf32>
              lw_te.yield %4 : f32
            }
          }
          lw_loop.for j1 in 4 {
            lw_loop.block powers (i in 8 = blockIdx.x * 4 + threadIdx.x, j0 in 3 = r0, j1 in 4 = j1) writes %powers[j0, i, j1] : memref<3x8x4xf32, "local"> {
              %5 = lw_loop.load %largest[j0, i] : memref<3x8xf32, "local">
              %6 = arith.constant 0xff800000 : f32
              %7 = arith.constant 0.000000e+00 : f32
              %8 = arith.cmpf oeq, %5, %6 : f32
              %9 = arith.select %8, %7, %5 : f32
              %10 = lw_loop.load %x[i, j0 * 4 + j1] : memref<8x12xf32>
              %11 = arith.subf %10, %9 : f32
              %12 = math.exp %11 : f32
              lw_te.yield %12 : f32
            }
          }
          lw_loop.for c in 2 {
            lw_loop.block out_part$start (i in 8 = blockIdx.x * 4 + threadIdx.x, c in 2 = c, r0 in 3 = r0) annotated {starts = "out_part"} writes %out_part[r0, i, c] : memref<3x8x2xf32, "local"> {
              %13 = arith.constant 0.000000e+00 : f32
              lw_te.yield %13 : f32
            }
            lw_loop.for r1 in 4 {
              lw_loop.block out_part (i in 8 = blockIdx.x * 4 + threadIdx.x, c in 2 = c, r0 in 3 = r0, reduce r1 in 4 = r1) writes %out_part[r0, i, c] : memref<3x8x2xf32, "local"> add no_init {
                %14 = lw_loop.load %powers[r0, i, r1] : memref<3x8x4xf32, "local">
                %15 = lw_loop.load %v[r0 * 4 + r1, c] : memref<12x2xf32>
                %16 = arith.mulf %14, %15 : f32
                lw_te.yield %16 : f32
              }
            }
          }
          lw_loop.block total$start (i in 8 = blockIdx.x * 4 + threadIdx.x, n0 in 3 = r0) annotated {starts = "total"} writes %total[n0, i] : memref<3x8xf32, "local"> {
            %17 = arith.constant 0.000000e+00 : f32
            lw_te.yield %17 : f32
          }
          lw_loop.for n1 in 4 {
            lw_loop.block total (i in 8 = blockIdx.x * 4 + threadIdx.x, n0 in 3 = r0, reduce n1 in 4 = n1) writes %total[n0, i] : memref<3x8xf32, "local"> add no_init {
              %18 = lw_loop.load %powers[n0, i, n1] : memref<3x8x4xf32, "local">
              lw_te.yield %18 : f32
            }
          }
          lw_loop.for c$1 in 2 {
            lw_loop.block out_run (i in 8 = blockIdx.x * 4 + threadIdx.x, c in 2 = c$1, reduce r0 in 3 = r0) annotated {carried_once = {outputs = [1 : i64, 2 : i64], loops = ["c$1"]}} writes %out_run[i, c] : memref<8x2xf32, "local">, %out_sum[i, 0] : memref<8x2xf32, "local">, %out_max[i, 0] : memref<8x2xf32, "local"> custom [0.000000e+00 : f32, 0.000000e+00 : f32, 0xff800000 : f32] no_init {
              %19 = lw_loop.load %out_part[r0, i, c] : memref<3x8x2xf32, "local">
              %20 = lw_loop.load %total[r0, i] : memref<3x8xf32, "local">
              %21 = lw_loop.load %largest[r0, i] : memref<3x8xf32, "local">
              lw_te.yield %19, %20, %21 : f32, f32, f32
            } combine {
            ^bb0(%22: f32, %23: f32, %24: f32, %25: f32, %26: f32, %27: f32):
              %28 = arith.constant 1.000000e+00 : f32
              %29 = arith.constant 0.000000e+00 : f32
              %30 = arith.maximumf %24, %27 : f32
              %31 = arith.cmpf oge, %24, %27 : f32
              %32 = arith.cmpf oeq, %24, %27 : f32
              %33 = arith.subf %24, %27 : f32
              %34 = arith.subf %27, %24 : f32
              %35 = arith.minimumf %33, %34 : f32
              %36 = arith.select %32, %29, %35 : f32
              %37 = math.exp %36 : f32
              %38 = arith.select %31, %28, %37 : f32
              %39 = arith.select %31, %37, %28 : f32
              %40 = arith.mulf %22, %38 : f32
              %41 = arith.mulf %25, %39 : f32
              %42 = arith.addf %40, %41 : f32
              %43 = arith.mulf %23, %38 : f32
              %44 = arith.mulf %26, %39 : f32
              %45 = arith.addf %43, %44 : f32
              lw_te.yield %42, %45, %30 : f32, f32, f32
            }
          }
        }
        lw_loop.for c$2 in 2 {
          lw_loop.block out (i in 8 = blockIdx.x * 4 + threadIdx.x, c in 2 = c$2) writes %out[i, c] : memref<8x2xf32> {
            %46 = lw_loop.load %out_run[i, c] : memref<8x2xf32, "local">
            %47 = lw_loop.load %out_sum[i, 0] : memref<8x2xf32, "local">
            %48 = arith.divf %46, %47 : f32
            lw_te.yield %48 : f32
          }
        }
      }
    }
    func.return
  }
}

// CHECK: func.func @main({{.*}}) attributes {lw.lowered_by = "lw-carry-sums"} {
// CHECK: lw_loop.for r0 in 3 {
// CHECK: %[[REFERENCE:.*]] = lw_loop.alloc "largest_reference" placed [r0, blockIdx.x * 4 + threadIdx.x] of [1, 1] strides [1, 1]
// CHECK: %[[FACTOR:.*]] = lw_loop.alloc "largest_factor" placed [r0, blockIdx.x * 4 + threadIdx.x] of [1, 1] strides [1, 1]
// CHECK-NOT: lw_loop.alloc "out_part"
// CHECK: lw_loop.block out_run_factor (i in 8 = blockIdx.x * 4 + threadIdx.x, r0 in 3 = r0) writes %[[FACTOR]][r0, i] : memref<3x8xf32, "local">, %[[REFERENCE]][r0, i] : memref<3x8xf32, "local">, %out_max[i, 0]
// CHECK-NEXT: %[[OLD:.*]] = lw_loop.load %out_max[i, 0]
// CHECK-NEXT: %[[HERE:.*]] = lw_loop.load %largest[r0, i]
// CHECK-NEXT: %[[BOTH:.*]] = arith.maximumf %[[OLD]], %[[HERE]] : f32
// CHECK: %[[GUARDED:.*]] = arith.select %{{.*}}, %{{.*}}, %[[BOTH]] : f32
// CHECK-NEXT: %[[LESS:.*]] = arith.subf %[[OLD]], %[[GUARDED]] : f32
// CHECK-NEXT: %[[SHRUNK:.*]] = math.exp %[[LESS]] : f32
// CHECK-NEXT: lw_te.yield %[[SHRUNK]], %[[GUARDED]], %[[BOTH]]
// CHECK: lw_loop.block powers
// CHECK-NEXT: %[[RELATIVE:.*]] = lw_loop.load %[[REFERENCE]][j0, i]
// CHECK-NEXT: %[[X:.*]] = lw_loop.load %x[i, j0 * 4 + j1]
// CHECK-NEXT: %[[DISTANCE:.*]] = arith.subf %[[X]], %[[RELATIVE]] : f32
// CHECK-NEXT: math.exp %[[DISTANCE]] : f32
// CHECK: lw_loop.for c$1 in 2 {
// CHECK-NEXT: lw_loop.block out_run (i in 8 = blockIdx.x * 4 + threadIdx.x, c in 2 = c$1, r0 in 3 = r0) writes %out_run[i, c]
// CHECK-NEXT: %[[SUM:.*]] = lw_loop.load %out_run[i, c]
// CHECK-NEXT: %[[SCALE:.*]] = lw_loop.load %[[FACTOR]][r0, i]
// CHECK-NEXT: arith.mulf %[[SUM]], %[[SCALE]] : f32
// CHECK-NOT: out_part$start
// CHECK: lw_loop.block out_part (i in 8 = blockIdx.x * 4 + threadIdx.x, c in 2 = c, reduce r0 in 3 = r0, reduce r1 in 4 = r1) writes %out_run[i, c] : memref<8x2xf32, "local"> add no_init {
// CHECK: lw_loop.block out_run_sum (i in 8 = blockIdx.x * 4 + threadIdx.x, r0 in 3 = r0) writes %out_sum[i, 0]
// CHECK-NEXT: %[[BEFORE:.*]] = lw_loop.load %out_sum[i, 0]
// CHECK-NEXT: %[[BY:.*]] = lw_loop.load %[[FACTOR]][r0, i]
// CHECK-NEXT: %[[NEW:.*]] = lw_loop.load %total[r0, i]
// CHECK-NEXT: %[[SCALED:.*]] = arith.mulf %[[BEFORE]], %[[BY]] : f32
// CHECK-NEXT: arith.addf %[[SCALED]], %[[NEW]] : f32
// CHECK-NOT: combine

// EARLY: lw-carry-sums: function 'main': run lw-end-loops right before this, lw-carry-sums was the last step

// -----

// Those of 16 bits are powers of 2.

builtin.module attributes {lw.target = #lw.target<"cuda max_threads_per_block=64 warp_size=32 compute_capability=90">} {
  func.func @main(%x: memref<8x12xf32> {lw.name = "x"}, %v: memref<12x2xf32> {lw.name = "v"}, %out: memref<8x2xf32> {lw.name = "out", lw.output}) attributes {lw.lowered_by = "lw-end-loops"} {
    lw_loop.for blockIdx.x in 2 blockIdx.x {
      lw_loop.for threadIdx.x in 4 threadIdx.x {
        %out_run = lw_loop.alloc "out_run" placed [blockIdx.x * 4 + threadIdx.x, 0] of [1, 2] strides [2, 1] : memref<8x2xf32, "local">
        %out_sum = lw_loop.alloc "out_sum" placed [blockIdx.x * 4 + threadIdx.x, 0] of [1, 1] strides [1, 1] : memref<8x2xf32, "local">
        %out_max = lw_loop.alloc "out_max" placed [blockIdx.x * 4 + threadIdx.x, 0] of [1, 1] strides [1, 1] : memref<8x2xf32, "local">
        lw_loop.for c$1 in 2 {
          lw_loop.block out_run$start (i in 8 = blockIdx.x * 4 + threadIdx.x, c in 2 = c$1) annotated {starts = "out_run"} writes %out_run[i, c] : memref<8x2xf32, "local">, %out_sum[i, 0] : memref<8x2xf32, "local">, %out_max[i, 0] : memref<8x2xf32, "local"> {
            %0 = arith.constant 0.000000e+00 : f32
            %1 = arith.constant 0.000000e+00 : f32
            %2 = arith.constant 0xff800000 : f32
            lw_te.yield %0, %1, %2 : f32, f32, f32
          }
        }
        lw_loop.for r0 in 3 {
          %largest = lw_loop.alloc "largest" placed [r0, blockIdx.x * 4 + threadIdx.x] of [1, 1] strides [1, 1] : memref<3x8xf32, "local">
          %powers = lw_loop.alloc "powers" placed [r0, blockIdx.x * 4 + threadIdx.x, 0] of [1, 1, 4] strides [4, 4, 1] : memref<3x8x4xf32, "local">
          %out_part = lw_loop.alloc "out_part" placed [r0, blockIdx.x * 4 + threadIdx.x, 0] of [1, 1, 2] strides [2, 2, 1] : memref<3x8x2xf32, "local">
          %total = lw_loop.alloc "total" placed [r0, blockIdx.x * 4 + threadIdx.x] of [1, 1] strides [1, 1] : memref<3x8xf32, "local">
          lw_loop.block largest$start (i in 8 = blockIdx.x * 4 + threadIdx.x, k0 in 3 = r0) annotated {starts = "largest"} writes %largest[k0, i] : memref<3x8xf32, "local"> {
            %3 = arith.constant 0xff800000 : f32
            lw_te.yield %3 : f32
          }
          lw_loop.for k1 in 4 {
            lw_loop.block largest (i in 8 = blockIdx.x * 4 + threadIdx.x, k0 in 3 = r0, reduce k1 in 4 = k1) writes %largest[k0, i] : memref<3x8xf32, "local"> max no_init {
              %4 = lw_loop.load %x[i, k0 * 4 + k1] : memref<8x12xf32>
              lw_te.yield %4 : f32
            }
          }
          lw_loop.for j1 in 4 {
            lw_loop.block powers (i in 8 = blockIdx.x * 4 + threadIdx.x, j0 in 3 = r0, j1 in 4 = j1) writes %powers[j0, i, j1] : memref<3x8x4xf32, "local"> {
              %5 = lw_loop.load %largest[j0, i] : memref<3x8xf32, "local">
              %6 = arith.constant 0xff800000 : f32
              %7 = arith.constant 0.000000e+00 : f32
              %8 = arith.cmpf oeq, %5, %6 : f32
              %9 = arith.select %8, %7, %5 : f32
              %10 = lw_loop.load %x[i, j0 * 4 + j1] : memref<8x12xf32>
              %11 = arith.subf %10, %9 : f32
              %12 = math.exp %11 fastmath<afn> : f32
              lw_te.yield %12 : f32
            }
          }
          lw_loop.for c in 2 {
            lw_loop.block out_part$start (i in 8 = blockIdx.x * 4 + threadIdx.x, c in 2 = c, r0 in 3 = r0) annotated {starts = "out_part"} writes %out_part[r0, i, c] : memref<3x8x2xf32, "local"> {
              %13 = arith.constant 0.000000e+00 : f32
              lw_te.yield %13 : f32
            }
            lw_loop.for r1 in 4 {
              lw_loop.block out_part (i in 8 = blockIdx.x * 4 + threadIdx.x, c in 2 = c, r0 in 3 = r0, reduce r1 in 4 = r1) writes %out_part[r0, i, c] : memref<3x8x2xf32, "local"> add no_init {
                %14 = lw_loop.load %powers[r0, i, r1] : memref<3x8x4xf32, "local">
                %15 = lw_loop.load %v[r0 * 4 + r1, c] : memref<12x2xf32>
                %16 = arith.mulf %14, %15 : f32
                lw_te.yield %16 : f32
              }
            }
          }
          lw_loop.block total$start (i in 8 = blockIdx.x * 4 + threadIdx.x, n0 in 3 = r0) annotated {starts = "total"} writes %total[n0, i] : memref<3x8xf32, "local"> {
            %17 = arith.constant 0.000000e+00 : f32
            lw_te.yield %17 : f32
          }
          lw_loop.for n1 in 4 {
            lw_loop.block total (i in 8 = blockIdx.x * 4 + threadIdx.x, n0 in 3 = r0, reduce n1 in 4 = n1) writes %total[n0, i] : memref<3x8xf32, "local"> add no_init {
              %18 = lw_loop.load %powers[n0, i, n1] : memref<3x8x4xf32, "local">
              lw_te.yield %18 : f32
            }
          }
          lw_loop.for c$1 in 2 {
            lw_loop.block out_run (i in 8 = blockIdx.x * 4 + threadIdx.x, c in 2 = c$1, reduce r0 in 3 = r0) annotated {carried_once = {outputs = [1 : i64, 2 : i64], loops = ["c$1"]}} writes %out_run[i, c] : memref<8x2xf32, "local">, %out_sum[i, 0] : memref<8x2xf32, "local">, %out_max[i, 0] : memref<8x2xf32, "local"> custom [0.000000e+00 : f32, 0.000000e+00 : f32, 0xff800000 : f32] no_init {
              %19 = lw_loop.load %out_part[r0, i, c] : memref<3x8x2xf32, "local">
              %20 = lw_loop.load %total[r0, i] : memref<3x8xf32, "local">
              %21 = lw_loop.load %largest[r0, i] : memref<3x8xf32, "local">
              lw_te.yield %19, %20, %21 : f32, f32, f32
            } combine {
            ^bb0(%22: f32, %23: f32, %24: f32, %25: f32, %26: f32, %27: f32):
              %28 = arith.constant 1.000000e+00 : f32
              %29 = arith.constant 0.000000e+00 : f32
              %30 = arith.maximumf %24, %27 : f32
              %31 = arith.cmpf oge, %24, %27 : f32
              %32 = arith.cmpf oeq, %24, %27 : f32
              %33 = arith.subf %24, %27 : f32
              %34 = arith.subf %27, %24 : f32
              %35 = arith.minimumf %33, %34 : f32
              %36 = arith.select %32, %29, %35 : f32
              %37 = math.exp %36 fastmath<afn> : f32
              %38 = arith.select %31, %28, %37 : f32
              %39 = arith.select %31, %37, %28 : f32
              %40 = arith.mulf %22, %38 : f32
              %41 = arith.mulf %25, %39 : f32
              %42 = arith.addf %40, %41 : f32
              %43 = arith.mulf %23, %38 : f32
              %44 = arith.mulf %26, %39 : f32
              %45 = arith.addf %43, %44 : f32
              lw_te.yield %42, %45, %30 : f32, f32, f32
            }
          }
        }
        lw_loop.for c$2 in 2 {
          lw_loop.block out (i in 8 = blockIdx.x * 4 + threadIdx.x, c in 2 = c$2) writes %out[i, c] : memref<8x2xf32> {
            %46 = lw_loop.load %out_run[i, c] : memref<8x2xf32, "local">
            %47 = lw_loop.load %out_sum[i, 0] : memref<8x2xf32, "local">
            %48 = arith.divf %46, %47 : f32
            lw_te.yield %48 : f32
          }
        }
      }
    }
    func.return
  }
}

// CHECK: lw_loop.block out_run_factor
// CHECK: %[[LOG:.*]] = arith.constant -1.44269502 : f32
// CHECK-NEXT: %[[POWER:.*]] = arith.mulf %{{.*}}, %[[LOG]] : f32
// CHECK-NEXT: lw_te.yield %{{.*}}, %[[POWER]], %{{.*}}
// CHECK: lw_loop.block powers
// CHECK-NEXT: %[[RELATIVE:.*]] = lw_loop.load %largest_reference[j0, i]
// CHECK-NEXT: %[[X:.*]] = lw_loop.load %x[i, j0 * 4 + j1]
// CHECK-NEXT: %[[LOG2:.*]] = arith.constant 1.44269502 : f32
// CHECK-NEXT: %[[DISTANCE:.*]] = math.fma %[[X]], %[[LOG2]], %[[RELATIVE]] : f32
// CHECK-NEXT: math.exp2 %[[DISTANCE]] fastmath<afn> : f32

// -----

// Where threads share the maximum, sums are joined as ever.

builtin.module attributes {lw.target = #lw.target<"cuda max_threads_per_block=64 warp_size=32 compute_capability=90">} {
  func.func @main(%x: memref<8x12xf32> {lw.name = "x"}, %v: memref<12x2xf32> {lw.name = "v"}, %out: memref<8x2xf32> {lw.name = "out", lw.output}) attributes {lw.lowered_by = "lw-end-loops"} {
    lw_loop.for blockIdx.x in 2 blockIdx.x {
      lw_loop.for threadIdx.x in 4 threadIdx.x {
        %out_run = lw_loop.alloc "out_run" placed [blockIdx.x * 4 + threadIdx.x, 0] of [1, 2] strides [2, 1] : memref<8x2xf32, "local">
        %out_sum = lw_loop.alloc "out_sum" placed [blockIdx.x * 4 + threadIdx.x, 0] of [1, 1] strides [1, 1] : memref<8x2xf32, "local">
        %out_max = lw_loop.alloc "out_max" placed [blockIdx.x * 4 + threadIdx.x, 0] of [1, 1] strides [1, 1] : memref<8x2xf32, "local">
        lw_loop.for c$1 in 2 {
          lw_loop.block out_run$start (i in 8 = blockIdx.x * 4 + threadIdx.x, c in 2 = c$1) annotated {starts = "out_run"} writes %out_run[i, c] : memref<8x2xf32, "local">, %out_sum[i, 0] : memref<8x2xf32, "local">, %out_max[i, 0] : memref<8x2xf32, "local"> {
            %0 = arith.constant 0.000000e+00 : f32
            %1 = arith.constant 0.000000e+00 : f32
            %2 = arith.constant 0xff800000 : f32
            lw_te.yield %0, %1, %2 : f32, f32, f32
          }
        }
        lw_loop.for r0 in 3 {
          %largest = lw_loop.alloc "largest" placed [r0, blockIdx.x * 4] of [1, 4] strides [4, 1] : memref<3x8xf32, "shared">
          %powers = lw_loop.alloc "powers" placed [r0, blockIdx.x * 4 + threadIdx.x, 0] of [1, 1, 4] strides [4, 4, 1] : memref<3x8x4xf32, "local">
          %out_part = lw_loop.alloc "out_part" placed [r0, blockIdx.x * 4 + threadIdx.x, 0] of [1, 1, 2] strides [2, 2, 1] : memref<3x8x2xf32, "local">
          %total = lw_loop.alloc "total" placed [r0, blockIdx.x * 4 + threadIdx.x] of [1, 1] strides [1, 1] : memref<3x8xf32, "local">
          lw_loop.block largest$start (i in 8 = blockIdx.x * 4 + threadIdx.x, k0 in 3 = r0) annotated {starts = "largest"} writes %largest[k0, i] : memref<3x8xf32, "shared"> {
            %3 = arith.constant 0xff800000 : f32
            lw_te.yield %3 : f32
          }
          lw_loop.for k1 in 4 {
            lw_loop.block largest (i in 8 = blockIdx.x * 4 + threadIdx.x, k0 in 3 = r0, reduce k1 in 4 = k1) writes %largest[k0, i] : memref<3x8xf32, "shared"> max no_init {
              %4 = lw_loop.load %x[i, k0 * 4 + k1] : memref<8x12xf32>
              lw_te.yield %4 : f32
            }
          }
          lw_loop.for j1 in 4 {
            lw_loop.block powers (i in 8 = blockIdx.x * 4 + threadIdx.x, j0 in 3 = r0, j1 in 4 = j1) writes %powers[j0, i, j1] : memref<3x8x4xf32, "local"> {
              %5 = lw_loop.load %largest[j0, i] : memref<3x8xf32, "shared">
              %6 = arith.constant 0xff800000 : f32
              %7 = arith.constant 0.000000e+00 : f32
              %8 = arith.cmpf oeq, %5, %6 : f32
              %9 = arith.select %8, %7, %5 : f32
              %10 = lw_loop.load %x[i, j0 * 4 + j1] : memref<8x12xf32>
              %11 = arith.subf %10, %9 : f32
              %12 = math.exp %11 : f32
              lw_te.yield %12 : f32
            }
          }
          lw_loop.for c in 2 {
            lw_loop.block out_part$start (i in 8 = blockIdx.x * 4 + threadIdx.x, c in 2 = c, r0 in 3 = r0) annotated {starts = "out_part"} writes %out_part[r0, i, c] : memref<3x8x2xf32, "local"> {
              %13 = arith.constant 0.000000e+00 : f32
              lw_te.yield %13 : f32
            }
            lw_loop.for r1 in 4 {
              lw_loop.block out_part (i in 8 = blockIdx.x * 4 + threadIdx.x, c in 2 = c, r0 in 3 = r0, reduce r1 in 4 = r1) writes %out_part[r0, i, c] : memref<3x8x2xf32, "local"> add no_init {
                %14 = lw_loop.load %powers[r0, i, r1] : memref<3x8x4xf32, "local">
                %15 = lw_loop.load %v[r0 * 4 + r1, c] : memref<12x2xf32>
                %16 = arith.mulf %14, %15 : f32
                lw_te.yield %16 : f32
              }
            }
          }
          lw_loop.block total$start (i in 8 = blockIdx.x * 4 + threadIdx.x, n0 in 3 = r0) annotated {starts = "total"} writes %total[n0, i] : memref<3x8xf32, "local"> {
            %17 = arith.constant 0.000000e+00 : f32
            lw_te.yield %17 : f32
          }
          lw_loop.for n1 in 4 {
            lw_loop.block total (i in 8 = blockIdx.x * 4 + threadIdx.x, n0 in 3 = r0, reduce n1 in 4 = n1) writes %total[n0, i] : memref<3x8xf32, "local"> add no_init {
              %18 = lw_loop.load %powers[n0, i, n1] : memref<3x8x4xf32, "local">
              lw_te.yield %18 : f32
            }
          }
          lw_loop.for c$1 in 2 {
            lw_loop.block out_run (i in 8 = blockIdx.x * 4 + threadIdx.x, c in 2 = c$1, reduce r0 in 3 = r0) annotated {carried_once = {outputs = [1 : i64, 2 : i64], loops = ["c$1"]}} writes %out_run[i, c] : memref<8x2xf32, "local">, %out_sum[i, 0] : memref<8x2xf32, "local">, %out_max[i, 0] : memref<8x2xf32, "local"> custom [0.000000e+00 : f32, 0.000000e+00 : f32, 0xff800000 : f32] no_init {
              %19 = lw_loop.load %out_part[r0, i, c] : memref<3x8x2xf32, "local">
              %20 = lw_loop.load %total[r0, i] : memref<3x8xf32, "local">
              %21 = lw_loop.load %largest[r0, i] : memref<3x8xf32, "shared">
              lw_te.yield %19, %20, %21 : f32, f32, f32
            } combine {
            ^bb0(%22: f32, %23: f32, %24: f32, %25: f32, %26: f32, %27: f32):
              %28 = arith.constant 1.000000e+00 : f32
              %29 = arith.constant 0.000000e+00 : f32
              %30 = arith.maximumf %24, %27 : f32
              %31 = arith.cmpf oge, %24, %27 : f32
              %32 = arith.cmpf oeq, %24, %27 : f32
              %33 = arith.subf %24, %27 : f32
              %34 = arith.subf %27, %24 : f32
              %35 = arith.minimumf %33, %34 : f32
              %36 = arith.select %32, %29, %35 : f32
              %37 = math.exp %36 : f32
              %38 = arith.select %31, %28, %37 : f32
              %39 = arith.select %31, %37, %28 : f32
              %40 = arith.mulf %22, %38 : f32
              %41 = arith.mulf %25, %39 : f32
              %42 = arith.addf %40, %41 : f32
              %43 = arith.mulf %23, %38 : f32
              %44 = arith.mulf %26, %39 : f32
              %45 = arith.addf %43, %44 : f32
              lw_te.yield %42, %45, %30 : f32, f32, f32
            }
          }
        }
        lw_loop.for c$2 in 2 {
          lw_loop.block out (i in 8 = blockIdx.x * 4 + threadIdx.x, c in 2 = c$2) writes %out[i, c] : memref<8x2xf32> {
            %46 = lw_loop.load %out_run[i, c] : memref<8x2xf32, "local">
            %47 = lw_loop.load %out_sum[i, 0] : memref<8x2xf32, "local">
            %48 = arith.divf %46, %47 : f32
            lw_te.yield %48 : f32
          }
        }
      }
    }
    func.return
  }
}

// CHECK: lw_loop.alloc "out_part"
// CHECK: } combine {

// -----

// A positive scale is left out of the terms, and so of what is chosen in their place: their maximum is scaled, and the
// multiply-add of the powers has it.

builtin.module attributes {lw.target = #lw.target<"cuda max_threads_per_block=64 warp_size=32 compute_capability=90">} {
  func.func @main(%x: memref<8x12xf32> {lw.name = "x"}, %v: memref<12x2xf16> {lw.name = "v"}, %out: memref<8x2xf32> {lw.name = "out", lw.output}) attributes {lw.lowered_by = "lw-end-loops"} {
    lw_loop.for blockIdx.x in 2 blockIdx.x {
      lw_loop.for threadIdx.x in 4 threadIdx.x {
        %out_run = lw_loop.alloc "out_run" placed [blockIdx.x * 4 + threadIdx.x, 0] of [1, 2] strides [2, 1] : memref<8x2xf32, "local">
        %out_sum = lw_loop.alloc "out_sum" placed [blockIdx.x * 4 + threadIdx.x, 0] of [1, 1] strides [1, 1] : memref<8x2xf32, "local">
        %out_max = lw_loop.alloc "out_max" placed [blockIdx.x * 4 + threadIdx.x, 0] of [1, 1] strides [1, 1] : memref<8x2xf32, "local">
        lw_loop.for c$1 in 2 {
          lw_loop.block out_run$start (i in 8 = blockIdx.x * 4 + threadIdx.x, c in 2 = c$1) annotated {starts = "out_run"} writes %out_run[i, c] : memref<8x2xf32, "local">, %out_sum[i, 0] : memref<8x2xf32, "local">, %out_max[i, 0] : memref<8x2xf32, "local"> {
            %0 = arith.constant 0.000000e+00 : f32
            %1 = arith.constant 0.000000e+00 : f32
            %2 = arith.constant 0xff800000 : f32
            lw_te.yield %0, %1, %2 : f32, f32, f32
          }
        }
        lw_loop.for r0 in 3 {
          %scaled = lw_loop.alloc "scaled" placed [blockIdx.x * 4 + threadIdx.x, r0 * 4] of [1, 4] strides [4, 1] : memref<8x12xf32, "local">
          %largest = lw_loop.alloc "largest" placed [r0, blockIdx.x * 4 + threadIdx.x] of [1, 1] strides [1, 1] : memref<3x8xf32, "local">
          %powers = lw_loop.alloc "powers" placed [r0, blockIdx.x * 4 + threadIdx.x, 0] of [1, 1, 4] strides [4, 4, 1] : memref<3x8x4xf32, "local">
          %weights = lw_loop.alloc "weights" placed [r0, blockIdx.x * 4 + threadIdx.x, 0] of [1, 1, 4] strides [4, 4, 1] : memref<3x8x4xf16, "local">
          %out_part = lw_loop.alloc "out_part" placed [r0, blockIdx.x * 4 + threadIdx.x, 0] of [1, 1, 2] strides [2, 2, 1] : memref<3x8x2xf32, "local">
          %total = lw_loop.alloc "total" placed [r0, blockIdx.x * 4 + threadIdx.x] of [1, 1] strides [1, 1] : memref<3x8xf32, "local">
          lw_loop.for j in 4 {
            lw_loop.block scaled (i in 8 = blockIdx.x * 4 + threadIdx.x, j in 12 = r0 * 4 + j) writes %scaled[i, j] : memref<8x12xf32, "local"> {
              %3 = lw_te.predicate (i - j + 4 >= 0)
              %4 = lw_loop.load %x[i, j] : memref<8x12xf32>
              %5 = arith.constant 2.500000e-01 : f32
              %6 = arith.mulf %4, %5 : f32
              %7 = arith.constant 0xff800000 : f32
              %8 = arith.select %3, %6, %7 : f32
              lw_te.yield %8 : f32
            }
          }
          lw_loop.block largest$start (i in 8 = blockIdx.x * 4 + threadIdx.x, k0 in 3 = r0) annotated {starts = "largest"} writes %largest[k0, i] : memref<3x8xf32, "local"> {
            %9 = arith.constant 0xff800000 : f32
            lw_te.yield %9 : f32
          }
          lw_loop.for k1 in 4 {
            lw_loop.block largest (i in 8 = blockIdx.x * 4 + threadIdx.x, k0 in 3 = r0, reduce k1 in 4 = k1) writes %largest[k0, i] : memref<3x8xf32, "local"> max no_init {
              %10 = lw_loop.load %scaled[i, k0 * 4 + k1] : memref<8x12xf32, "local">
              lw_te.yield %10 : f32
            }
          }
          lw_loop.for j1 in 4 {
            lw_loop.block powers (i in 8 = blockIdx.x * 4 + threadIdx.x, j0 in 3 = r0, j1 in 4 = j1) writes %powers[j0, i, j1] : memref<3x8x4xf32, "local"> {
              %11 = lw_loop.load %largest[j0, i] : memref<3x8xf32, "local">
              %12 = arith.constant 0xff800000 : f32
              %13 = arith.constant 0.000000e+00 : f32
              %14 = arith.cmpf oeq, %11, %12 : f32
              %15 = arith.select %14, %13, %11 : f32
              %16 = lw_loop.load %scaled[i, j0 * 4 + j1] : memref<8x12xf32, "local">
              %17 = arith.subf %16, %15 : f32
              %18 = math.exp %17 fastmath<afn> : f32
              lw_te.yield %18 : f32
            }
          }
          lw_loop.for j1$1 in 4 {
            lw_loop.block weights (i in 8 = blockIdx.x * 4 + threadIdx.x, j0 in 3 = r0, j1 in 4 = j1$1) writes %weights[j0, i, j1] : memref<3x8x4xf16, "local"> {
              %19 = lw_loop.load %powers[j0, i, j1] : memref<3x8x4xf32, "local">
              %20 = arith.truncf %19 : f32 to f16
              lw_te.yield %20 : f16
            }
          }
          lw_loop.for c in 2 {
            lw_loop.block out_part$start (i in 8 = blockIdx.x * 4 + threadIdx.x, c in 2 = c, r0 in 3 = r0) annotated {starts = "out_part"} writes %out_part[r0, i, c] : memref<3x8x2xf32, "local"> {
              %21 = arith.constant 0.000000e+00 : f32
              lw_te.yield %21 : f32
            }
            lw_loop.for r1 in 4 {
              lw_loop.block out_part (i in 8 = blockIdx.x * 4 + threadIdx.x, c in 2 = c, r0 in 3 = r0, reduce r1 in 4 = r1) writes %out_part[r0, i, c] : memref<3x8x2xf32, "local"> add no_init {
                %22 = lw_loop.load %weights[r0, i, r1] : memref<3x8x4xf16, "local">
                %23 = arith.extf %22 : f16 to f32
                %24 = lw_loop.load %v[r0 * 4 + r1, c] : memref<12x2xf16>
                %25 = arith.extf %24 : f16 to f32
                %26 = arith.mulf %23, %25 : f32
                lw_te.yield %26 : f32
              }
            }
          }
          lw_loop.block total$start (i in 8 = blockIdx.x * 4 + threadIdx.x, n0 in 3 = r0) annotated {starts = "total"} writes %total[n0, i] : memref<3x8xf32, "local"> {
            %27 = arith.constant 0.000000e+00 : f32
            lw_te.yield %27 : f32
          }
          lw_loop.for n1 in 4 {
            lw_loop.block total (i in 8 = blockIdx.x * 4 + threadIdx.x, n0 in 3 = r0, reduce n1 in 4 = n1) writes %total[n0, i] : memref<3x8xf32, "local"> add no_init {
              %28 = lw_loop.load %powers[n0, i, n1] : memref<3x8x4xf32, "local">
              lw_te.yield %28 : f32
            }
          }
          lw_loop.for c$1 in 2 {
            lw_loop.block out_run (i in 8 = blockIdx.x * 4 + threadIdx.x, c in 2 = c$1, reduce r0 in 3 = r0) annotated {kept = #lw.indices<i - r0 * 4 + 4>, carried_once = {outputs = [1 : i64, 2 : i64], loops = ["c$1"]}} writes %out_run[i, c] : memref<8x2xf32, "local">, %out_sum[i, 0] : memref<8x2xf32, "local">, %out_max[i, 0] : memref<8x2xf32, "local"> custom [0.000000e+00 : f32, 0.000000e+00 : f32, 0xff800000 : f32] no_init {
              %29 = lw_loop.load %out_part[r0, i, c] : memref<3x8x2xf32, "local">
              %30 = lw_loop.load %total[r0, i] : memref<3x8xf32, "local">
              %31 = lw_loop.load %largest[r0, i] : memref<3x8xf32, "local">
              lw_te.yield %29, %30, %31 : f32, f32, f32
            } combine {
            ^bb0(%32: f32, %33: f32, %34: f32, %35: f32, %36: f32, %37: f32):
              %38 = arith.constant 1.000000e+00 : f32
              %39 = arith.constant 0.000000e+00 : f32
              %40 = arith.maximumf %34, %37 : f32
              %41 = arith.cmpf oge, %34, %37 : f32
              %42 = arith.cmpf oeq, %34, %37 : f32
              %43 = arith.subf %34, %37 : f32
              %44 = arith.subf %37, %34 : f32
              %45 = arith.minimumf %43, %44 : f32
              %46 = arith.select %42, %39, %45 : f32
              %47 = math.exp %46 fastmath<afn> : f32
              %48 = arith.select %41, %38, %47 : f32
              %49 = arith.select %41, %47, %38 : f32
              %50 = arith.mulf %32, %48 : f32
              %51 = arith.mulf %35, %49 : f32
              %52 = arith.addf %50, %51 : f32
              %53 = arith.mulf %33, %48 : f32
              %54 = arith.mulf %36, %49 : f32
              %55 = arith.addf %53, %54 : f32
              lw_te.yield %52, %55, %40 : f32, f32, f32
            }
          }
        }
        lw_loop.for c$2 in 2 {
          lw_loop.block out (i in 8 = blockIdx.x * 4 + threadIdx.x, c in 2 = c$2) writes %out[i, c] : memref<8x2xf32> {
            %56 = lw_loop.load %out_run[i, c] : memref<8x2xf32, "local">
            %57 = lw_loop.load %out_sum[i, 0] : memref<8x2xf32, "local">
            %58 = arith.divf %56, %57 : f32
            lw_te.yield %58 : f32
          }
        }
      }
    }
    func.return
  }
}

// CHECK: lw_loop.block scaled
// CHECK-NEXT: %[[KEPT:.*]] = lw_te.predicate
// CHECK-NEXT: %[[TERM:.*]] = lw_loop.load %x[i, j]
// CHECK-NEXT: %[[LOWEST:.*]] = arith.constant 0xff800000 : f32
// CHECK-NEXT: %[[CHOSEN:.*]] = arith.select %[[KEPT]], %[[TERM]], %[[LOWEST]] : f32
// CHECK-NEXT: lw_te.yield %[[CHOSEN]] : f32
// CHECK: lw_loop.block out_run_factor
// CHECK: %[[LARGEST:.*]] = lw_loop.load %largest[r0, i]
// CHECK-NEXT: %[[SCALE:.*]] = arith.constant 2.500000e-01 : f32
// CHECK-NEXT: %[[SCALED:.*]] = arith.mulf %[[LARGEST]], %[[SCALE]] : f32
// CHECK-NEXT: arith.maximumf %{{.*}}, %[[SCALED]] : f32
// CHECK: lw_loop.block powers
// CHECK: arith.constant 0.360673755 : f32
