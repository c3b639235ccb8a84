// RUN: xdsl-opt %s --split-input-file --verify-diagnostics --parsing-diagnostics | filecheck %s

// What the kernel dialect prints parses back: flat buffers, addresses with a constant part, lane strides, masks, lanes.

func.func @accesses(%a: memref<64xf32> {lw.name = "a"}, %out: memref<64xf32> {lw.name = "out", lw.output}) {
  %zero = arith.constant 0 : index
  %t = lw_kernel.alloc "t" : memref<16xf32, "local">
  lw_kernel.parallel %i in 4 {
    %lanes = lw_kernel.lanes : vector<8xindex>
    %some = lw_kernel.mask %i step -1 : vector<8xi1>
    %x = lw_kernel.load %a[%i + 4] : memref<64xf32> -> vector<8xf32>
    %y = lw_kernel.load %a[%i - 1] stride 2 mask %some : memref<64xf32> -> vector<8xf32>
    %one = lw_kernel.load %a[%i] : memref<64xf32> -> f32
    %z = lw_kernel.gather %a[%lanes] mask %some : memref<64xf32>, vector<8xindex>, vector<8xi1> -> vector<8xf32>
    %less = lw_kernel.compare "olt" %x, %y : vector<8xf32>
    %v = lw_kernel.select %less, %y, %z : vector<8xf32>
    %n = lw_kernel.convert "fptosi" %v : vector<8xf32> -> vector<8xi32>
    lw_kernel.prefetch %a[%i + 32] : memref<64xf32>
    lw_kernel.store %v, %out[%i] align 4 : vector<8xf32>, memref<64xf32>
    lw_kernel.store %x, %out[%i + 8] stride 3 mask %less : vector<8xf32>, memref<64xf32>
    lw_kernel.scatter %z, %out[%lanes] mask %less : vector<8xf32>, memref<64xf32>, vector<8xindex>, vector<8xi1>
  }
  func.return
}

// CHECK: func.func @accesses(%a: memref<64xf32> {lw.name = "a"}, %out: memref<64xf32> {lw.name = "out", lw.output}) {
// CHECK-NEXT: %zero = arith.constant 0 : index
// CHECK-NEXT: %t = lw_kernel.alloc "t" : memref<16xf32, "local">
// CHECK-NEXT: lw_kernel.parallel %i in 4 {
// CHECK-NEXT: %lanes = lw_kernel.lanes : vector<8xindex>
// CHECK-NEXT: %some = lw_kernel.mask %i step -1 : vector<8xi1>
// CHECK-NEXT: %x = lw_kernel.load %a[%i + 4] : memref<64xf32> -> vector<8xf32>
// CHECK-NEXT: %y = lw_kernel.load %a[%i - 1] stride 2 mask %some : memref<64xf32> -> vector<8xf32>
// CHECK-NEXT: %one = lw_kernel.load %a[%i] : memref<64xf32> -> f32
// CHECK-NEXT: %z = lw_kernel.gather %a[%lanes] mask %some : memref<64xf32>, vector<8xindex>, vector<8xi1> -> vector<8xf32>
// CHECK-NEXT: %less = lw_kernel.compare "olt" %x, %y : vector<8xf32>
// CHECK-NEXT: %v = lw_kernel.select %less, %y, %z : vector<8xf32>
// CHECK-NEXT: %n = lw_kernel.convert "fptosi" %v : vector<8xf32> -> vector<8xi32>
// CHECK-NEXT: lw_kernel.prefetch %a[%i + 32] : memref<64xf32>
// CHECK-NEXT: lw_kernel.store %v, %out[%i] align 4 : vector<8xf32>, memref<64xf32>
// CHECK-NEXT: lw_kernel.store %x, %out[%i + 8] stride 3 mask %less : vector<8xf32>, memref<64xf32>
// CHECK-NEXT: lw_kernel.scatter %z, %out[%lanes] mask %less : vector<8xf32>, memref<64xf32>, vector<8xindex>, vector<8xi1>
// CHECK-NEXT: }
// CHECK-NEXT: func.return
// CHECK-NEXT: }

// -----

