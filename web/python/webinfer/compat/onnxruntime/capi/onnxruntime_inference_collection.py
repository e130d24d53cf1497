"""The classes of sessions and values under the home that older code imports them from."""

from webinfer.compat.onnxruntime.binding import IOBinding
from webinfer.compat.onnxruntime.session import InferenceSession
from webinfer.compat.onnxruntime.values import OrtDevice, OrtValue

__all__ = ["IOBinding", "InferenceSession", "OrtDevice", "OrtValue"]
