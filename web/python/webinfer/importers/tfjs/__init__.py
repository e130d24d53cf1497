"""TensorFlow.js: model.json with the bytes of its weights → graph. Graph models, which are TensorFlow's own graphs.

A node's converter is a row of a family's table. Operators that mean what TFLite's mean are read by TFLite's rows.
"""
