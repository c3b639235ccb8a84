// RUN: xdsl-opt %s -p lw-convert-kernel-to-mlir --split-input-file --verify-diagnostics | filecheck %s
// RUN: xdsl-opt %s -p lw-convert-kernel-to-mlir --split-input-file --verify-diagnostics | xdsl-opt --split-input-file | filecheck %s
// RUN: xdsl-opt %s -p lw-convert-kernel-to-mlir --split-input-file --verify-diagnostics --print-op-generic | filecheck %s --check-prefix=GENERIC

// A CPU's threads: their buffers are on the stack or the heap, as their scope says; the caller's are seen flat.

builtin.module attributes {lw.target = #lw.target<"llvm cores=2">} {
  func.func @rows(%x: memref<4x8xf32> {lw.name = "x"}, %y: memref<4x8xf32> {lw.name = "y", lw.output}) {
    %c8 = arith.constant 8 : index
    lw_kernel.parallel %i in 4 {
      %tile = lw_kernel.alloc "tile" : memref<8xf32, "local">
      %panel = lw_kernel.alloc "panel" : memref<4096xf32>
      %c0 = arith.constant 0 : index
      %at = arith.muli %i, %c8 : index
      %m = lw_kernel.mask %i step -2 : vector<8xi1>
      %v = lw_kernel.load %x[%at] mask %m : memref<4x8xf32> -> vector<8xf32>
      lw_kernel.store %v, %tile[%c0] : vector<8xf32>, memref<8xf32, "local">
      lw_kernel.prefetch %x[%at + 64] : memref<4x8xf32>
      %s = lw_kernel.load %tile[%c0 + 3] stride 0 : memref<8xf32, "local"> -> f32
      lw_kernel.store %s, %y[%at + 1] : f32, memref<4x8xf32>
    }
    func.return
  }
}

// CHECK: builtin.module {
// CHECK-NEXT: func.func @rows(%x: memref<4x8xf32>, %y: memref<4x8xf32>) {
// CHECK: %[[X:[0-9]+]] = memref.reinterpret_cast %x to offset: [0], sizes: [32], strides: [1] : memref<4x8xf32> to memref<32xf32>
// CHECK-NEXT: %[[Y:[0-9]+]] = memref.reinterpret_cast %y
// CHECK-NEXT: "scf.parallel"
// CHECK-NEXT: ^bb{{[0-9]+}}(%i: index):
// CHECK-NEXT: %tile = memref.alloca() {alignment = 64 : i64} : memref<8xf32>
// CHECK-NEXT: %panel = memref.alloc() {alignment = 64 : i64} : memref<4096xf32>
// CHECK-NEXT: %[[AT:[0-9]+]] = arith.muli %i
// CHECK-NEXT: %[[HALF:[0-9]+]] = arith.floordivsi %i
// CHECK-NEXT: %[[COUNT:[0-9]+]] = arith.addi %[[HALF]]
// CHECK-NEXT: %[[MASK:[0-9]+]] = vector.create_mask %[[COUNT]] : vector<8xi1>
// CHECK-NEXT: %[[V:[0-9]+]] = vector.maskedload %[[X]][%[[AT]]], %[[MASK]]
// CHECK-NEXT: vector.store %[[V]], %tile
// CHECK-NEXT: arith.addi
// CHECK-NEXT: memref.load %tile
// CHECK-NEXT: arith.addi
// CHECK-NEXT: memref.store {{.*}} %[[Y]]
// CHECK-NEXT: memref.dealloc %panel
// CHECK-NEXT: scf.reduce
// GENERIC: "func.func"() <{sym_name = "rows", function_type = (memref<4x8xf32>, memref<4x8xf32>) -> ()}>

// -----

// A launch: a kernel of the device's module, with what its threads share.

func.func @turn(%x: memref<32xf32> {lw.name = "x"}, %y: memref<32xf32> {lw.name = "y", lw.output}) {
  lw_kernel.launch grid [4, 1, 1] block [8, 1, 1] {
    %s = lw_kernel.alloc "s" : memref<8xf32, "shared">
    %b = lw_kernel.thread "blockIdx.x" : index
    %t = lw_kernel.thread "threadIdx.x" : index
    lw_kernel.async_copy 1 %x[%t] -> %s[%t] : memref<32xf32> -> memref<8xf32, "shared">
    lw_kernel.commit
    lw_kernel.wait 0
    lw_kernel.barrier
    %v = lw_kernel.load %s[%b] : memref<8xf32, "shared"> -> f32
    lw_kernel.store %v, %y[%t] : f32, memref<32xf32>
  }
  func.return
}

// CHECK: builtin.module attributes {gpu.container_module} {
// CHECK-NEXT: "gpu.module"() <{sym_name = "turn_gpu"}> ({
// CHECK-NEXT: "memref.global"() <{sym_name = "s_1", type = memref<8xf32, 3 : i64>
// CHECK-NEXT: "gpu.func"() <{function_type = (memref<32xf32>, memref<32xf32>) -> ()}> ({
// CHECK-NEXT: ^bb{{[0-9]+}}(%x: memref<32xf32>, %y: memref<32xf32>):
// CHECK-NEXT: %s = memref.get_global @s_1 : memref<8xf32, 3 : i64>
// CHECK-NEXT: %b = "gpu.block_id"() <{dimension = #gpu<dim x>}> : () -> index
// CHECK-NEXT: %t = "gpu.thread_id"() <{dimension = #gpu<dim x>}> : () -> index
// CHECK-NEXT: %[[C:[0-9]+]] = memref.load %x[%t] : memref<32xf32>
// CHECK-NEXT: memref.store %[[C]], %s[%t] : memref<8xf32, 3 : i64>
// CHECK-NEXT: "gpu.barrier"() : () -> ()
// CHECK-NEXT: %[[V:[0-9]+]] = memref.load %s[%b] : memref<8xf32, 3 : i64>
// CHECK-NEXT: memref.store %[[V]], %y[%t] : memref<32xf32>
// CHECK-NEXT: "gpu.return"() : () -> ()
// CHECK-NEXT: }) {sym_name = "turn_0", gpu.kernel, known_block_size = array<i32: 8, 1, 1>, known_grid_size = array<i32: 4, 1, 1>} : () -> ()
// CHECK: "gpu.launch_func"({{.*}}, %x, %y) <{kernel = @turn_gpu::@turn_0
// GENERIC: "gpu.launch_func"
