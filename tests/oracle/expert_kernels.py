"""Times the kernels of vLLM's expert layers one by one on a GPU: expert_kernels.py FOLDER OUT [MODEL...]. FOLDER is made where vLLM's
source distribution and nvcc are: expert_kernels.py --extract VLLM_SOURCE FOLDER takes fused_moe.py's Triton kernel and the tuned tiles out
of it; libvl.so beside them, with its CUDA kernels (moe_align_block_size, silu_and_mul, moe_sum, per-token-group quantisation), is optional.
Each case is a CUDA graph of layers with weights and routes of their own, so that no weight is in the L2; a profiler times its kernels."""
import ast, csv, json, os, shutil, sys, time

COLUMNS = ["model", "experts", "local_experts", "top_k", "hidden", "intermediate", "dtype", "block_shape", "tokens", "touched", "tiles",
           "config", "kernel", "grid", "registers", "us", "us_low", "us_high"]
# name: experts, experts of this card, chosen a token, hidden, intermediate of this card, dtype, block of a scale
MODELS = {
    "qwen3-235b-fp8-ep8": (128, 16, 8, 4096, 1536, "fp8", [128, 128]),
    "qwen3-235b-fp8-ep4": (128, 32, 8, 4096, 1536, "fp8", [128, 128]),
    "qwen3-30b": (128, 128, 8, 2048, 768, "bf16", None),
    "deepseek-v3-ep8": (256, 32, 8, 7168, 2048, "fp8", [128, 128]),
    "qwen3-30b-fp8": (128, 128, 8, 2048, 768, "fp8", [128, 128]),
    "qwen3-235b-tp8": (128, 128, 8, 4096, 192, "bf16", None),
    "mixtral-tp2": (8, 8, 2, 4096, 7168, "bf16", None),
    "qwen3-30b-ep2": (128, 64, 8, 2048, 768, "bf16", None),
    "llama4-scout-tp8": (16, 16, 1, 5120, 1024, "bf16", None),
}
TOKENS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096]
CARD = "NVIDIA_H100_80GB_HBM3"

def extract(source, folder):
    os.makedirs(folder, exist_ok=True)
    layers = os.path.join(source, "vllm", "model_executor", "layers", "fused_moe")
    text = open(os.path.join(layers, "fused_moe.py")).read()
    wanted = {"write_zeros_to_output", "fused_moe_kernel", "get_default_config"}
    parts = ["import triton\nimport triton.language as tl\n\n\ndef vllm_is_batch_invariant():\n    return False\n\n\n"
             "class current_platform:\n    is_rocm = staticmethod(lambda: False)\n    is_cuda = staticmethod(lambda: True)\n"]
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef) and node.name in wanted:
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            parts.append("\n\n" + "\n".join(text.split("\n")[first - 1:node.end_lineno]) + "\n")
    with open(os.path.join(folder, "vllm_kernels.py"), "w") as file:
        file.write("".join(parts))
    for name in os.listdir(os.path.join(layers, "configs")):
        if CARD in name:
            shutil.copy(os.path.join(layers, "configs", name), folder)

if sys.argv[1] == "--extract":
    sys.exit(extract(*sys.argv[2:4]))

import torch
folder, out, chosen = sys.argv[1], sys.argv[2], sys.argv[3:] or list(MODELS)
sys.path.insert(0, folder)
import tracing
import triton
import triton.language as tl
import vllm_kernels
torch.set_grad_enabled(False)
LIMIT = time.monotonic() + float(os.environ.get("SECONDS_LEFT", "1e9"))
try:
    torch.ops.load_library(os.path.join(folder, "libvl.so"))
    own = torch.ops.vl
except Exception as error:
    print(f"expert_kernels: without libvl.so: {error}", file=sys.stderr)
    own = None
dev = "cuda"

def config_of(tokens, experts, n, k, top_k, dtype, block):
    what = ("" if dtype == "bf16" else ",dtype=fp8_w8a8") + ("" if not block else f",block_shape=[{block[0]},{block[1]}]")
    path = os.path.join(folder, f"E={experts},N={n},device_name={CARD}{what}.json")
    if os.path.exists(path):
        tuned = {int(key): value for key, value in json.load(open(path)).items() if key.isdigit()}
        return "tuned", dict(tuned[min(tuned, key=lambda x: abs(x - tokens))])
    return "default", vllm_kernels.get_default_config(tokens, experts, n, k, top_k, None if dtype == "bf16" else "fp8_w8a8", block)

