// RUN: xdsl-opt %s -p 'lw-split{block=D loop=i factors=2,3},lw-split{block=D loop=j factors=2,4},lw-reorder{block=D loops=i0,j0,i1,j1},lw-bind{block=D loop=i0 thread="blockIdx.y"},lw-bind{block=D loop=j0 thread=vthread},lw-bind{block=D loop=i1 thread="threadIdx.y"},lw-bind{block=D loop=j1 thread="threadIdx.x"}' | filecheck %s --check-prefix=BOUND
// RUN: xdsl-opt %s -p 'lw-bind{block=D loop=i thread="threadIdx.w"}' --verify-diagnostics | filecheck %s --check-prefix=WHAT
// RUN: xdsl-opt %s -p 'lw-bind{block=C loop=k thread="threadIdx.y"}' --verify-diagnostics | filecheck %s --check-prefix=REDUCE
// RUN: xdsl-opt %s -p 'lw-bind{block=C loop=k thread="threadIdx.x"}' | filecheck %s --check-prefix=JOINED
// RUN: xdsl-opt %s -p 'lw-bind{block=D loop=i thread="threadIdx.x"},lw-bind{block=D loop=j thread="threadIdx.x"}' --verify-diagnostics | filecheck %s --check-prefix=TWICE
// RUN: xdsl-opt %s -p 'lw-bind{block=D loop=i thread="threadIdx.x"},lw-bind{block=D loop=j thread="blockIdx.x"}' --verify-diagnostics | filecheck %s --check-prefix=INSIDE
// RUN: xdsl-opt %s -p 'lw-bind{block=D loop=j thread="blockIdx.x"},lw-bind{block=D loop=i thread=vthread}' --verify-diagnostics | filecheck %s --check-prefix=OUTSIDE
// RUN: xdsl-opt %s -p 'lw-split{block=D loop=i factors=1,9},lw-bind{block=D loop=i1 thread="threadIdx.y"},lw-bind{block=D loop=j thread="threadIdx.x"}' --verify-diagnostics | filecheck %s --check-prefix=THREADS
// RUN: xdsl-opt %s -p 'lw-bind{block=D loop=j thread=vthread}' | filecheck %s --check-prefix=VTHREADS
// RUN: xdsl-opt %s -p 'lw-parallel{block=D loop=i},lw-bind{block=D loop=j thread="threadIdx.x"}' --verify-diagnostics | filecheck %s --check-prefix=CPU

module attributes {lw.target = #lw.target<"cuda max_threads_per_block=64 max_vthreads=4">} {
func.func @mm(%A: memref<6x10xf32> {lw.name = "A"}, %B: memref<10x8xf32> {lw.name = "B"}, %D: memref<6x8xf32> {lw.name = "D", lw.output}) {
  %C = lw_loop.alloc "C" : memref<6x8xf32>
  lw_loop.for i in 6 {
    lw_loop.for j in 8 {
      lw_loop.for k in 10 {
        lw_loop.block C (i in 6 = i, j in 8 = j, reduce k in 10 = k) writes %C[i, j] : memref<6x8xf32> add {
          %a = lw_loop.load %A[i, k] : memref<6x10xf32>
          %b = lw_loop.load %B[k, j] : memref<10x8xf32>
          %m = arith.mulf %a, %b : f32
          lw_te.yield %m : f32
        }
      }
    }
  }
  lw_loop.for i in 6 {
    lw_loop.for j in 8 {
      lw_loop.block D (i in 6 = i, j in 8 = j) writes %D[i, j] : memref<6x8xf32> {
        %c = lw_loop.load %C[i, j] : memref<6x8xf32>
        %e = math.exp %c : f32
        lw_te.yield %e : f32
      }
    }
  }
  func.return
}
}

// BOUND: %C = lw_loop.alloc "C" : memref<6x8xf32>
// BOUND-NEXT: lw_loop.for i in 6 {
// BOUND-NEXT: lw_loop.for j in 8 {
// BOUND-NEXT: lw_loop.for k in 10 {
// BOUND-NEXT: lw_loop.block C (i in 6 = i, j in 8 = j, reduce k in 10 = k) writes %C[i, j] : memref<6x8xf32> add {
// BOUND: lw_loop.for i0 in 2 blockIdx.y {
// BOUND-NEXT: lw_loop.for j0 in 2 vthread {
// BOUND-NEXT: lw_loop.for i1 in 3 threadIdx.y {
// BOUND-NEXT: lw_loop.for j1 in 4 threadIdx.x {
// BOUND-NEXT: lw_loop.block D (i in 6 = i0 * 3 + i1, j in 8 = j0 * 4 + j1) writes %D[i, j] : memref<6x8xf32> {

// WHAT: lw-bind{block="D" loop="i" thread="threadIdx.w"}: thread must be one of blockIdx.x, blockIdx.y, blockIdx.z, threadIdx.x, threadIdx.y, threadIdx.z, vthread, got 'threadIdx.w'

// REDUCE: lw-bind{block="C" loop="k" thread="threadIdx.y"}: iterations that run at once must share nothing, but for 'k' block 'C' reduces over it
// REDUCE-NEXT: try: lw-rfactor{block="C" loop="k"}
// REDUCE: >     lw_loop.for k in 10 {

// JOINED: lw_loop.for k in 10 threadIdx.x {
// JOINED-NEXT: lw_loop.block C (i in 6 = i, j in 8 = j, reduce k in 10 = k)

// TWICE: lw-bind{block="D" loop="j" thread="threadIdx.x"}: one axis must not be bound twice on one path, 'i' is threadIdx.x already
// TWICE: > lw_loop.for i in 6 threadIdx.x {

// INSIDE: lw-bind{block="D" loop="j" thread="blockIdx.x"}: blocks hold threads, so blockIdx goes outside: 'j' must be around 'i'; reorder first
// INSIDE: > lw_loop.for i in 6 threadIdx.x {

// OUTSIDE: lw-bind{block="D" loop="i" thread="vthread"}: blocks hold threads, so blockIdx goes outside: 'j' must be around 'i'; reorder first
// OUTSIDE: >   lw_loop.for j in 8 blockIdx.x {

// THREADS: lw-bind{block="D" loop="j" thread="threadIdx.x"}: a block has at most 64 threads on this target, got 72 (threadIdx.x 8 * threadIdx.y 9)
// THREADS: >     lw_loop.for j in 8 {

// More virtual threads than a search tries are no limit of a device.
// VTHREADS: lw_loop.for j in 8 vthread {

// CPU: lw-bind{block="D" loop="j" thread="threadIdx.x"}: a nest runs on the threads of a CPU or of a GPU, 'i' is parallel
// CPU: > lw_loop.for i in 6 parallel {
