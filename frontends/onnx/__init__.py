"""Networks from ONNX models: `lw.from_onnx`."""
