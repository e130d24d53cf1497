"""The language of small kernels: an index space, and what the element at each index is.

An operator describes its kernel once, beside `infer`; codegen/ writes that as WGSL when a model is loaded and as C when
the kernels are built. Devices, sizes and texts of a language are not here: sizes are parameters of the kernel.

    formula.py   numbers and operators: what elementwise operators are made of
    kernel.py    index variables, tensors read at index expressions, reductions
    broadcast.py index spaces of inputs that are repeated along some axes
    reduction.py operators that reduce axes, as rows: what is taken, how it is joined, what is made of it

Gathers, scatters, resizing and patterns are a few lines each. Products of matrices, convolutions and attention stay
written by hand.
"""
