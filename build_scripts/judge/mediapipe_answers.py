"""What MediaPipe's own solutions see in photos. Runs in an environment that holds mediapipe; see judge/tasks.py.

python mediapipe_answers.py OUTPUT.json GESTURES.task FACE_GEOMETRY.py PHOTO ...

Masks are written beside the output, as .npy. Out of FACE_GEOMETRY.py come the canonical face's points, which no file of
MediaPipe's package holds.
"""

import json
import os
import runpy
import sys
from pathlib import Path
from typing import Any

import mediapipe  # type: ignore[import-not-found]
import numpy as np
from google.protobuf import text_format  # type: ignore[import-untyped]
from mediapipe.framework import calculator_pb2  # type: ignore[import-not-found]
from mediapipe.python import packet_creator, packet_getter  # type: ignore[import-not-found]
from mediapipe.python._framework_bindings.calculator_graph import CalculatorGraph  # type: ignore[import-not-found]
from mediapipe.tasks.cc.vision.face_geometry.calculators import (  # type: ignore[import-not-found]  # noqa: F401
    env_generator_calculator_pb2,
    geometry_pipeline_calculator_pb2,
)  # options that GEOMETRY names
from mediapipe.tasks.cc.vision.face_geometry.proto import (  # type: ignore[import-not-found]
    geometry_pipeline_metadata_pb2,
)
from PIL import Image

SOLUTIONS = mediapipe.solutions
FACE_POINTS = 468
GEOMETRY = """
input_stream: "image"  output_stream: "landmarks"  output_stream: "geometry"
node {
  calculator: "ConstantSidePacketCalculator"
  output_side_packet: "PACKET:0:one"  output_side_packet: "PACKET:1:no"
  node_options: { [type.googleapis.com/mediapipe.ConstantSidePacketCalculatorOptions]: {
    packet { int_value: 1 }  packet { bool_value: false }
  } }
}
node {
  calculator: "FaceLandmarkFrontCpu"
  input_stream: "IMAGE:image"  output_stream: "LANDMARKS:landmarks"
  input_side_packet: "NUM_FACES:one"  input_side_packet: "WITH_ATTENTION:no"
  input_side_packet: "USE_PREV_LANDMARKS:no"
}
node { calculator: "ImagePropertiesCalculator"  input_stream: "IMAGE_CPU:image"  output_stream: "SIZE:size" }
node {
  calculator: "mediapipe.tasks.vision.face_geometry.FaceGeometryEnvGeneratorCalculator"
  output_side_packet: "ENVIRONMENT:camera"
  options { [mediapipe.tasks.vision.face_geometry.FaceGeometryEnvGeneratorCalculatorOptions.ext] { environment {
    origin_point_location: TOP_LEFT_CORNER
    perspective_camera { vertical_fov_degrees: 63.0  near: 1.0  far: 10000.0 }
  } } }
}
node {
  calculator: "mediapipe.tasks.vision.face_geometry.FaceGeometryPipelineCalculator"
  input_side_packet: "ENVIRONMENT:camera"  input_stream: "IMAGE_SIZE:size"
  input_stream: "MULTI_FACE_LANDMARKS:landmarks"  output_stream: "MULTI_FACE_GEOMETRY:geometry"
  options { [mediapipe.tasks.vision.face_geometry.FaceGeometryPipelineCalculatorOptions.ext] {
    metadata_file { file_name: "METADATA" }
  } }
}
"""  # as MediaPipe's FaceLandmarker has them


def points(found: Any) -> list[list[float]]:
    """x and y of each landmark, relative to the picture, and z."""
    return [[p.x, p.y, p.z] for p in found.landmark]


def faces(image: Any, refined: bool) -> list[dict[str, Any]]:
    """The landmarks of all faces."""
    options = {"static_image_mode": True, "max_num_faces": 4, "refine_landmarks": refined}
    with SOLUTIONS.face_mesh.FaceMesh(**options) as solution:
        return [{"landmarks": points(one)} for one in solution.process(image).multi_face_landmarks or []]


def geometry_graph(anchors: Any, metadata: Path) -> Any:
    """A graph of the landmarks of one face and of its transformation matrix. Points that do not count lie at 0."""
    told = geometry_pipeline_metadata_pb2.GeometryPipelineMetadata(input_source=1)
    vertices = np.zeros((FACE_POINTS, 5))
    for index, weight, *place in anchors:
        vertices[index, :3] = place
        told.procrustes_landmark_basis.add(landmark_id=index, weight=weight)
    told.canonical_mesh.vertex_type = told.canonical_mesh.primitive_type = 0
    told.canonical_mesh.vertex_buffer.extend(vertices.ravel().tolist())
    told.canonical_mesh.index_buffer.extend([0, 1, 2])
    metadata.write_bytes(told.SerializeToString())
    text = GEOMETRY.replace("METADATA", str(metadata))
    return text_format.Parse(text, calculator_pb2.CalculatorGraphConfig())


