// RUN: xdsl-opt %s -p 'lw-tensorize{block=c loop=i2 intrinsic="amx.m16n16k32.bf16"}' | filecheck %s --check-prefix=NOTE
// RUN: xdsl-opt %s -p 'lw-tensorize{block=c loop=i2 intrinsic="amx.m16n16k32.bf16"},lw-lower-loop-to-kernel' | filecheck %s --check-prefix=KERNEL
// RUN: xdsl-opt %s -p 'lw-tensorize{block=c loop=i2 intrinsic="amx.m16n16k32.bf16"},lw-lower-loop-to-kernel' -t lw-llvm | filecheck %s --check-prefix=LLVM
// RUN: xdsl-opt %s -p 'lw-tensorize{block=c loop=i2 intrinsic="amx.m16n16k64.u8s8"}' --verify-diagnostics | filecheck %s --check-prefix=DIGITS
// RUN: xdsl-opt %s -p 'lw-reorder{block=c loops=j2,i2},lw-tensorize{block=c loop=j2 intrinsic="amx.m16n16k32.bf16"}' --verify-diagnostics | filecheck %s --check-prefix=ORDER
// RUN: xdsl-opt %s -p 'lw-cache-read{block=c buffer=b layout="k","j" label="turned"},lw-tensorize{block=c loop=i2 intrinsic="amx.m16n16k32.bf16"}' --verify-diagnostics | filecheck %s --check-prefix=LAYOUT
// RUN: xdsl-opt %s -p 'lw-tensorize{block=c loop=i2 intrinsic="neon.m2n2k4.bf16"}' --verify-diagnostics | filecheck %s --check-prefix=TARGET
// RUN: xdsl-opt %s -p 'lw-tensorize{block=c loop=i2 intrinsic="mine"}' --verify-diagnostics | filecheck %s --check-prefix=UNKNOWN

builtin.module attributes {lw.target = #lw.target<"llvm model=sapphirerapids vector_bytes=64 vector_registers=32">} {
  func.func @product(%a: memref<16x128xbf16> {lw.name = "a"}, %b: memref<64x16x2xbf16> {lw.name = "b"}, %c: memref<16x16xf32> {lw.name = "c", lw.output}) {
    lw_loop.for k0 in 4 {
      lw_loop.for i2 in 16 {
        lw_loop.for j2 in 16 {
          lw_loop.for k2 in 32 {
            lw_loop.block c (i in 16 = i2, j in 16 = j2, reduce k in 128 = k0 * 32 + k2) writes %c[i, j] : memref<16x16xf32> add {
              %0 = lw_loop.load %a[i, k] : memref<16x128xbf16>
              %1 = arith.extf %0 : bf16 to f32
              %2 = lw_loop.load %b[k floordiv 2, j, k mod 2] : memref<64x16x2xbf16>
              %3 = arith.extf %2 : bf16 to f32
              %4 = arith.mulf %1, %3 : f32
              lw_te.yield %4 : f32
            }
          }
        }
      }
    }
    func.return
  }
}

// NOTE: lw_loop.for i2 in 16 annotated {tensorize = "amx.m16n16k32.bf16"} {
// NOTE-NEXT: lw_loop.for j2 in 16 {
// NOTE-NEXT: lw_loop.for k2 in 32 {
// NOTE-NEXT: lw_loop.block c (i in 16 = i2, j in 16 = j2, reduce k in 128 = k0 * 32 + k2) writes %c[i, j] : memref<16x16xf32> add {

// The sums start from a tile of zeros; rows of a are 128 elements apart, groups of b are 32.
// KERNEL: lw_kernel.tile_start "amx.m16n16k32.bf16" %c[%{{.*}}] rows 16 step 16 : memref<16x16xf32>
// KERNEL: scf.for
// KERNEL: %[[A:.*]] = lw_kernel.tile_load "amx.m16n16k32.bf16" a %a[%{{.*}}] rows 16 step 128 : memref<16x128xbf16>
// KERNEL: %[[B:.*]] = lw_kernel.tile_load "amx.m16n16k32.bf16" b %b[%{{.*}}] rows 16 step 32 : memref<64x16x2xbf16>
// KERNEL-NEXT: lw_kernel.tile_product "amx.m16n16k32.bf16" %[[A]], %[[B]], %c[%{{.*}}] rows 16 step 16 : memref<16x16xf32>

// The tile of sums is zeros ahead of the loop, is in a register over it, and is stored behind it.
// LLVM: %[[C:.*]] = call x86_amx @llvm.x86.tilezero.internal(i16 16, i16 64)
// LLVM-NEXT: br label %[[LOOP:.*]]
// LLVM: %[[NOW:.*]] = phi x86_amx [ %[[C]], %{{.*}} ], [ %[[NEXT:.*]], %[[LOOP]] ]
// LLVM: call x86_amx @llvm.x86.tileloadd64.internal(i16 16, i16 64, ptr %{{.*}}, i64 256)
// LLVM: call x86_amx @llvm.x86.tileloadd64.internal(i16 16, i16 64, ptr %{{.*}}, i64 64)
// LLVM-NEXT: %[[NEXT]] = call x86_amx @llvm.x86.tdpbf16ps.internal(i16 16, i16 64, i16 64, x86_amx %[[NOW]], x86_amx %{{.*}}, x86_amx %{{.*}})
// LLVM: call void @llvm.x86.tilestored64.internal(i16 16, i16 64, ptr %a2, i64 64, x86_amx %[[NEXT]])

// DIGITS: the nest must be of i in 16, j in 16, k in 64, it is of i2 in 16, j2 in 16, k2 in 32
// ORDER: 'b' must hold a of the instruction in the order of i then k, as 16 rows, evenly apart, of 32 neighbours
// LAYOUT: 'turned' must hold b of the instruction in the order of k floordiv 2 then j then k mod 2, as 16 rows, evenly apart, of 32 neighbours
// TARGET: 'neon.m2n2k4.bf16' needs a CPU with bf16, the target's model is sapphirerapids: name another, or features=+bf16
// UNKNOWN: no intrinsic is called 'mine'; there are amx.m16n16k32.bf16, amx.m16n16k64.s8, amx.m16n16k64.s8u8,
