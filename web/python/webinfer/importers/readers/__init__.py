"""Bytes of container formats as checked records: FlatBuffers and FlexBuffers. Knows no model format."""
