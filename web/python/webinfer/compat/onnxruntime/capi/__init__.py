"""The modules of `onnxruntime.capi` that packages import: errors, and the classes under their old homes."""
