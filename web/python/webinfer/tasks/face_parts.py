"""Which landmarks of a face mesh the attention model refines: the order of its outputs for lips, eyes and irises.

Source: MediaPipe, tensors_to_face_landmarks_with_attention (indices of the canonical face mesh).
"""

LIPS = (
    61, 146, 91, 181, 84, 17, 314, 405, 321, 375, 291, 185, 40, 39, 37, 0, 267, 269, 270, 409,
    78, 95, 88, 178, 87, 14, 317, 402, 318, 324, 308, 191, 80, 81, 82, 13, 312, 311, 310, 415,
    76, 77, 90, 180, 85, 16, 315, 404, 320, 307, 306, 184, 74, 73, 72, 11, 302, 303, 304, 408,
    62, 96, 89, 179, 86, 15, 316, 403, 319, 325, 292, 183, 42, 41, 38, 12, 268, 271, 272, 407,
)  # fmt: skip
LEFT_EYE = (  # left in the picture, as all sides here
    33, 7, 163, 144, 145, 153, 154, 155, 133, 246, 161, 160, 159, 158, 157, 173,
    130, 25, 110, 24, 23, 22, 26, 112, 243, 247, 30, 29, 27, 28, 56, 190,
    226, 31, 228, 229, 230, 231, 232, 233, 244, 113, 225, 224, 223, 222, 221, 189,
    35, 124, 46, 53, 52, 65, 143, 111, 117, 118, 119, 120, 121, 128, 245,
    156, 70, 63, 105, 66, 107, 55, 193,
)  # fmt: skip
RIGHT_EYE = (
    263, 249, 390, 373, 374, 380, 381, 382, 362, 466, 388, 387, 386, 385, 384, 398,
    359, 255, 339, 254, 253, 252, 256, 341, 463, 467, 260, 259, 257, 258, 286, 414,
    446, 261, 448, 449, 450, 451, 452, 453, 464, 342, 445, 444, 443, 442, 441, 413,
    265, 353, 276, 283, 282, 295, 372, 340, 346, 347, 348, 349, 350, 357, 465,
    383, 300, 293, 334, 296, 336, 285, 417,
)  # fmt: skip
IRIS_POINTS = 5
LEFT_IRIS, RIGHT_IRIS = (tuple(range(first, first + IRIS_POINTS)) for first in (468, 473))
PARTS = (LIPS, LEFT_EYE, RIGHT_EYE, LEFT_IRIS, RIGHT_IRIS)
EYES = (LEFT_EYE[:16], RIGHT_EYE[:16])  # the rims, whose depth is the irises'


def ring(rim: tuple[int, ...], low: int) -> tuple[int, ...]:
    """A rim, stored as `low` points from left to right and the others from left to right, too, as a closed line."""
    return (*rim[:low], *reversed(rim[low:]), rim[0])


# Lines that show a face: the outlines of lips and eyes, and the brows and the oval, each from side to side.
BROWS = ((70, 63, 105, 66, 107), (300, 293, 334, 296, 336))
OVAL = (
    10, 338, 297, 332, 284, 251, 389, 356, 454, 323, 361, 288, 397, 365, 379, 378, 400, 377, 152, 148, 176, 149, 150,
    136, 172, 58, 132, 93, 234, 127, 162, 21, 54, 103, 67, 109, 10,
)  # fmt: skip
CONTOURS = (
    ring(LIPS[:20], 11), ring(LIPS[20:40], 11), ring(LEFT_EYE[:16], 9), ring(RIGHT_EYE[:16], 9), *BROWS, OVAL,
)  # fmt: skip
