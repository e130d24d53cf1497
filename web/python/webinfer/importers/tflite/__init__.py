"""TFLite files → graph: schema (numbers), model (checked records), converters by family.

Holds no arithmetic on weights and no rewriting: what a file says is what the graph says.
"""
