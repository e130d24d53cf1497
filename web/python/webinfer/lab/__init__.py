"""Other devices, driven from here: a browser that opens the lab's page and agrees becomes one.

    device = await webinfer.lab.device("pixel")        # the name that its page shows
    session = await device.load("model.tflite", backend="webgpu")
    outputs = await session.run({"input": array})
    print(await session.verify("reference"), await session.bench(), await session.profile())
    print(await session.tune(budget_ms=20_000))        # kept there, and in the lab's database
    await device.close()

    with webinfer.lab.Executor() as executor:          # all devices that are there, and those that come
        results = list(executor.map("model.tflite", batches))

The lab is a server, `python3 -m build_scripts serve --lab`; it prints an address with a token, which the environment
variable WEBINFER_LAB or `address=` names here. Nothing in this room computes: it asks the engine of the other device.
"""

from webinfer.lab.addresses import devices, results, tunings
from webinfer.lab.device import Device, device
from webinfer.lab.errors import DeviceBusyError, DeviceGoneError, LabError, NoDeviceError
from webinfer.lab.executor import Executor
from webinfer.lab.session import DeviceSession, Timing

__all__ = [
    "Device",
    "DeviceBusyError",
    "DeviceGoneError",
    "DeviceSession",
    "Executor",
    "LabError",
    "NoDeviceError",
    "Timing",
    "device",
    "devices",
    "results",
    "tunings",
]
