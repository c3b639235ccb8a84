"""Kernels for GPUs, written by hand in the kernel dialect."""

MATMUL = """
func.func @matmul(%A : memref<64x32xf32> {lw.name = "A"}, %B : memref<32x64xf32> {lw.name = "B"},
                  %C : memref<64x64xf32> {lw.name = "C", lw.output}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : vector<4xf32>
  lw_kernel.launch grid [4, 4, 1] block [4, 4, 1] {
    %As = lw_kernel.alloc "As" : memref<128xf32, "shared">
    %Bs = lw_kernel.alloc "Bs" : memref<128xf32, "shared">
    %acc = lw_kernel.alloc "acc" : memref<16xf32, "local">
    %bx = lw_kernel.thread "blockIdx.x" : index
    %by = lw_kernel.thread "blockIdx.y" : index
    %tx = lw_kernel.thread "threadIdx.x" : index
    %ty = lw_kernel.thread "threadIdx.y" : index
    lw_kernel.store %zero, %acc[%c0] : vector<4xf32>, memref<16xf32, "local">
    lw_kernel.store %zero, %acc[%c0 + 4] : vector<4xf32>, memref<16xf32, "local">
    lw_kernel.store %zero, %acc[%c0 + 8] : vector<4xf32>, memref<16xf32, "local">
    lw_kernel.store %zero, %acc[%c0 + 12] : vector<4xf32>, memref<16xf32, "local">
    %row = arith.muli %by, %c16 : index
    %column = arith.muli %bx, %c16 : index
    %tid_y = arith.muli %ty, %c4 : index
    %tid = arith.addi %tid_y, %tx : index
    scf.for %k = %c0 to %c32 step %c8 {
      lw_kernel.barrier
      %arow = arith.addi %row, %tid : index
      %abase = arith.muli %arow, %c32 : index
      %aplace = arith.addi %abase, %k : index
      %splace = arith.muli %tid, %c8 : index
      %a0 = lw_kernel.load %A[%aplace] align 16 : memref<64x32xf32> -> vector<8xf32>
      lw_kernel.store %a0, %As[%splace] align 16 : vector<8xf32>, memref<128xf32, "shared">
      %half = arith.remsi %tid, %c8 : index
      %part = arith.divsi %tid, %c8 : index
      %brow = arith.addi %k, %half : index
      %bbase = arith.muli %brow, %c64 : index
      %bcol = arith.addi %bbase, %column : index
      %poff = arith.muli %part, %c8 : index
      %bplace = arith.addi %bcol, %poff : index
      %b0 = lw_kernel.load %B[%bplace] align 16 : memref<32x64xf32> -> vector<8xf32>
      %bs0 = arith.muli %half, %c16 : index
      %bs1 = arith.addi %bs0, %poff : index
      lw_kernel.store %b0, %Bs[%bs1] align 16 : vector<8xf32>, memref<128xf32, "shared">
      lw_kernel.barrier
      scf.for %kk = %c0 to %c8 step %c1 {
        %bk = arith.muli %kk, %c16 : index
        %bt = arith.muli %tx, %c4 : index
        %bi = arith.addi %bk, %bt : index
        %b = lw_kernel.load %Bs[%bi] align 16 : memref<128xf32, "shared"> -> vector<4xf32>
        scf.for %i = %c0 to %c4 step %c1 {
          %r = arith.addi %tid_y, %i : index
          %r8 = arith.muli %r, %c8 : index
          %ai = arith.addi %r8, %kk : index
          %a = lw_kernel.load %As[%ai] stride 0 : memref<128xf32, "shared"> -> f32
          %av = vector.broadcast %a : f32 to vector<4xf32>
          %p = arith.muli %i, %c4 : index
          %old = lw_kernel.load %acc[%p] : memref<16xf32, "local"> -> vector<4xf32>
          %new = math.fma %av, %b, %old : vector<4xf32>
          lw_kernel.store %new, %acc[%p] : vector<4xf32>, memref<16xf32, "local">
        } {lw.unroll}
      } {lw.unroll = 4 : i64}
    }
    scf.for %i = %c0 to %c4 step %c1 {
      %r0 = arith.addi %row, %tid_y : index
      %r = arith.addi %r0, %i : index
      %r64 = arith.muli %r, %c64 : index
      %x0 = arith.addi %r64, %column : index
      %x1 = arith.muli %tx, %c4 : index
      %place = arith.addi %x0, %x1 : index
      %p = arith.muli %i, %c4 : index
      %v = lw_kernel.load %acc[%p] : memref<16xf32, "local"> -> vector<4xf32>
      lw_kernel.store %v, %C[%place] align 16 : vector<4xf32>, memref<64x64xf32>
    } {lw.unroll}
  }
  func.return
}
"""
