"""The backends of this checkout's engine, as its registry lists them."""

import sys

from build_scripts.paths import ENGINE


def use_engine() -> None:
    """Makes `import webinfer` mean the engine of this checkout."""
    if str(ENGINE.parent) not in sys.path:
        sys.path.insert(0, str(ENGINE.parent))


def inference_backends() -> list[str]:
    """The names of the backends that run models."""
    use_engine()
    from webinfer.backends import registry

    return registry.inference_names()


def definition() -> str:
    """The name of the backend that says what is right."""
    use_engine()
    from webinfer.backends import registry

    return registry.definition()
