"""The WASM kernels: from kernels.toml and C sources to modules and generated tables."""
