"""Layers models of TensorFlow.js: the layers of Keras in a model.json, as versions 2 and 3 write them → graph.

A layer's converter is a row of a family's table. Weights are read as those of graph models.
"""
