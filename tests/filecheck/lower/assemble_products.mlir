// RUN: xdsl-opt %s -p lw-assemble-products --split-input-file --verify-diagnostics --parsing-diagnostics | filecheck %s
// RUN: xdsl-opt %s -p lw-assemble-products{unrolled_instructions=16} --split-input-file --verify-diagnostics --parsing-diagnostics | filecheck %s --check-prefix=FEWER

// All iterations of an unrolled loop: an element of shared memory is loaded once, neighbours at once, and sums go from
// register to register. What is read of the kernel is set before, what is changed behind. The loop around is told by how
// much to be unrolled, as its compiler cannot weigh assembly.

builtin.module attributes {lw.target = #lw.target<"cuda warp_size=32 compute_capability=90">} {
  func.func @product(%out: memref<4096xf32> {lw.name = "out", lw.output}) {
    %0 = arith.constant 0 : index
    %1 = arith.constant 1 : index
    %6 = arith.constant 6 : index
    %64 = arith.constant 64 : index
    lw_kernel.launch grid [8, 1, 1] block [32, 1, 1] {
      %a = lw_kernel.alloc "a" : memref<512xf32, "shared">
      %b = lw_kernel.alloc "b" : memref<256xf32, "shared">
      %sum = lw_kernel.alloc "sum" : memref<8xf32, "local">
      %thread = lw_kernel.thread "threadIdx.x" : index
      scf.for %k = %0 to %64 step %1 {
        %row = arith.muli %k, %64 : index
        scf.for %i = %0 to %6 step %1 {
          %place = arith.muli %i, %64 : index
          %at = arith.addi %row, %place : index
          %left = lw_kernel.load %a[%at + 2] : memref<512xf32, "shared"> -> f32
          %next = lw_kernel.load %a[%at + 3] : memref<512xf32, "shared"> -> f32
          %lanes = vector.broadcast %left : f32 to vector<2xf32>
          %right = lw_kernel.load %b[%thread + 4] align 8 : memref<256xf32, "shared"> -> vector<2xf32>
          %old = lw_kernel.load %sum[%0] : memref<8xf32, "local"> -> vector<2xf32>
          %more = math.fma %lanes, %right, %old : vector<2xf32>
          %others = vector.broadcast %next : f32 to vector<2xf32>
          %new = math.fma %others, %right, %more : vector<2xf32>
          lw_kernel.store %new, %sum[%0 + 2] : vector<2xf32>, memref<8xf32, "local">
        } {lw.unroll}
      }
    }
    func.return
  }
}

// CHECK: func.func @product
// CHECK: scf.for %k = %{{.*}} to %{{.*}} step %{{.*}} {
// CHECK-NEXT: %row = arith.muli %k, %{{.*}} : index
// CHECK-NEXT: lw_kernel.ptx [f0 = %sum[0], f1 = %sum[1], p0 = %a[%row], p1 = %b[%thread]] {
// CHECK-NEXT: "ld.shared.v2.f32 {t1, t2}, [p0+8];"
// CHECK-NEXT: "ld.shared.v2.f32 {t3, t4}, [p1+16];"
// CHECK-NEXT: "fma.rn.f32 t5, t1, t3, f0;"
// CHECK-NEXT: "fma.rn.f32 t6, t1, t4, f1;"
// CHECK-NEXT: "fma.rn.f32 t7, t2, t3, t5;"
// CHECK-NEXT: "fma.rn.f32 t8, t2, t4, t6;"
// CHECK-NEXT: "ld.shared.v2.f32 {t9, t10}, [p0+264];"
// CHECK-NEXT: "fma.rn.f32 t11, t9, t3, f0;"
// CHECK: "ld.shared.v2.f32 {t33, t34}, [p0+1288];"
// CHECK: "fma.rn.f32 t38, t34, t4, t36;"
// CHECK-NEXT: } [%sum[2] = t37, %sum[3] = t38] temporaries 38 : memref<8xf32, "local">, memref<512xf32, "shared">, index, memref<256xf32, "shared">, index
// CHECK-NEXT: } {lw.unroll = #builtin.int<2>}

// FEWER: func.func @product
// FEWER: "fma.rn.f32 t38
// FEWER: } {lw.unroll = #builtin.int<1>}

// -----

// What branches around copies compute is computed ahead of the instructions, once, and a copy is under all conditions.

