"""What users write: graphs built in Python, and operators of their own."""