func.func @launch(%a: memref<64xf32> {lw.name = "a"}, %out: memref<64xf32> {lw.name = "out", lw.output}) {
  lw_kernel.launch grid [2, 1, 1] block [32, 1, 1] {
    %s = lw_kernel.alloc "s" : memref<32xf32, "shared">
    %t = lw_kernel.thread "threadIdx.x" : index
    %x = lw_kernel.load %a[%t] : memref<64xf32> -> f32
    lw_kernel.store %x, %s[%t] : f32, memref<32xf32, "shared">
    lw_kernel.barrier
    %there = arith.cmpi slt, %t, %t : index
    %y = lw_kernel.shuffle %x, 16 : f32
    lw_kernel.async_copy 4 %a[%t] -> %s[%t + 8] : memref<64xf32> -> memref<32xf32, "shared">
    lw_kernel.async_copy 1 %a[%t - 1] -> %s[%t] if %there : memref<64xf32> -> memref<32xf32, "shared">
    lw_kernel.commit
    lw_kernel.wait 1
    %c = lw_kernel.alloc "arrived" : memref<2xi32, "counters">
    %last = lw_kernel.arrive %c[%t] of 4 : memref<2xi32, "counters">
    lw_kernel.store %y, %out[%t + 32] : f32, memref<64xf32>
  }
  func.return
}

// CHECK: func.func @launch(%a: memref<64xf32> {lw.name = "a"}, %out: memref<64xf32> {lw.name = "out", lw.output}) {
// CHECK-NEXT: lw_kernel.launch grid [2, 1, 1] block [32, 1, 1] {
// CHECK-NEXT: %s = lw_kernel.alloc "s" : memref<32xf32, "shared">
// CHECK-NEXT: %t = lw_kernel.thread "threadIdx.x" : index
// CHECK-NEXT: %x = lw_kernel.load %a[%t] : memref<64xf32> -> f32
// CHECK-NEXT: lw_kernel.store %x, %s[%t] : f32, memref<32xf32, "shared">
// CHECK-NEXT: lw_kernel.barrier
// CHECK-NEXT: %there = arith.cmpi slt, %t, %t : index
// CHECK-NEXT: %y = lw_kernel.shuffle %x, 16 : f32
// CHECK-NEXT: lw_kernel.async_copy 4 %a[%t] -> %s[%t + 8] : memref<64xf32> -> memref<32xf32, "shared">
// CHECK-NEXT: lw_kernel.async_copy 1 %a[%t - 1] -> %s[%t] if %there : memref<64xf32> -> memref<32xf32, "shared">
// CHECK-NEXT: lw_kernel.commit
// CHECK-NEXT: lw_kernel.wait 1
// CHECK-NEXT: %c = lw_kernel.alloc "arrived" : memref<2xi32, "counters">
// CHECK-NEXT: %last = lw_kernel.arrive %c[%t] of 4 : memref<2xi32, "counters">
// CHECK-NEXT: lw_kernel.store %y, %out[%t + 32] : f32, memref<64xf32>
// CHECK-NEXT: }
// CHECK-NEXT: func.return
// CHECK-NEXT: }

// -----

func.func @bad(%a: memref<64xf32>, %i: index, %v: vector<8xf32>, %m: vector<8xi1>, %n: vector<8xi32>) {
  %t = lw_kernel.alloc "t" : memref<4x4xf32>
  func.return
}

// CHECK: buffer 't' is memref<4x4xf32>, kernel buffers are flat

// -----

func.func @bad(%a: memref<64xf32>, %i: index, %v: vector<8xf32>, %m: vector<8xi1>, %n: vector<8xi32>) {
  %x = lw_kernel.load %a[%i] : memref<64xf32> -> vector<8xi32>
  func.return
}

// CHECK: a buffer of f32 holds no vector<8xi32>

// -----

func.func @bad(%a: memref<64xf32>, %i: index, %v: vector<8xf32>, %m: vector<8xi1>, %n: vector<8xi32>) {
  lw_kernel.store %n, %a[%i] : vector<8xi32>, memref<64xf32>
  func.return
}

// CHECK: a buffer of f32 holds no vector<8xi32>

// -----