builtin.module attributes {lw.target = #lw.target<"cuda warp_size=32 compute_capability=80">} {
  func.func @copies(%x: memref<4096xf32> {lw.name = "x"}, %out: memref<4096xf32> {lw.name = "out", lw.output}) {
    %0 = arith.constant 0 : index
    %1 = arith.constant 1 : index
    %4 = arith.constant 4 : index
    %6 = arith.constant 6 : index
    lw_kernel.launch grid [8, 1, 1] block [32, 1, 1] {
      %a = lw_kernel.alloc "a" : memref<512xf32, "shared">
      %sum = lw_kernel.alloc "sum" : memref<4xf32, "local">
      %thread = lw_kernel.thread "threadIdx.x" : index
      %x0 = lw_kernel.load %a[%thread] : memref<512xf32, "shared"> -> f32
      %lanes = vector.broadcast %x0 : f32 to vector<4xf32>
      %once = arith.cmpi slt, %thread, %4 : index
      scf.if %once {
        %place = arith.muli %thread, %4 : index
        %there = arith.cmpi slt, %place, %4 : index
        lw_kernel.async_copy 4 %x[%thread + 4] -> %a[%place] if %there : memref<4096xf32> -> memref<512xf32, "shared">
      }
      scf.for %i = %0 to %6 step %1 {
        %old = lw_kernel.load %sum[%0] : memref<4xf32, "local"> -> vector<4xf32>
        %new = math.fma %lanes, %lanes, %old : vector<4xf32>
        lw_kernel.store %new, %sum[%0] : vector<4xf32>, memref<4xf32, "local">
      } {lw.unroll}
      scf.if %once {
        %place = arith.muli %thread, %4 : index
        %there = arith.cmpi slt, %place, %4 : index
        scf.if %there {
          lw_kernel.async_copy 4 %x[%thread + 8] -> %a[%place + 4] : memref<4096xf32> -> memref<512xf32, "shared">
        }
      }
      lw_kernel.commit
    }
    func.return
  }
}

// CHECK: func.func @copies
// CHECK: %thread = lw_kernel.thread "threadIdx.x" : index
// CHECK-NEXT: %once = arith.cmpi slt, %thread, %{{.*}} : index
// CHECK-NEXT: %place = arith.muli %thread, %{{.*}} : index
// CHECK-NEXT: %there = arith.cmpi slt, %place, %{{.*}} : index
// CHECK-NEXT: %asked = arith.andi %once, %there : i1
// CHECK-NEXT: lw_kernel.ptx [f0 = %sum[0], {{.*}}p0 = %a[%thread], place0 = %a[%place], pointer0 = %x[%thread], size0 = 16 if %there, asked0 = %once, asked1 = %asked] {
// CHECK-NEXT: "ld.shared.f32 t1, [p0];"
// CHECK-NEXT: "@asked0 cp.async.cg.shared.global [place0], [pointer0+16], 16, size0;"
// CHECK-NEXT: "fma.rn.f32 t2, t1, t1, f0;"
// CHECK: "fma.rn.f32 t25, t1, t1, t21;"
// CHECK-NEXT: "@asked1 cp.async.cg.shared.global [place0+16], [pointer0+32], 16;"
// CHECK-NEXT: "cp.async.commit_group;"
// CHECK-NEXT: } [%sum[0] = t22, {{.*}}%sum[3] = t25] temporaries 25 : memref<4xf32, "local">, memref<512xf32, "shared">, index, index, memref<4096xf32>, i1, i1, i1
// CHECK-NEXT: }
// CHECK-NEXT: func.return

// -----

// These stay as they are: few multiply-adds, a value that is read later, an element of an array that the thread chooses.

builtin.module attributes {lw.target = #lw.target<"cuda warp_size=32 compute_capability=90">} {
  func.func @left(%out: memref<4096xf32> {lw.name = "out", lw.output}) {
    %0 = arith.constant 0 : index
    lw_kernel.launch grid [8, 1, 1] block [32, 1, 1] {
      %a = lw_kernel.alloc "a" : memref<512xf32, "shared">
      %sum = lw_kernel.alloc "sum" : memref<64xf32, "local">
      %thread = lw_kernel.thread "threadIdx.x" : index
      %x = lw_kernel.load %a[%thread] : memref<512xf32, "shared"> -> vector<8xf32>
      %y = math.fma %x, %x, %x : vector<8xf32>
      lw_kernel.store %y, %sum[%0] : vector<8xf32>, memref<64xf32, "local">
      lw_kernel.barrier
      %x1 = lw_kernel.load %a[%0] : memref<512xf32, "shared"> -> vector<32xf32>
      %y1 = math.fma %x1, %x1, %x1 : vector<32xf32>
      lw_kernel.store %y1, %sum[%0] : vector<32xf32>, memref<64xf32, "local">
      lw_kernel.barrier
      lw_kernel.store %y1, %out[%0] : vector<32xf32>, memref<4096xf32>
      %x2 = lw_kernel.load %a[%0 + 32] : memref<512xf32, "shared"> -> vector<32xf32>
      %y2 = math.fma %x2, %x2, %x2 : vector<32xf32>
      lw_kernel.store %y2, %sum[%thread] : vector<32xf32>, memref<64xf32, "local">
    }
    func.return
  }
}

// CHECK: func.func @left
// CHECK-NOT: lw_kernel.ptx

// -----

// OpenCL C has no place for PTX.

builtin.module attributes {lw.target = #lw.target<"opencl warp_size=32">} {
  func.func @elsewhere(%out: memref<4096xf32> {lw.name = "out", lw.output}) {
    %0 = arith.constant 0 : index
    lw_kernel.launch grid [8, 1, 1] block [32, 1, 1] {
      %a = lw_kernel.alloc "a" : memref<512xf32, "shared">
      %sum = lw_kernel.alloc "sum" : memref<32xf32, "local">
      %x = lw_kernel.load %a[%0] : memref<512xf32, "shared"> -> vector<32xf32>
      %y = math.fma %x, %x, %x : vector<32xf32>
      lw_kernel.store %y, %sum[%0] : vector<32xf32>, memref<32xf32, "local">
    }
    func.return
  }
}

// CHECK: func.func @elsewhere
// CHECK-NOT: lw_kernel.ptx
