// RUN: xdsl-opt %s -p 'lw-graph-lower-precision,dce' | filecheck %s
// RUN: xdsl-opt %s -p 'lw-graph-lower-precision{dtype=bfloat16},dce' | filecheck %s --check-prefix=WIDER
// RUN: xdsl-opt %s -p 'lw-graph-lower-precision{beyond=0},dce' | filecheck %s --check-prefix=BEYOND
// RUN: not xdsl-opt %s -p 'lw-graph-lower-precision{dtype=fp8}' 2>&1 | filecheck %s --check-prefix=REFUSED
// REFUSED: dtype is float16 or bfloat16 or tf32 or tf32x3, got 'fp8'

// A product in the half type, between casts of what is declared; numbers are rounded here, weights by an operator.
// CHECK-LABEL: func.func @product(%x: tensor<2x4xf32>) -> tensor<2x3xf32>
// BEYOND-LABEL: func.func @product
func.func @product(%x: tensor<2x4xf32>) -> tensor<2x3xf32> {
  // CHECK-NEXT: %[[data:[a-z_0-9]*]] = lw_graph.apply "cast" (%x) <dtype = "float16"> : (tensor<2x4xf32>)
  // CHECK: %[[weight:[a-z_0-9]*]] = lw_graph.apply "cast" (%w) <dtype = "float16"> : (tensor<3x4xf32>)
  // CHECK-NEXT: %[[product:[a-z_0-9]*]] = lw_graph.apply "dense" (%[[data]], %[[weight]]) : {{.*}} -> tensor<2x3xf16>
  // BEYOND: lw_graph.apply "dense" (%x, %w) : {{.*}} -> tensor<2x3xf32>
  %w = lw_graph.constant "w" : tensor<3x4xf32>
  %d = lw_graph.apply "dense" (%x, %w) : (tensor<2x4xf32>, tensor<3x4xf32>) -> tensor<2x3xf32>
  // CHECK-NEXT: %[[tenth:[a-z_0-9]*]] = lw_graph.constant "tenth" = 0.0999755859375 : tensor<f16>
  // CHECK-NEXT: %[[scaled:[a-z_0-9]*]] = lw_graph.apply "multiply" (%[[product]], %[[tenth]]) : {{.*}} -> tensor<2x3xf16>
  // CHECK-NEXT: %[[result:[a-z_0-9]*]] = lw_graph.apply "cast" (%[[scaled]]) <dtype = "float32">
  // CHECK-NEXT: func.return %[[result]] : tensor<2x3xf32>
  %h = lw_graph.constant "tenth" = 0.1 : tensor<f32>
  %m = lw_graph.apply "multiply" (%d, %h) : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  func.return %m : tensor<2x3xf32>
}

// An exponential reads what the network is given, as exact as it is; its readers stay in float32 up to the product.
// CHECK-LABEL: func.func @exponential
func.func @exponential(%x: tensor<4x4xf32>, %n: tensor<4xi32>) -> tensor<4x4xf32> {
  // CHECK-NEXT: %[[exp:[a-z_0-9]*]] = lw_graph.apply "exp" (%x) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %e = lw_graph.apply "exp" (%x) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  // CHECK-NEXT: %[[count:[a-z_0-9]*]] = lw_graph.apply "cast" (%n) <dtype = "float32">
  %f = lw_graph.apply "cast" (%n) <dtype = "float32"> : (tensor<4xi32>) -> tensor<4xf32>
  // CHECK-NEXT: %[[sum:[a-z_0-9]*]] = lw_graph.apply "add" (%[[exp]], %[[count]]) : {{.*}} -> tensor<4x4xf32>
  // CHECK-NEXT: %[[half:[a-z_0-9]*]] = lw_graph.apply "cast" (%[[sum]]) <dtype = "float16">
  %s = lw_graph.apply "add" (%e, %f) : (tensor<4x4xf32>, tensor<4xf32>) -> tensor<4x4xf32>
  // CHECK-NEXT: lw_graph.apply "matmul" (%[[half]], %[[half]]) : {{.*}} -> tensor<4x4xf16>
  %p = lw_graph.apply "matmul" (%s, %s) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  func.return %p : tensor<4x4xf32>
}

// A number that float16 has not, and bfloat16 has; integers are left alone.
// CHECK-LABEL: func.func @mask
// WIDER-LABEL: func.func @mask
func.func @mask(%x: tensor<4xf32>, %n: tensor<4xi32>) -> (tensor<4xf32>, tensor<4xi32>) {
  // CHECK: lw_graph.apply "add" (%x, %far) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  // WIDER: lw_graph.apply "add" ({{.*}}) : (tensor<4xbf16>, tensor<bf16>) -> tensor<4xbf16>
  %far = lw_graph.constant "far" = -1.0e9 : tensor<f32>
  %m = lw_graph.apply "add" (%x, %far) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  // CHECK-NEXT: lw_graph.apply "add" (%n, %n) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  %i = lw_graph.apply "add" (%n, %n) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  func.return %m, %i : tensor<4xf32>, tensor<4xi32>
}

// Numbers of 8 bits and truth are exact in 16: a cast from them gives the half type. A cast to integers computes nothing.
// CHECK-LABEL: func.func @bytes
func.func @bytes(%n: tensor<4xui8>, %x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xi32>, tensor<4xi1>) {
  // CHECK-NEXT: %[[half:[a-z_0-9]*]] = lw_graph.apply "cast" (%x) <dtype = "float16">
  // CHECK-NEXT: %[[byte:[a-z_0-9]*]] = lw_graph.apply "cast" (%n) <dtype = "float16"> : (tensor<4xui8>)
  %f = lw_graph.apply "cast" (%n) <dtype = "float32"> : (tensor<4xui8>) -> tensor<4xf32>
  // CHECK-NEXT: lw_graph.apply "add" (%[[byte]], %[[half]])
  %a = lw_graph.apply "add" (%f, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  // CHECK: lw_graph.apply "cast" (%x) <dtype = "int32"> : (tensor<4xf32>) -> tensor<4xi32>
  %i = lw_graph.apply "cast" (%x) <dtype = "int32"> : (tensor<4xf32>) -> tensor<4xi32>
  // CHECK-NEXT: %[[less:[a-z_0-9]*]] = lw_graph.apply "less" (%[[byte]], %[[half]]) : {{.*}} -> tensor<4xi1>
  // CHECK-NEXT: func.return {{.*}}, %[[less]]
  %l = lw_graph.apply "less" (%f, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  func.return %a, %i, %l : tensor<4xf32>, tensor<4xi32>, tensor<4xi1>
}
