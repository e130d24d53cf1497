"""Language models: text to numbers and back, templates of chats, conversations, generation.

The graph and its weights come from `importers.gguf`; the arithmetic is the backends'. Nothing here knows a kernel.
"""