func.func @bad(%a: memref<64xf32>, %i: index, %v: vector<8xf32>, %m: vector<8xi1>, %n: vector<8xi32>) {
  %x = "lw_kernel.load"(%a, %i, %m) <{offset = #builtin.int<0>, stride = #builtin.int<1>}> : (memref<64xf32>, index, vector<8xi1>) -> vector<4xf32>
  func.return
}

// CHECK: a mask for vector<4xf32> has type vector<4xi1>, got vector<8xi1>

// -----

func.func @bad(%a: memref<64xf32>, %i: index, %v: vector<8xf32>, %m: vector<8xi1>, %n: vector<8xi32>) {
  %x = lw_kernel.compare "slt" %v, %v : vector<8xf32>
  func.return
}

// CHECK: 'slt' does not compare vector<8xf32> with vector<8xf32>

// -----

func.func @bad(%a: memref<64xf32>, %i: index, %v: vector<8xf32>, %m: vector<8xi1>, %n: vector<8xi32>) {
  %x = "lw_kernel.select"(%m, %v, %n) : (vector<8xi1>, vector<8xf32>, vector<8xi32>) -> vector<8xf32>
  func.return
}

// CHECK: vector<8xi1> does not select between vector<8xf32> and vector<8xi32> as vector<8xf32>

// -----

func.func @bad(%a: memref<64xf32>, %i: index, %v: vector<8xf32>, %m: vector<8xi1>, %n: vector<8xi32>) {
  %x = lw_kernel.convert "extf" %v : vector<8xf32> -> vector<8xf64>
  func.return
}

// CHECK: 'extf' is none of extsi, extui, trunci, sitofp, uitofp, fptosi, fptoui, index_cast

// -----

func.func @bad(%a: memref<64xf32>, %i: index, %v: vector<8xf32>, %m: vector<8xi1>, %n: vector<8xi32>) {
  %x = lw_kernel.convert "sitofp" %n : vector<8xi32> -> vector<4xf32>
  func.return
}

// CHECK: vector<8xi32> and vector<4xf32> differ in their lanes

// -----

func.func @bad(%a: memref<64xf32>, %i: index, %v: vector<8xf32>, %m: vector<8xi1>, %n: vector<8xi32>) {
  lw_kernel.launch grid [2, 0, 1] block [32, 1, 1] {
    lw_kernel.barrier
  }
  func.return
}

// CHECK: lw_kernel.launch has three positive sizes for its grid and for its block

// -----

func.func @bad(%a: memref<64xf32>, %i: index, %v: vector<8xf32>, %m: vector<8xi1>, %n: vector<8xi32>) {
  %t = lw_kernel.thread "warpIdx.x" : index
  func.return
}

// CHECK: 'warpIdx.x' is none of blockIdx.x, blockIdx.y, blockIdx.z, threadIdx.x, threadIdx.y, threadIdx.z

// -----

func.func @crooked() {
  %s = lw_kernel.alloc "s" align 48 : memref<64xf16, "shared">
  func.return
}

// CHECK: buffer 's' starts at a multiple of 16 bytes that is a power of two, got 48

// -----

// Matrix instructions of a warp.
func.func @matrices(%out: memref<64xf32> {lw.name = "out", lw.output}) {
  lw_kernel.launch grid [1, 1, 1] block [32, 1, 1] per_sm 2 {
    %s = lw_kernel.alloc "s" align 1024 : memref<512xf16, "shared">
    %c = lw_kernel.alloc "c" : memref<8xf32, "local">
    %t = lw_kernel.thread "threadIdx.x" : index
    %a = lw_kernel.fragment_load 4 %s[%t + 8] : memref<512xf16, "shared">
    %b = lw_kernel.fragment_load 2 %s[%t] turned : memref<512xf16, "shared">
    lw_kernel.mma "mma.m16n8k16.f16" %a, %b, %c[%t] at [0, 1, 4, 5] : memref<8xf32, "local">
  }
  func.return
}

// CHECK: lw_kernel.launch grid [1, 1, 1] block [32, 1, 1] per_sm 2 {
// CHECK-NEXT: %s = lw_kernel.alloc "s" align 1024 : memref<512xf16, "shared">
// CHECK: %a = lw_kernel.fragment_load 4 %s[%t + 8] : memref<512xf16, "shared">
// CHECK-NEXT: %b = lw_kernel.fragment_load 2 %s[%t] turned : memref<512xf16, "shared">
// CHECK-NEXT: lw_kernel.mma "mma.m16n8k16.f16" %a, %b, %c[%t] at [0, 1, 4, 5] : memref<8xf32, "local">

// -----

func.func @three_matrices(%s: memref<64xf16, "shared">, %i: index) {
  %a = lw_kernel.fragment_load 3 %s[%i] : memref<64xf16, "shared">
  func.return
}

// CHECK: a warp loads 1, 2 or 4 matrices to registers of i32, got vector<3xi32>

// -----

func.func @from_global(%s: memref<64xf16>, %i: index) {
  %a = lw_kernel.fragment_load 2 %s[%i] : memref<64xf16>
  func.return
}

// CHECK: a warp loads matrices from shared memory, not from memref<64xf16>

// -----

func.func @few_places(%s: memref<64xf16, "shared">, %c: memref<4xf32, "local">, %i: index) {
  %a = lw_kernel.fragment_load 4 %s[%i] : memref<64xf16, "shared">
  %b = lw_kernel.fragment_load 2 %s[%i] : memref<64xf16, "shared">
  lw_kernel.mma "mma.m16n8k16.f16" %a, %b, %c[%i] at [0, 1] : memref<4xf32, "local">
  func.return
}

// CHECK: a lane holds 4 sums of 'mma.m16n8k16.f16', got 2 places

// -----

func.func @other_sums(%s: memref<64xf16, "shared">, %c: memref<4xf16, "local">, %i: index) {
  %a = lw_kernel.fragment_load 4 %s[%i] : memref<64xf16, "shared">
  %b = lw_kernel.fragment_load 2 %s[%i] : memref<64xf16, "shared">
  lw_kernel.mma "mma.m16n8k16.f16" %a, %b, %c[%i] at [0, 1, 2, 3] : memref<4xf16, "local">
  func.return
}

// CHECK: 'mma.m16n8k16.f16' adds to registers of f32, got memref<4xf16, "local">

// -----

// Matrix instructions of a warp group, and what the copy engine brings them.
func.func @groups(%a: memref<4096xf16> {lw.name = "a"}, %out: memref<64xf32> {lw.name = "out", lw.output}) {
  lw_kernel.launch grid [1, 1, 1] block [128, 1, 1] {
    %s = lw_kernel.alloc "s" align 1024 : memref<4096xf16, "shared">
    %bars = lw_kernel.alloc "bars" : memref<2xi64, "shared">
    %c = lw_kernel.alloc "c" : memref<16xf32, "local">
    %t = lw_kernel.thread "threadIdx.x" : index
    lw_kernel.mbarrier_init %bars[%t + 0], 1 : memref<2xi64, "shared">
    lw_kernel.mbarrier_expect %bars[%t + 0], 8192 : memref<2xi64, "shared">
    lw_kernel.bulk_copy %a[%t, %t] of [64, 64] box [64, 64] swizzle 128 -> %s[%t + 0], %bars[%t + 0] : memref<4096xf16> -> memref<4096xf16, "shared">, memref<2xi64, "shared">
    lw_kernel.bulk_copy %a[%t, %t] of [64, 64] box [64, 64] swizzle 128 once -> %s[%t + 0], %bars[%t + 0] : memref<4096xf16> -> memref<4096xf16, "shared">, memref<2xi64, "shared">
    lw_kernel.bulk_copy %a[%t, %t] of [64, 64] box [64, 64] swizzle 128 -> %s[%t + 0], %bars[%t + 0] across [blockIdx.y, blockIdx.z] : memref<4096xf16> -> memref<4096xf16, "shared">, memref<2xi64, "shared">
    lw_kernel.cluster_meet
    lw_kernel.mbarrier_await %bars[%t + 0], %t : memref<2xi64, "shared">
    lw_kernel.proxy_fence
    lw_kernel.wgmma_fence
    lw_kernel.wgmma "wgmma.m64n32k16.f16" %s[%t + 16] rows 128, %s[%t] rows 128 panel 8192 turned, %c[%t] at [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15] : memref<4096xf16, "shared">, memref<4096xf16, "shared">, memref<16xf32, "local">
    lw_kernel.wgmma_commit
    lw_kernel.wgmma_wait 1
  }
  func.return
}

// CHECK: lw_kernel.mbarrier_init %bars[%t], 1 : memref<2xi64, "shared">
// CHECK-NEXT: lw_kernel.mbarrier_expect %bars[%t], 8192 : memref<2xi64, "shared">
// CHECK-NEXT: lw_kernel.bulk_copy %a[%t, %t] of [64, 64] box [64, 64] swizzle 128 -> %s[%t], %bars[%t] : memref<4096xf16> -> memref<4096xf16, "shared">, memref<2xi64, "shared">
// CHECK-NEXT: lw_kernel.bulk_copy %a[%t, %t] of [64, 64] box [64, 64] swizzle 128 once -> %s[%t], %bars[%t] : memref<4096xf16> -> memref<4096xf16, "shared">, memref<2xi64, "shared">
// CHECK-NEXT: lw_kernel.bulk_copy %a[%t, %t] of [64, 64] box [64, 64] swizzle 128 -> %s[%t], %bars[%t] across [blockIdx.y, blockIdx.z] : memref<4096xf16> -> memref<4096xf16, "shared">, memref<2xi64, "shared">
// CHECK-NEXT: lw_kernel.cluster_meet
// CHECK-NEXT: lw_kernel.mbarrier_await %bars[%t], %t : memref<2xi64, "shared">
// CHECK-NEXT: lw_kernel.proxy_fence
// CHECK-NEXT: lw_kernel.wgmma_fence
// CHECK-NEXT: lw_kernel.wgmma "wgmma.m64n32k16.f16" %s[%t + 16] rows 128, %s[%t] rows 128 panel 8192 turned, %c[%t] at [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15] : memref<4096xf16, "shared">, memref<4096xf16, "shared">, memref<16xf32, "local">
// CHECK-NEXT: lw_kernel.wgmma_commit
// CHECK-NEXT: lw_kernel.wgmma_wait 1

// -----

func.func @narrow_rows(%a: memref<4096xf16>, %s: memref<4096xf16, "shared">, %bars: memref<2xi64, "shared">, %i: index) {
  lw_kernel.bulk_copy %a[%i, %i] of [64, 64] box [64, 32] swizzle 128 -> %s[%i], %bars[%i] : memref<4096xf16> -> memref<4096xf16, "shared">, memref<2xi64, "shared">
  func.return
}

// CHECK: no bulk copy of memref<4096xf16>: the rows of a box are 64 bytes, and must be 128 as its swizzle

// -----

func.func @large_box(%a: memref<32768xf16>, %s: memref<32768xf16, "shared">, %bars: memref<2xi64, "shared">, %i: index) {
  lw_kernel.bulk_copy %a[%i, %i] of [512, 64] box [512, 64] swizzle 128 -> %s[%i], %bars[%i] : memref<32768xf16> -> memref<32768xf16, "shared">, memref<2xi64, "shared">
  func.return
}

// CHECK: a box of [512, 64] has more than 256 elements along a dimension

// -----

func.func @not_a_group(%s: memref<64xf16, "shared">, %c: memref<4xf32, "local">, %i: index) {
  lw_kernel.wgmma "mma.m16n8k16.f16" %s[%i] rows 128, %s[%i] rows 128, %c[%i] at [0, 1, 2, 3] : memref<64xf16, "shared">, memref<64xf16, "shared">, memref<4xf32, "local">
  func.return
}

// CHECK: no intrinsic of a warp group is called 'mma.m16n8k16.f16'

// -----

func.func @instructions(%x: memref<64xf32>, %i: index, %there: i1, %v: vector<4xf32>) {
  %s = lw_kernel.alloc "s" : memref<64xf32, "shared">
  %sum = lw_kernel.alloc "sum" : memref<4xf32, "local">
  lw_kernel.ptx [f0 = %sum[3], f1 = %v[2], p0 = %s[%i * 4 + %i], place0 = %s[], pointer0 = %x[%i], size0 = 16 if %there, asked0 = %there] {
    "@asked0 cp.async.cg.shared.global [place0], [pointer0], 16, size0;"
    "ld.shared.f32 t1, [p0+4];"
    "fma.rn.f32 t2, t1, f1, f0;"
  } [%sum[3] = t2] temporaries 2 : memref<4xf32, "local">, vector<4xf32>, memref<64xf32, "shared">, index, memref<64xf32>, i1
  "lw_kernel.ptx"(%sum) <{code = #lw_kernel.ptx<[f0 = 0[3]] { } [0[1] = f0] temporaries 0>}> : (memref<4xf32, "local">) -> ()
  "lw_kernel.ptx"(%i, %sum, %s, %i) <{code = #lw_kernel.ptx<[p0 = 2[0 * 4 + 3]] { "a \"note\"" } [1[1] = t1] temporaries 1>}> : (index, memref<4xf32, "local">, memref<64xf32, "shared">, index) -> ()
  func.return
}

// CHECK: func.func @instructions
// CHECK: lw_kernel.ptx [f0 = %sum[3], f1 = %v[2], p0 = %s[%i * 4 + %i], place0 = %s[], pointer0 = %x[%i], size0 = 16 if %there, asked0 = %there] {
// CHECK-NEXT: "@asked0 cp.async.cg.shared.global [place0], [pointer0], 16, size0;"
// CHECK-NEXT: "ld.shared.f32 t1, [p0+4];"
// CHECK-NEXT: "fma.rn.f32 t2, t1, f1, f0;"
// CHECK-NEXT: } [%sum[3] = t2] temporaries 2 : memref<4xf32, "local">, vector<4xf32>, memref<64xf32, "shared">, index, memref<64xf32>, i1
// CHECK-NEXT: lw_kernel.ptx [f0 = %sum[3]] {
// CHECK-NEXT: } [%sum[1] = f0] temporaries 0 : memref<4xf32, "local">
// CHECK-NEXT: lw_kernel.ptx [p0 = %s[%i * 4 + %i]] {
// CHECK-NEXT: "a \22note\22"
// CHECK-NEXT: } [%sum[1] = t1] temporaries 1 : memref<64xf32, "shared">, index, memref<4xf32, "local">

// -----

func.func @unknown_register(%s: memref<64xf32, "shared">) {
  lw_kernel.ptx [q0 = %s[]] { } [] temporaries 0 : memref<64xf32, "shared">
  func.return
}

// CHECK: a register that is set is f, p, place, pointer, size, asked and a number, got 'q0'

// -----

func.func @address_of_registers(%s: memref<64xf32, "local">) {
  lw_kernel.ptx [p0 = %s[]] { } [] temporaries 0 : memref<64xf32, "local">
  func.return
}

// CHECK: register p0 is set to no memref<64xf32, "local">

// -----

func.func @result_in_memory(%s: memref<64xf32>) {
  lw_kernel.ptx [] { } [%s[0] = t1] temporaries 1 : memref<64xf32>
  func.return
}

// CHECK: t1 is written to memref<64xf32>, which is no array of a thread

// -----

func.func @no_index(%s: memref<64xf32, "shared">, %i: i32) {
  lw_kernel.ptx [p0 = %s[%i]] { } [] temporaries 0 : memref<64xf32, "shared">, i32
  func.return
}

// CHECK: the place of p0 is a sum of multiples of indices

// -----

func.func @gap(%s: memref<64xf32, "shared">) {
  lw_kernel.ptx [p0 = %s[], p2 = %s[]] { } [] temporaries 0 : memref<64xf32, "shared">
  func.return
}

// CHECK: registers p are numbered from 0 in their order, got p0, p2

// -----

func.func @no_operand(%s: memref<4xf32, "local">) {
  "lw_kernel.ptx"(%s) <{code = #lw_kernel.ptx<[f0 = 5[0]] { } [0[0] = f0] temporaries 0>}> : (memref<4xf32, "local">) -> ()
  func.return
}

// CHECK: instructions of 1 operands name each of these, got 0, 5

// -----

func.func @unnamed(%s: memref<4xf32, "local">, %i: index) {
  "lw_kernel.ptx"(%s, %i) <{code = #lw_kernel.ptx<[] { } [0[0] = t1] temporaries 1>}> : (memref<4xf32, "local">, index) -> ()
  func.return
}

// CHECK: instructions of 2 operands name each of these, got 0

// -----

func.func @beyond_an_array(%s: memref<4xf32, "local">) {
  lw_kernel.ptx [f0 = %s[4]] { } [] temporaries 0 : memref<4xf32, "local">
  func.return
}

// CHECK: register f0 is set to no element 4 of memref<4xf32, "local">

// -----

func.func @before_an_array(%s: memref<4xf32, "local">) {
  lw_kernel.ptx [] { } [%s[-1] = t1] temporaries 1 : memref<4xf32, "local">
  func.return
}

// CHECK: t1 is written to element -1 of memref<4xf32, "local">

// -----

func.func @no_such_register(%s: memref<4xf32, "local">) {
  lw_kernel.ptx [] { } [%s[0] = t2] temporaries 1 : memref<4xf32, "local">
  func.return
}

// CHECK: t2 is written to memref<4xf32, "local">, and there is no such register
