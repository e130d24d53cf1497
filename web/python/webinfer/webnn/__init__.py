"""The standard WebNN interface over this engine: what `navigator.ml` of web/static/webnn/webnn.js asks of Python.

`signatures` declares each builder method: its arguments and the types and ranks that it takes. `builder` checks a call
by them and by the operators' own declarations, and writes the graph; `bindings` is what JavaScript calls. Compiled
graphs run without Python: `compiling` says where their program and their tensors lie. Knows no operator's arithmetic.
"""
