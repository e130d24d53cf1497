"""Views of a photo that are the same to the byte wherever they are made: NumPy's indexing and integers only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
VIEWS: dict[str, Callable[[Array], Array]] = {
    "as it is": lambda a: a,
    "mirrored": lambda a: a[:, ::-1],
    "dark": lambda a: a // 3,
    "grey": lambda a: np.repeat(a[..., 1:2], 3, axis=2),
    "half": lambda a: a[::2, ::2],
    "cropped": lambda a: a[37:403, 61:500],
    "wide": lambda a: a[40:260],
    "narrow": lambda a: a[:, 130:330],
    "enlarged": lambda a: np.repeat(np.repeat(a[20:300, 90:370], 3, axis=0), 3, axis=1),
    "two": lambda a: np.concatenate([a[:300, 100:400], a[30:330, 400:100:-1]], axis=1),
}
