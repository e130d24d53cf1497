"""TensorFlow.js: how random nodes of each operator are drawn, and what judges a graph."""
