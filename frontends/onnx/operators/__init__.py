"""Converters of ONNX operators: every function here with a capital letter converts the operator of its name."""
