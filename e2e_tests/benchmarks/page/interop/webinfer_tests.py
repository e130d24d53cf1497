"""The four interop tests in webinfer: conv2d, add, relu, by custom operators, by built-in ones, and mixed."""

import array
import json

import js
from pyodide.ffi import to_js

import webinfer

CONV2D = """
    let at = place_y(i);
    var sum = 0.0;
    for (var kh = 0u; kh < w_shape[1]; kh++) {
        for (var kw = 0u; kw < w_shape[2]; kw++) {
            let row = at[1] + kh;  // counted with the pixel of padding
            let column = at[2] + kw;
            if (row == 0u || row > x_shape[1] || column == 0u || column > x_shape[2]) { continue; }
            let pixel = index_x(array<u32, 4>(at[0], row - 1u, column - 1u, 0u));
            let weight = index_w(array<u32, 4>(at[3], kh, kw, 0u));
            for (var c = 0u; c < x_shape[3]; c++) { sum += load_x(pixel + c) * load_w(weight + c); }
        }
    }
    return sum;
"""
webinfer.register_operator(
    "interop.conv2d", inputs=("x", "w"), shape=lambda x, w: (*x.shape[:3], w.shape[0]), wgsl=CONV2D
)
webinfer.register_operator("interop.add", inputs=("x", "b"), wgsl="load_x(i) + load_b(i % b_count)")
webinfer.register_operator("interop.relu", wgsl="max(load_x(i), 0.0)")
webinfer.register_operator(
    "interop.add_relu",
    inputs=("x", "b"),
    form="quad",
    wgsl="max(load4_x(q) + load4_b(q % (b_count / 4u)), y_v(0.0))",
)
PADS = (1, 1, 1, 1)


def configure(urls):
    webinfer.configure(json.loads(urls))


class Chain:
    """Sessions one after the other: each one's output goes to the next through host memory, or stays on the GPU."""

    def __init__(self, sessions, on_gpu=False):
        self.sessions, self.on_gpu = sessions, on_gpu

    async def once(self, feed):
        *heads, last = self.sessions
        for session in heads:
            if self.on_gpu:
                (feed,) = (await session.run_on_gpu(feed)).values()
            else:
                (feed,) = (await session.run(feed)).values()
        (result,) = (await last.run(feed)).values()
        if self.on_gpu:
            feed.close()
        return result

    def plan(self):
        return [f"{row.op} on {row.backend}: {row.kernel}" for s in self.sessions for row in s.plan().rows]


class Tests:
    """The tests by name. With `resident`, x lies in a GPU buffer already: nothing but the result crosses."""

    def __init__(self, x, w, b, shapes, resident):
        self.x, self.b = (array.array("f", data.to_bytes()) for data in (x, b))
        self.w = webinfer.Tensor(w.to_bytes(), tuple(shapes["w"]), webinfer.DType.FLOAT32)
        self.x_shape, self.resident = tuple(shapes["x"]), resident
        self.chains, self.inputs = {}, {}

    async def open(self, name):
        """Loads a test; its plan as a list of lines."""
        chain = self.chains[name] = await getattr(self, f"_{name}")()
        on_gpu = self.resident and chain.sessions[0].backend == "webgpu"
        self.inputs[name] = await self._uploaded() if on_gpu else self.x
        return to_js(chain.plan())

    async def _uploaded(self):
        g, x = self._graph("upload")
        session = await self._load(g, g.node("identity", x))
        return (await session.run_on_gpu(self.x))["y"]

    def _graph(self, name):
        g = webinfer.GraphBuilder(name)
        return g, g.input("x", self.x_shape)

    async def _load(self, g, y, backend="webgpu"):
        g.output(y, "y")
        return await webinfer.load(g, backend=backend, strict=True)

    async def _custom(self):
        g, x = self._graph("custom")
        y = g.node("interop.conv2d", x, self.w)
        return Chain([await self._load(g, g.node("interop.relu", g.node("interop.add", y, self.b)))])

    async def _host(self, backend="webgpu", on_gpu=False):
        g, x = self._graph("conv2d")
        first = await self._load(g, g.node("conv2d", x, self.w, pads=PADS), backend)
        g = webinfer.GraphBuilder("add_relu")
        y = g.input("y", first.outputs[0].shape)
        return Chain([first, await self._load(g, g.node("interop.add_relu", y, self.b))], on_gpu)

    async def _wasm(self):
        return await self._host("wasm")

    async def _handed(self):
        return await self._host(on_gpu=True)

    async def _shared(self):
        g, x = self._graph("shared")
        y = g.node("conv2d", x, self.w, pads=PADS)
        return Chain([await self._load(g, g.node("interop.add_relu", y, self.b))])

    async def _builtin(self):
        g, x = self._graph("builtin")
        y = g.node("conv2d", x, self.w, pads=PADS)
        return Chain([await self._load(g, g.node("relu", g.node("add", y, self.b)))])

    async def result(self, name):
        """The output as a typed array."""
        return to_js((await self.chains[name].once(self.inputs[name])).flat())

    async def times(self, name, runs):
        """Milliseconds of each run, from Python's memory to Python's memory."""
        times, now = [], js.performance.now
        chain, feed = self.chains[name], self.inputs[name]
        for _ in range(runs):
            begin = now()
            await chain.once(feed)
            times.append(now() - begin)
        return to_js(times)


def make_tests(x, w, b, shapes, resident):
    return Tests(x, w, b, shapes.to_py(), resident)
