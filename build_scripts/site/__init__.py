"""What is served: the engine's wheel, the memory snapshot, the site folder, and the server around it."""