def product(a, b, c, a_scale, b_scale, weights, ids, expert_ids, padded, mul, top_k, config, dtype, block):
    em = ids.size(0)
    if a.size(0) < config["BLOCK_SIZE_M"]: em = min(em, a.size(0) * top_k * config["BLOCK_SIZE_M"])
    config = {**config, "SPLIT_K": 1}
    block_k = config.pop("BLOCK_SIZE_K")
    if block: block_k = min(block_k, *block)
    grid = (triton.cdiv(em, config["BLOCK_SIZE_M"]) * triton.cdiv(b.size(1), config["BLOCK_SIZE_N"]),)
    stride = lambda t, dim, least: t.stride(dim) if t is not None and t.ndim >= least else 0
    vllm_kernels.fused_moe_kernel[grid](
        a, b, c, None, a_scale, b_scale, weights, ids, expert_ids, padded, b.size(1), b.size(2), em, a.size(0) * top_k,
        a.stride(0), a.stride(1), b.stride(0), b.stride(2), b.stride(1), c.stride(-2), c.stride(-1),
        stride(a_scale, 0, 2), stride(a_scale, 1, 2), stride(b_scale, 0, 2), stride(b_scale, 2, 3), stride(b_scale, 1, 2), 0, 0,
        block[0] if block else 0, block[1] if block else 0, MUL_ROUTED_WEIGHT=mul, top_k=top_k, compute_type=tl.bfloat16,
        use_fp8_w8a8=dtype == "fp8", use_int8_w8a8=False, use_int8_w8a16=False, per_channel_quant=False, HAS_BIAS=False,
        BLOCK_SIZE_K=block_k, **config)

