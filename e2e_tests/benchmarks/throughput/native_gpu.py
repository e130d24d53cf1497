"""The same network and products in PyTorch on this machine's GPU: cuDNN and cuBLAS in float32, TF32 off, CUDA graphs.

usage: python3 native_gpu.py DATA      prints one JSON line a measurement, as the page does

Knows nothing of webinfer: DATA/graph.json and graph.bin hold the network, images.bin and results.bin its input and
the answers that it must give.
"""

import json
import sys
import time
from pathlib import Path

import torch
import torch.nn.functional as F

ROUNDS = 7
CLAMPS = {"relu": (0.0, None), "relu6": (0.0, 6.0), "none": None}


class Network:
    """The exported graph as a function of NCHW images."""

    def __init__(self, folder: Path, layout: torch.memory_format) -> None:
        table = json.loads((folder / "graph.json").read_text())
        data = torch.frombuffer(bytearray((folder / "graph.bin").read_bytes()), dtype=torch.float32)
        self.table, self.values = table, {}
        self.layout = layout
        weights = {n["inputs"][1]: n["op"] for n in table["nodes"] if len(n["inputs"]) > 1}
        for row in table["constants"]:
            start = row["offset"] // 4
            tensor = data[start : start + row["size"]].reshape(row["shape"]).cuda()
            if weights.get(row["id"]) == "conv2d":  # HWIO
                tensor = tensor.permute(3, 2, 0, 1).contiguous(memory_format=layout)
            elif weights.get(row["id"]) == "depthwise_conv2d":  # HWC1
                tensor = tensor.permute(2, 3, 0, 1).contiguous(memory_format=layout)
            self.values[row["id"]] = tensor

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        values = {**self.values, self.table["inputs"][0]: x}
        for node in self.table["nodes"]:
            inputs = [values[i] if i is not None else None for i in node["inputs"]]
            values[node["output"]] = getattr(self, node["op"])(node["attrs"], *inputs)
        return values[self.table["outputs"][0]]

    def conv2d(self, attrs, x, w, bias=None, residual=None, slope=None, groups=1):
        top, bottom, left, right = attrs["pads"]
        padding = (top, left) if (top, left) == (bottom, right) else (0, 0)
        if padding == (0, 0) and any(attrs["pads"]):
            x = F.pad(x, (left, right, top, bottom))
        y = F.conv2d(x, w, bias, attrs["stride"], padding, attrs["dilation"], groups)
        if residual is not None:
            y = y + residual
        clamp = CLAMPS[attrs["activation"]]
        return y if clamp is None else torch.clamp(y, *clamp)

    def depthwise_conv2d(self, attrs, x, w, *rest):
        return self.conv2d(attrs, x, w, *rest, groups=x.shape[1])

    def average_pool2d(self, attrs, x):
        return F.avg_pool2d(x, attrs["window"], attrs["stride"])

    def reshape(self, attrs, x):
        return x.reshape(x.shape[0], -1)  # of one pixel: NCHW and NHWC are the same

    def softmax(self, attrs, x):
        return torch.softmax(x, 1)

    def add(self, attrs, a, b):
        return a + b

    def identity(self, attrs, x):
        return x


def captured(work):
    """The work as a CUDA graph."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            work()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = work()
    return graph, result


def spread(replay, seconds: float) -> dict[str, float]:
    """Milliseconds of a run, runs begun without waiting."""
    runs, times = 4, []
    while len(times) < ROUNDS:
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(runs):
            replay()
        torch.cuda.synchronize()
        spent = time.perf_counter() - begin
        if spent >= seconds / ROUNDS:
            times.append(spent / runs * 1e3)
        else:
            runs *= 2
    times.sort()
    return {"median": times[len(times) // 2], "min": times[0], "samples": len(times)}


def main(folder: Path) -> None:
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    shape = json.loads((folder / "shape.json").read_text())
    images = torch.frombuffer(bytearray((folder / "images.bin").read_bytes()), dtype=torch.float32).reshape(shape)
    want = torch.frombuffer(bytearray((folder / "results.bin").read_bytes()), dtype=torch.float32).reshape(shape[0], -1)
    with torch.inference_mode():
        for name, layout in (("NCHW", torch.contiguous_format), ("NHWC", torch.channels_last)):
            network = Network(folder, layout)
            for batch in (1, 32):
                x = images[:batch].permute(0, 3, 1, 2).contiguous(memory_format=layout).cuda()
                graph, result = captured(lambda x=x, network=network: network(x))
                graph.replay()
                difference = (result.cpu() - want[:batch]).abs().max().item()
                times = spread(graph.replay, 2.0)
                row = {"label": f"network, batch {batch}", "batch": batch, "layout": name, "resident_ms": times}
                row |= {"images_per_s": batch / times["median"] * 1e3, "max_abs_diff": difference}
                print(json.dumps(["native", row]), flush=True)
        for n in (1024, 2048, 4096):
            a, b = torch.rand(n, n, device="cuda"), torch.rand(n, n, device="cuda")
            graph, _ = captured(lambda a=a, b=b: a @ b)
            times = spread(graph.replay, 2.0)
            row = {"label": f"matmul {n}", "n": n, "resident_ms": times, "tflops": 2 * n**3 / times["median"] / 1e9}
            print(json.dumps(["native", row]), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
