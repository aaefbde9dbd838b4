"""Rules of ONNX's float operators: each module's `RULES` maps an operator to its function."""
