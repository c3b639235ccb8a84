// RUN: xdsl-opt %s --verify-diagnostics | filecheck %s

// CHECK: operator 'reshape': extents are at least 1, got tensor<0x3xf32>
func.func @nothing(%x: tensor<0x3xf32>) -> tensor<3x0xf32> {
  %v = lw_graph.apply "reshape" (%x) <shape = [3, 0]> : (tensor<0x3xf32>) -> tensor<3x0xf32>
  func.return %v : tensor<3x0xf32>
}