def align(top_ids, size, experts, local):
    """What moe_align_block_size gives, sorted by PyTorch where its kernel is missing."""
    count = top_ids.numel() + experts * (size - 1)
    ids = torch.empty(count, dtype=torch.int32, device=dev)
    expert_ids = torch.empty(triton.cdiv(count, size), dtype=torch.int32, device=dev)
    padded = torch.empty(1, dtype=torch.int32, device=dev)
    if own: own.moe_align_block_size(top_ids, experts, size, ids, expert_ids, padded)
    else:
        per = torch.bincount(top_ids.flatten(), minlength=experts).tolist()
        order = torch.argsort(top_ids.flatten(), stable=True).tolist()
        flat, whose, at = [], [], 0
        for expert, rows in enumerate(per):
            blocks = -(-rows // size)
            flat += order[at:at + rows] + [top_ids.numel()] * (blocks * size - rows)
            whose += [expert] * blocks
            at += rows
        ids.fill_(top_ids.numel()); ids[:len(flat)] = torch.tensor(flat, dtype=torch.int32)
        expert_ids.fill_(0); expert_ids[:len(whose)] = torch.tensor(whose, dtype=torch.int32)
        padded.fill_(len(flat))
    if local < experts:  # the map of experts that this card holds
        expert_ids = MAP[expert_ids.clamp(max=experts - 1)]
    return ids, expert_ids, padded

def quantised(x):
    q = torch.empty_like(x, dtype=torch.float8_e4m3fn)
    scale = torch.empty(*x.shape[:-1], x.shape[-1] // 128, device=dev)
    if own: own.quant(x, q, scale, 128, 1e-10, -448.0, 448.0, False)
    else: scale.fill_(1.0)
    return q, scale

def weights_of(local, rows, columns, dtype, block):
    w = torch.empty(local, rows, columns, dtype=torch.bfloat16 if dtype == "bf16" else torch.float8_e4m3fn, device=dev)
    for expert in range(local): w[expert] = (torch.randn(rows, columns, device=dev) * 0.05).to(w.dtype)
    return w, torch.full((local, rows // block[0], columns // block[1]), 0.02, device=dev) if block else None

def measure(name, write):
    global MAP
    experts, local, top_k, hidden, inter, dtype, block = MODELS[name]
    MAP = torch.full((experts,), -1, dtype=torch.int32, device=dev)
    MAP[:local] = torch.arange(local, dtype=torch.int32, device=dev)
    size = 3 * local * hidden * inter * (2 if dtype == "bf16" else 1)
    layers = max(2, min(6, int(24e9 / size)))
    sets = [(*weights_of(local, 2 * inter, hidden, dtype, block), *weights_of(local, hidden, inter, dtype, block)) for _ in range(layers)]
    for tokens in TOKENS:
        if time.monotonic() > LIMIT: return
        kind, config = config_of(tokens, local, inter, hidden, top_k, dtype, block)
        routes = []
        for _ in range(layers):
            top_ids = torch.rand(tokens, experts, device=dev).topk(top_k, dim=1).indices.to(torch.int32)
            routes.append((top_ids, torch.full((tokens, top_k), 1 / top_k, device=dev)))
        x = torch.randn(tokens, hidden, device=dev, dtype=torch.bfloat16)
        aligned = [align(ids, config["BLOCK_SIZE_M"], experts, local) for ids, _ in routes]
        def layer(w1, s1, w2, s2, route, ready):
            top_ids, weight = route
            a, a_scale = quantised(x) if dtype == "fp8" else (x, None)
            ids, expert_ids, padded = align(top_ids, config["BLOCK_SIZE_M"], experts, local) if own else ready
            c1 = torch.empty(tokens * top_k, 2 * inter, device=dev, dtype=torch.bfloat16)
            product(a, w1, c1, a_scale, s1, weight, ids, expert_ids, padded, False, top_k, config, dtype, block)
            c2 = torch.empty(tokens * top_k, inter, device=dev, dtype=torch.bfloat16)
            if own: own.silu_and_mul(c2, c1)
            else: c2.copy_(c1[:, :inter])
            b, b_scale = quantised(c2) if dtype == "fp8" else (c2, None)
            c3 = torch.empty(tokens, top_k, hidden, device=dev, dtype=torch.bfloat16)
            product(b, w2, c3.view(-1, hidden), b_scale, s2, weight, ids, expert_ids, padded, True, 1, config, dtype, block)
            y = torch.empty(tokens, hidden, device=dev, dtype=torch.bfloat16)
            if own: own.moe_sum(c3, y)
            else: torch.sum(c3, 1, out=y)
        def run():
            for s, route, ready in zip(sets, routes, aligned): layer(*s, route, ready)
        run(); torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph): run()
        for _ in range(3): graph.replay()
        torch.cuda.synchronize()
        a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        a.record()
        for _ in range(5): graph.replay()
        b.record(); torch.cuda.synchronize()
        whole = a.elapsed_time(b) * 1e3 / 5 / layers
        kernels = tracing.trace(lambda: [graph.replay() for _ in range(3)], torch.cuda.synchronize)["kernels"]
        per = len(kernels) // (3 * layers)
        touched = sum(len({i for i in ids.flatten().tolist() if i < local}) for ids, _ in routes) / layers
        size_m = config["BLOCK_SIZE_M"]
        tiles = sum(sum(-(-n // size_m) for n in torch.bincount(ids.flatten(), minlength=experts)[:local].tolist()) for ids, _ in routes) / layers
        common = dict(model=name, experts=experts, local_experts=local, top_k=top_k, hidden=hidden, intermediate=inter, dtype=dtype,
                      block_shape="x".join(map(str, block or [])), tokens=tokens, touched=f"{touched:.1f}", tiles=f"{tiles:.1f}",
                      config=kind + " " + " ".join(f"{k}={v}" for k, v in config.items()))
        write({**common, "kernel": "layer", "us": f"{whole:.2f}"})
        for at in range(per):
            same = [kernels[i] for i in range(at, per * 3 * layers, per)]
            times = sorted(k["duration_us"] for k in same)
            write({**common, "kernel": f"{at}:{same[0]['name'][:100]}", "grid": "x".join(map(str, same[0]["grid"])),
                   "registers": same[0]["registers"], "us": f"{sum(times) / len(times):.2f}", "us_low": f"{times[0]:.2f}", "us_high": f"{times[-1]:.2f}"})

with open(out, "a", newline="") as f:
    w = csv.DictWriter(f, COLUMNS, lineterminator="\n", restval="")
    if f.tell() == 0: w.writeheader()
    for name in chosen:
        if time.monotonic() > LIMIT: break
        begin = time.monotonic()
        try: measure(name, w.writerow)
        except Exception as error: print(f"expert_kernels: {name}: {type(error).__name__}: {error}"[:1500], file=sys.stderr)
        f.flush(); torch.cuda.empty_cache()
        print(f"expert_kernels: {name}: {time.monotonic() - begin:.0f} s", file=sys.stderr, flush=True)
