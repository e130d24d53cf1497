"""The classes of sessions and values under the home that older code imports them from."""

from webinfer.compat.onnxruntime.binding import IOBinding
from webinfer.compat.onnxruntime.providers import check_and_normalize_provider_args
from webinfer.compat.onnxruntime.session import InferenceSession
from webinfer.compat.onnxruntime.values import OrtDevice, OrtValue

__all__ = ["IOBinding", "InferenceSession", "OrtDevice", "OrtValue", "check_and_normalize_provider_args"]
