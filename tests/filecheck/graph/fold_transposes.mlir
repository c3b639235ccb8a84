// RUN: xdsl-opt %s -p 'lw-graph-fold-transposes,dce' | filecheck %s

// Both factors have heads between rows and columns, and so has the result behind an operator of each element.
// CHECK-LABEL: func.func @heads
func.func @heads(%q: tensor<16x3x8xf16>, %k: tensor<16x3x8xf16>, %m: tensor<1x16x1xf16>) -> tensor<16x3x8xf16> {
  // CHECK-NEXT: %s = lw_graph.apply "einsum" (%q, %k) <equation = "abc,dbc->bad">
  // CHECK-NEXT: %o = lw_graph.apply "einsum" (%s, %k) <equation = "abc,cad->bad">
  // CHECK: lw_graph.apply "multiply" (%o, %{{.*}}) : (tensor<16x3x8xf16>, tensor<16x1x1xf16>) -> tensor<16x3x8xf16>
  // CHECK-NEXT: func.return
  %a = lw_graph.apply "transpose" (%q) <axes = [1, 0, 2]> : (tensor<16x3x8xf16>) -> tensor<3x16x8xf16>
  %b = lw_graph.apply "transpose" (%k) <axes = [1, 2, 0]> : (tensor<16x3x8xf16>) -> tensor<3x8x16xf16>
  %s = lw_graph.apply "batch_matmul" (%a, %b) : (tensor<3x16x8xf16>, tensor<3x8x16xf16>) -> tensor<3x16x16xf16>
  %v = lw_graph.apply "transpose" (%k) <axes = [1, 0, 2]> : (tensor<16x3x8xf16>) -> tensor<3x16x8xf16>
  %o = lw_graph.apply "batch_matmul" (%s, %v) : (tensor<3x16x16xf16>, tensor<3x16x8xf16>) -> tensor<3x16x8xf16>
  %w = lw_graph.apply "multiply" (%o, %m) : (tensor<3x16x8xf16>, tensor<1x16x1xf16>) -> tensor<3x16x8xf16>
  %t = lw_graph.apply "transpose" (%w) <axes = [1, 0, 2]> : (tensor<3x16x8xf16>) -> tensor<16x3x8xf16>
  func.return %t : tensor<16x3x8xf16>
}

// Rows of the result would be neighbours in memory.
// CHECK-LABEL: func.func @turned
func.func @turned(%x: tensor<16x8xf16>, %w: tensor<24x8xf16>) -> tensor<24x16xf16> {
  // CHECK-NEXT: lw_graph.apply "dense"
  // CHECK-NEXT: lw_graph.apply "transpose"
  %d = lw_graph.apply "dense" (%x, %w) : (tensor<16x8xf16>, tensor<24x8xf16>) -> tensor<16x24xf16>
  %t = lw_graph.apply "transpose" (%d) <axes = [1, 0]> : (tensor<16x24xf16>) -> tensor<24x16xf16>
  func.return %t : tensor<24x16xf16>
}
