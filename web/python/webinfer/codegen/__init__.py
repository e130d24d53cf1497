"""WGSL text and uniform bytes: rendering templates, generating bindings, packing parameters.

Text and bytes only: knows no device, no graph and no operator. Imports only the leaves and Jinja2.
"""
