"""How fast: webinfer and its rivals in one page, kernels, start-up, throughput, tuning."""
