"""Random graphs, judged by the runtime of their format: `fuzz`."""
