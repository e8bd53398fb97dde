"""Where a network comes from: the library that users run where it is installed, else ftax's own graph of it."""

import gc
import importlib

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from recording import GRAPH_SOURCE
from text_graph import Network, float_type

# Names of the zoo → torchvision's.
TORCHVISION = {"alexnet": "alexnet", "densenet": "densenet161", "googlenet": "googlenet", "mnasnet": "mnasnet1_0",
               "mobilenet_v2": "mobilenet_v2", "resnet18": "resnet18", "resnet50": "resnet50",
               "resnet101": "resnet101", "resnext50_32x4d": "resnext50_32x4d", "shufflenet": "shufflenet_v2_x1_0",
               "squeezenet": "squeezenet1_0", "vgg16": "vgg16", "wide_resnet50_2": "wide_resnet50_2"}

# Names of the zoo → transformers' class, whose configuration's defaults are the base models that the zoo holds.
TRANSFORMERS = {"bert": "BertModel", "distilbert": "DistilBertModel", "roberta": "RobertaModel", "albert": "AlbertModel",
                "squeeze_bert": "SqueezeBertModel"}

# Where transformers' defaults are not the model of the zoo.
TRANSFORMERS_OPTIONS = {"albert": {"hidden_size": 768, "num_attention_heads": 12, "intermediate_size": 3072,
                                   "embedding_size": 128},
                        "roberta": {"vocab_size": 50265, "max_position_embeddings": 514}}

# Names of the zoo → timm's.
TIMM = {"vit32": "vit_base_patch32_224", "gernet": "gernet_m", "efficientnet_lite": "efficientnet_lite1"}

_kept = {}  # the last module: a sweep over batches builds it once


def settle(module, inputs):
    """Gives every batch norm of a module the mean and variance of what it reads; see text_graph.Network.settle."""
    norms = [m for m in module.modules() if isinstance(m, torch.nn.modules.batchnorm._BatchNorm)]
    for norm in norms:
        norm.momentum = None  # cumulative average over passes; there is only one
        norm.reset_running_stats()
        norm.train()
    if norms:
        module(*inputs)
    for norm in norms:
        norm.eval()


def _kept_module(key, make, example, precision, device):
    """Builds a module once, in fp32, and readies it."""
    if key not in _kept:
        _kept.clear()
        with torch.device(device):
            module = make().eval()
        settle(module, example)
        _kept[key] = module.to(float_type(precision))
    return _kept[key]


def _images(batch, precision, device):
    return (torch.randn(batch, 3, 224, 224, device=device).to(float_type(precision)),)


def _from_images(package, make):
    """Builds networks of a package whose inputs are images."""
    def build(name, bindings, precision, device):
        library = importlib.import_module(package)
        module = _kept_module((name, precision, device), lambda: make(library, name), _images(2, "fp32", device), precision, device)
        return module, _images(bindings["batch"], precision, device), f"{package} {library.__version__}"
    return build


def _torchvision_module(torchvision, name):
    options = {"init_weights": False, "aux_logits": False} if name == "googlenet" else {}
    return getattr(torchvision.models, TORCHVISION[name])(weights=None, **options)


def _timm_module(timm, name):
    timm.layers.set_fused_attn(False)  # the zoo's graphs were traced without
    return timm.create_model(TIMM[name], pretrained=False)


def _from_transformers(name, bindings, precision, device):
    import transformers
    model = getattr(transformers, TRANSFORMERS[name])

    def make():
        # Plain attention and tuples, as the zoo's graphs were traced.
        return model(model.config_class(**TRANSFORMERS_OPTIONS.get(name, {}), attn_implementation="eager", return_dict=False,
                                        use_cache=False))
    module = _kept_module((name, precision, device), make, (), precision, device)
    batch, seq = bindings["batch"], bindings["seq"]
    tokens = torch.randint(0, 1000, (batch, seq), device=device)
    # A mask as the layers read it: made of ones it would be left out, after a look that waits for the device.
    mask = torch.zeros(batch, 1, seq, seq, device=device, dtype=float_type(precision))
    return module, (tokens, mask), f"transformers {transformers.__version__}"


LIBRARIES = ((TORCHVISION, _from_images("torchvision", _torchvision_module)), (TRANSFORMERS, _from_transformers),
             (TIMM, _from_images("timm", _timm_module)))


def free(device):
    """The memory of networks measured before: cycles hold them, and the allocator what they had."""
    gc.collect()
    if device != "cpu":
        torch.cuda.empty_cache()


def finite(outputs):
    """Whether every number in what a network returned is one."""
    if isinstance(outputs, torch.Tensor):
        return not outputs.is_floating_point() or bool(torch.isfinite(outputs.float()).all())
    if not hasattr(outputs, "__iter__"):
        return True
    return all(map(finite, outputs.values() if isinstance(outputs, dict) else outputs))


def operators(module, inputs):
    """PyTorch's operators of a forward pass, in order."""
    called = []

    class Recorder(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, arguments=(), options=None):
            called.append(function)
            return function(*arguments, **(options or {}))
    with Recorder():
        module(*inputs)
    return called


def kernels(called):
    """How many of these operators compute something; views and empty tensors do not."""
    return sum(not (function.is_view or "view" in str(function) or "empty" in str(function)) for function in called)


def waits(called):
    """How many of these operators hand numbers to the host, which waits for the device: its time says nothing then."""
    return sum(str(function).split(".")[1] in ("_local_scalar_dense", "nonzero", "masked_select", "_unique2") for function in called)


MOST_UNLIKE = 0.02  # share of the kernels by which a library's network may differ from the zoo's
_unlike = {}  # zoo name → whether the installed library's network is another one


def build(request, arguments):
    """Returns module, inputs and where the module comes from: the library where its network has the kernels of the zoo's."""
    precision, device = arguments["precision"], arguments["device"]
    bindings, model = request["bindings"], request.get("model")
    torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
    # Networks run with PyTorch's defaults (convolutions in TF32), operators in exactly the precision they name.
    torch.backends.cudnn.allow_tf32 = precision == "tf32" or (bool(model) and precision == "fp32")

    def from_graph():
        network = Network(request["graph"], bindings, precision, device, request.get("weight_sets", 1)).eval()
        return network, network.inputs(), GRAPH_SOURCE
    for names, make in LIBRARIES:
        if model in names and not _unlike.get(model):
            try:
                found = make(model, bindings, precision, device)
            except ImportError:
                break
            if model not in _unlike:
                _unlike[model] = abs(kernels(operators(*found[:2])) / kernels(operators(*from_graph()[:2])) - 1) > MOST_UNLIKE
            if not _unlike[model]:
                return found
    network, inputs, source = from_graph()
    if model:
        network.settle(inputs)
    return network, inputs, source
