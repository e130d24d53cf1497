"""What every importer shares: graph writer, limits, collected problems, constants, layouts, the walk over operators.

A format adds how its file is read and a table of converters; no format's machinery lives here. Later formats keep
to the same contract: values are found by the file's own keys, graphs are NHWC, sizes are bound before conversion.
"""