def face_geometry(image: Any, config: Any) -> list[dict[str, Any]]:
    """The landmarks of one face, and its transformation matrix."""
    graph, found = CalculatorGraph(graph_config=config), dict[str, Any]()
    for name in ("landmarks", "geometry"):
        graph.observe_output_stream(name, lambda stream, packet: found.update({stream: packet}))
    graph.start_run()
    frame = packet_creator.create_image_frame(image_format=mediapipe.ImageFormat.SRGB, data=image)
    graph.add_packet_to_input_stream("image", frame.at(1))
    graph.wait_until_idle()
    rows = [packet_getter.get_proto_list(found[name]) for name in ("landmarks", "geometry")] if found else [[], []]
    graph.close()
    matrices = [np.array(one.pose_transform_matrix.packed_data).reshape(4, 4).T.tolist() for one in rows[1]]
    return [{"landmarks": points(face), "matrix": matrix} for face, matrix in zip(rows[0], matrices, strict=True)]


def hands(image: Any) -> list[dict[str, Any]]:
    """The landmarks of all hands, and which hand each is."""
    with SOLUTIONS.hands.Hands(static_image_mode=True, max_num_hands=4, model_complexity=1) as solution:
        found = solution.process(image)
    rows = zip(found.multi_hand_landmarks or [], found.multi_handedness or [], strict=True)
    return [{"landmarks": points(one), "kind": side.classification[0].label} for one, side in rows]


def poses(image: Any, mask: Path) -> list[dict[str, Any]]:
    """The landmarks of one body; its mask is written to a file."""
    with SOLUTIONS.pose.Pose(static_image_mode=True, model_complexity=1, enable_segmentation=True) as solution:
        found = solution.process(image)
    if found.segmentation_mask is not None:
        np.save(mask, found.segmentation_mask)
    return [{"landmarks": points(found.pose_landmarks)}] if found.pose_landmarks else []


def gestures(image: Any, bundle: Path) -> list[dict[str, Any]]:
    """The landmarks of all hands and their gestures, those of the bundle's own classifier among them.

    This recognizer calls those hands left that MediaPipe's solutions, and we, call right.
    """
    vision, base = mediapipe.tasks.vision, mediapipe.tasks.BaseOptions(model_asset_path=str(bundle))
    with vision.GestureRecognizer.create_from_options(
        vision.GestureRecognizerOptions(base_options=base, num_hands=4)
    ) as recognizer:
        found = recognizer.recognize(mediapipe.Image(image_format=mediapipe.ImageFormat.SRGB, data=image))
    rows = zip(found.hand_landmarks, found.hand_world_landmarks, found.handedness, found.gestures, strict=True)
    return [
        {
            "landmarks": [[p.x, p.y, p.z] for p in hand], "world": [[p.x, p.y, p.z] for p in world],
            "side": "Left" if side[0].category_name == "Right" else "Right", "sure": side[0].score,
            "kind": told[0].category_name, "score": told[0].score,
        }
        for hand, world, side, told in rows
    ]  # fmt: skip


def person(image: Any) -> dict[str, list[dict[str, Any]]]:
    """The landmarks of one body, its face and its hands, each a list of one or of none."""
    with SOLUTIONS.holistic.Holistic(static_image_mode=True, model_complexity=1) as solution:
        found = solution.process(image)
    parts = {part: getattr(found, f"{part}_landmarks") for part in ("pose", "face", "left_hand", "right_hand")}
    return {part: [{"landmarks": points(marks)}] if marks else [] for part, marks in parts.items()}


def main() -> None:
    """Writes the answers for all photos."""
    output, bundle, geometry, *photos = map(Path, sys.argv[1:])
    config = geometry_graph(runpy.run_path(str(geometry))["ANCHORS"], output.parent / "face_geometry.binarypb")
    os.chdir(Path(mediapipe.__file__).parent.parent)  # graphs look for models from there
    answers = {}
    for photo in photos:
        image = np.array(Image.open(photo).convert("RGB"))
        answers[photo.name] = {
            "face_mesh": faces(image, False),
            "face_mesh_attention": faces(image, True),
            "face_geometry": face_geometry(image, config),
            "hands": hands(image),
            "gestures": gestures(image, bundle),
            "poses": poses(image, output.parent / f"pose_{photo.name}.npy"),
            "holistic": person(image),
        }
        for number, name in enumerate(("selfie", "selfie_landscape")):
            with SOLUTIONS.selfie_segmentation.SelfieSegmentation(model_selection=number) as solution:
                np.save(output.parent / f"{name}_{photo.name}.npy", solution.process(image).segmentation_mask)
    output.write_text(json.dumps(answers))


main()
