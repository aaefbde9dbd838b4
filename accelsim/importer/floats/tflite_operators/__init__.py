"""Rules of TensorFlow Lite's float operators: each module's `RULES` maps one to its function."""
