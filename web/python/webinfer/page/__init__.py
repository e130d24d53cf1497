"""Python's side of the demo page: the messages, the engine worker, the interpreter's memory snapshot."""
