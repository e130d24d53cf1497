"""GGUF files: language models whose weights stay in the file's blocks.

`container` reads the bytes, `architecture` what they say of the model, `decoder` writes the graph.
"""
