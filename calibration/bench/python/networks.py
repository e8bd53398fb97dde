"""Where a network comes from: the library that users run where it is installed, else ftax's own graph of it."""

from text_graph import Network

# Names of the zoo → torchvision's.
TORCHVISION = {"alexnet": "alexnet", "densenet": "densenet161", "googlenet": "googlenet", "mnasnet": "mnasnet1_0",
               "mobilenet_v2": "mobilenet_v2", "resnet18": "resnet18", "resnet50": "resnet50",
               "resnet101": "resnet101", "resnext50_32x4d": "resnext50_32x4d", "shufflenet": "shufflenet_v2_x1_0",
               "squeezenet": "squeezenet1_0", "vgg16": "vgg16", "wide_resnet50_2": "wide_resnet50_2"}


_kept = {}  # the last module: a sweep over batches builds it once


def _from_torchvision(name, batch, precision, device):
    import torch
    import torchvision
    from text_graph import PRECISIONS
    key = (name, precision, device)
    if key not in _kept:
        _kept.clear()
        with torch.device(device):
            _kept[key] = _torchvision_module(torchvision, name).eval().to(PRECISIONS[precision])
    inputs = (torch.rand(batch, 3, 224, 224, device=device).to(PRECISIONS[precision]),)
    return _kept[key], inputs, f"torchvision {torchvision.__version__}"


def _torchvision_module(torchvision, name):
    options = {"init_weights": False} if name == "googlenet" else {}
    if name == "googlenet":
        options["aux_logits"] = False
    return getattr(torchvision.models, TORCHVISION[name])(weights=None, **options)


def build(request, arguments):
    """Returns module, inputs and where the module comes from."""
    precision, device = arguments["precision"], arguments["device"]
    bindings = request["bindings"]
    if request.get("model") in TORCHVISION:
        try:
            return _from_torchvision(request["model"], bindings["batch"], precision, device)
        except ImportError:
            pass
    network = Network(request["graph"], bindings, precision, device, request.get("weight_sets", 1)).eval()
    return network, network.inputs(), "ftax graph"
