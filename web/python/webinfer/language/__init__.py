"""Language models: tokenizers, chat templates, conversations and text generation.

The graph and its weights come from `importers.gguf`; the arithmetic is the backends'. Nothing here knows a kernel.
"""
