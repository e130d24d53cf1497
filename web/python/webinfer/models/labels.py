"""Names of the classes that published models tell apart."""

# The 80 classes of COCO, a set of photos of everyday things, in its order.
COCO = tuple(
    "person,bicycle,car,motorcycle,airplane,bus,train,truck,boat,traffic light,fire hydrant,stop sign,parking meter,"
    "bench,bird,cat,dog,horse,sheep,cow,elephant,bear,zebra,giraffe,backpack,umbrella,handbag,tie,suitcase,frisbee,"
    "skis,snowboard,sports ball,kite,baseball bat,baseball glove,skateboard,surfboard,tennis racket,bottle,wine glass,"
    "cup,fork,knife,spoon,bowl,banana,apple,sandwich,orange,broccoli,carrot,hot dog,pizza,donut,cake,chair,couch,"
    "potted plant,bed,dining table,toilet,tv,laptop,mouse,remote,keyboard,cell phone,microwave,oven,toaster,sink,"
    "refrigerator,book,clock,vase,scissors,teddy bear,hair drier,toothbrush".split(",")
)
_UNUSED = (11, 25, 28, 29, 44, 65, 67, 68, 70, 82)  # numbers that COCO gave to no class, counted from 0


def _numbered() -> tuple[str, ...]:
    names = iter(COCO)
    return tuple("" if i in _UNUSED else next(names) for i in range(len(COCO) + len(_UNUSED)))


COCO_NUMBERS = _numbered()  # as COCO counts: its own numbers less one, "" where it has no class
