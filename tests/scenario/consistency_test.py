"""One question, one answer: every verb and binding that can answer a scenario gives the latency, host and device time of `ftax predict`.

    consistency_test.py FTAX [PYTHON_FOLDER]      # PYTHON_FOLDER: with the built package ftax; without, Python is left out

A verb that is in neither `answers` nor `exempt` fails the test.
"""
import csv
import io
import itertools
import json
import re
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

FTAX = sys.argv[1]
FOLDER = Path(tempfile.mkdtemp(prefix="ftax-consistency-"))
RELATIVE = 1e-9
HOST_FILE = FOLDER / "host.json"  # of a crowded machine
HOST_FILE.write_text(json.dumps({"schema_version": 1, "environment": {
    "cpu": "Intel(R) Xeon(R) Processor", "probe_cpu_median_us": "0.6", "probe_wall_median_us": "0.9"}}))
ANCHOR = "gpu,framework,version,precision,model,batch,latency_ms\n"

# model, device, framework, precision, dimensions, batch, other options
NETWORKS = [
    ("resnet50", "t4", "pytorch-eager", "fp16", {}, 1, []),
    ("resnet50", "t4", "pytorch-eager", "fp16", {}, 64, []),
    ("resnet50", "a100", "pytorch-eager@1.12", "fp32", {}, 8, []),
    ("resnet50", "h100-sxm5-80gb", "pytorch-eager@2.5", "bf16", {}, 8, ["--channels-last"]),
    ("resnet50", "h100-sxm5-80gb", "pytorch-eager@2.3", "", {}, 2, []),
    ("resnet50", "rtx-2080-ti", "pytorch-eager", "fp32", {}, 4, ["--host", "help-pytorch-1.8"]),
    ("resnet18", "quadro-rtx-8000", "pytorch-eager", "fp16", {}, 1, ["--host", "framework-tax-quadro-rtx-8000"]),
    ("resnet50", "h100-sxm5-80gb", "pytorch-eager", "fp16", {}, 1, ["--cpu", "Xeon Platinum 8480+", "--host-load", "dedicated"]),
    ("resnet50", "v100-sxm2-16gb", "pytorch-eager@2.5", "fp32", {}, 1, ["--cpu", "Intel(R) Xeon(R) CPU E5-2698 v4 @ 2.20GHz"]),
    ("resnet50", "h100-sxm5-80gb", "pytorch-eager@2.5", "fp16", {}, 1, ["--host-file", str(HOST_FILE)]),
    ("resnet18", "l4", "torchscript", "fp32", {}, 16, []),
    ("resnet18", "l4", "torchscript@1.12", "fp32", {}, 16, []),
    ("resnet18", "l4", "tensorrt", "fp16", {}, 1, []),
    ("resnet18", "v100-sxm2-16gb", "tensorrt@8.0", "fp16", {}, 32, []),
    ("resnet18", "a10g", "torch-tensorrt@1.2", "fp16", {}, 1, []),
    ("resnet18", "a10g", "tensorrt-onnx@8.6", "int8", {}, 8, []),
    ("mobilenet_v2", "t4", "onnxruntime-cuda", "fp32", {}, 1, []),
    ("mobilenet_v2", "t4", "onnxruntime-cuda@1.14", "fp32", {}, 128, []),
    ("mobilenet_v2", "l40s", "torch-compile", "fp16", {}, 1, []),
    ("mobilenet_v2", "l40s", "torch-compile@2.5", "fp16", {}, 1, []),
    ("mobilenet_v2", "l40s", "torch-compile-cuda-graph@2.0", "fp16", {}, 1, []),
    ("densenet", "rtx-4090", "cuda-graph", "tf32", {}, 2, []),
    ("densenet", "rtx-4090", "torch-cuda-graph", "fp16", {}, 2, ["--copies"]),
    ("bert", "a100-sxm4-80gb", "pytorch-eager", "fp16", {"seq": 128}, 1, []),
    ("bert", "a100-sxm4-80gb", "pytorch-eager@2.0", "fp16", {"seq": 384}, 16, ["--synchronized"]),
    ("bert", "a100-sxm4-80gb", "tensorrt@8.6", "int8", {"seq": 128}, 8, []),
    ("bert", "h200-sxm-141gb", "bettertransformer", "fp16", {"seq": 64}, 4, ["--padding", "0.3"]),
    ("bert", "t4", "onnxruntime-cuda-graph", "fp16", {"seq": 32}, 1, []),
    ("bert", "l4", "libtorch", "fp32", {"seq": 16}, 1, []),
    ("gpt2", "t4", "pytorch-eager", "fp32", {"seq": 128}, 2, []),
    ("gpt2", "rtx-3090", "torchscript", "fp16", {"seq": 64}, 1, []),
    ("vit-base-patch16-224", "h100-sxm5-80gb", "pytorch-eager", "bf16", {}, 1, ["--cudnn", "9"]),
    ("vit-base-patch16-224", "rtx-5090", "torch-compile-max-autotune", "bf16", {}, 32, []),
]
ANCHORED = [  # the same with one known row, of the same or of another framework
    ("resnet50", "t4", "pytorch-eager", "fp16", {}, 8, "t4,pytorch-eager,,fp16,resnet18,1,6.1"),
    ("resnet50", "t4", "pytorch-eager@2.5", "fp16", {}, 8, "t4,pytorch-eager,2.5,fp16,resnet18,1,9.1"),
    ("resnet50", "t4", "torchscript", "fp16", {}, 8, "t4,pytorch-eager,,fp16,resnet18,1,6.1"),
    ("bert", "a100-sxm4-80gb", "pytorch-eager@1.12", "fp32", {"seq": 128}, 1, "a100-sxm4-80gb,pytorch-eager,1.12,fp32,resnet18,1,4.2"),
    ("bert", "a100-sxm4-80gb", "torch-compile", "fp16", {"seq": 128}, 1, "a100-sxm4-80gb,pytorch-eager@2.5,,fp32,resnet18,64,20.5"),
]
# model, device, framework, precision, batch, prompt, new tokens
TEXTS = [
    ("llama-3-8b", "h100-sxm5-80gb", "vllm", "bf16", 1, 128, 16),
    ("llama-3-8b", "h100-sxm5-80gb", "vllm", "fp8", 4, 512, 32),
    ("llama-3-8b", "a100-sxm4-80gb", "vllm@0.6", "fp16", 8, 256, 16),
    ("llama-3-8b", "h100-sxm5-80gb", "tensorrt-llm", "fp8", 1, 128, 16),
    ("llama-2-7b", "rtx-4090", "llama.cpp", "w4a16", 1, 64, 16),
    ("llama-2-7b", "l40s", "sglang@0.5", "bf16", 2, 128, 8),
]

answers = {"predict", "crossover", "compare", "explore", "headroom", "inspect", "validate", "nas", "generate", "serve", "mcp"}
exempt = {
    "convert": "writes a model", "models": "lists", "devices": "lists", "frameworks": "lists", "profiles": "lists",
    "doctor": "looks at the machine", "measure": "measures", "calibrate": "its validation is recomputed in calibrate_test.cpp",
    "fit": "fits", "schema": "describes", "completion": "describes", "manual": "describes",
}
failures, checked = [], 0


def run(*words, stdin=None):
    result = subprocess.run([FTAX, *map(str, words)], capture_output=True, text=True, input=stdin)
    if result.returncode != 0:
        raise SystemExit(f"ftax {' '.join(map(str, words))}: {result.stderr}")
    return result.stdout


def report(*words):
    return json.loads(run(*words, "--json", "-q"))


def check(what, wanted, found, within=0.0):
    global checked
    checked += 1
    for key, value in wanted.items():
        if isinstance(value, str) or value is None:
            same = found.get(key) == value
        else:
            same = abs(found[key] - value) <= max(RELATIVE * abs(value), within)
        if not same:
            failures.append(f"{what}: {key} is {found.get(key)}, of predict {value}")


def words_of(model, device, framework, precision, dims, options):
    words = [model, "--device", device, "--framework", framework]
    if precision:
        words += ["--precision", precision]
    return words + [f"--dim={name}={value}" for name, value in dims.items()] + options


def times(row):
    return {name: row[name] for name in ("latency_s", "low_s", "high_s", "host_s", "device_s", "bound") if name in row}


def predicted(words, batch, verb="predict"):
    """The row of a batch, and what the report says of its defaults."""
    whole = report(verb, *words, *([] if verb == "crossover" else ["--batch", batch]))
    row = next(row for row in whole["predictions"] if row["batch"] == batch)
    return row, {"framework_version": whole["framework"]["version"], "host": whole["framework"]["host"],
                 "precision": whole["precision"], "device": whole["device"]["slug"]}


def of_network(model, device, framework, precision, dims, batch, options):
    name = f"{model} on {device}, {framework} {precision} {dims} batch {batch} {options}"
    words = words_of(model, device, framework, precision, dims, options)
    row, defaults = predicted(words, batch)
    wanted = times(row)
    latency = {"latency_s": row["latency_s"]}

    found = report("crossover", *words)["predictions"][0]
    check(f"crossover, {name}", times(predicted(words, found["batch"])[0]), found)

    found = report("compare", *words, "--batch", batch)["rows"][0]
    check(f"compare, {name}", wanted, found)
    check(f"compare, {name}", {k: defaults[k] for k in ("framework_version", "precision", "device")}, found)

    page = FOLDER / "page.html"
    run("explore", *words, "--batch", batch, "--html", page, "-q")
    curve = json.loads(re.search(r"const data = (.*?);\n", page.read_text())[1])["cards"][0]["curves"][0]
    check(f"explore, {name}", {f"{key}_s": row[f"{key}_s"] for key in ("latency", "host", "device")},
          {f"{key}_s": curve[key][0] * 1e-6 for key in ("latency", "host", "device")}, within=0.51e-6)

    head = report("headroom", *words, "--batch", batch)
    check(f"headroom, {name}", {**latency, "framework_version": defaults["framework_version"], "host": defaults["host"],
                                "precision": defaults["precision"]}, head)
    other = head["frameworks"][len(name) % len(head["frameworks"])]  # any of them
    kept = [word for pair in zip(options, options[1:] + [""]) for word in pair if pair[0].startswith("--") and pair[0] != "--host"]
    kept = [word for word in kept if word and (word.startswith("--") or word in options)]
    kept = list(dict.fromkeys(kept))
    alone, of_other = predicted(words_of(model, device, other["framework"], defaults["precision"], dims, kept), batch)
    check(f"headroom's {other['framework']}, {name}", {"latency_s": alone["latency_s"], "framework_version": of_other["framework_version"]},
          other)

    launches = report("inspect", *words, "--kernels", "--batch", batch)["launches"]
    check(f"inspect --kernels, {name}", {"host_s": row["host_s"], "device_s": row["device_s"]},
          {side: sum(launch[side] for launch in launches) for side in ("host_s", "device_s")})

    answer = mcp("predict", {"model": model, "device": device, "framework": framework, "batch": batch,
                             **({"precision": precision} if precision else {}), "dim": [f"{k}={v}" for k, v in dims.items()],
                             **{option[2:]: True if value.startswith("--") or not value else value
                                for option, value in zip(options, options[1:] + [""]) if option.startswith("--")}})
    check(f"mcp, {name}", wanted, answer["predictions"][0])

    if not set(options) & {"--cudnn", "--padding"}:  # which rows have no column for
        by_rows(name, model, device, framework, defaults["precision"], dims, batch, options, wanted)
    if python:
        by_python(name, model, device, framework, precision, dims, batch, options, wanted)


def by_rows(name, model, device, framework, precision, dims, batch, options, wanted):
    """validate: the version in the cell, in each of its columns, with a model's file, host and copies."""
    host = options[options.index("--host") + 1] if "--host" in options else ""
    if host or {"--synchronized", "--host-load"} & set(options):
        return  # rows have no columns for these
    spelled, _, version = framework.partition("@")
    layouts = [{"framework": framework}]
    if version:
        layouts += [{"framework": spelled, "version": version}, {"framework": spelled, "framework_version": version}]
    rows, out = FOLDER / "rows.csv", FOLDER / "out.csv"
    for layout in layouts:
        row = {"gpu": device, **layout, "precision": precision, "model": model, "batch": batch, "latency_ms": 10,
               **({"seq": dims["seq"]} if "seq" in dims else {}), **({"kind": "with_copies"} if "--copies" in options else {}),
               **({"layout": "nhwc"} if "--channels-last" in options else {}),
               **({"cpu": options[options.index("--cpu") + 1]} if "--cpu" in options else {})}
        rows.write_text(",".join(row) + "\n" + ",".join(map(str, row.values())) + "\n")
        run("validate", rows, "--predictions", out, "-q", *(options if "--host-file" in options else []))
        found = next(csv.DictReader(out.open()))
        check(f"validate {list(layout)}, {name}", {key: wanted[key] for key in ("latency_s", "low_s", "high_s")},
              {f"{key}_s": float(found[f"{column}_ms"] or "nan") * 1e-3
               for key, column in (("latency", "predicted"), ("low", "low"), ("high", "high"))})


def by_python(name, model, device, framework, precision, dims, batch, options, wanted):
    arguments = {option[2:].replace("-", "_"): (int(value) if option == "--cudnn" else float(value) if option == "--padding" else value)
                 if not value.startswith("--") and value else True
                 for option, value in zip(options, options[1:] + [""]) if option.startswith("--")}
    found = ftax.predict(model, device, framework, precision or None, batch=batch, **dims, **arguments)
    check(f"Python's predict, {name}", wanted, found[0].to_dict())
    check(f"Python's compare, {name}", {"latency_s": wanted["latency_s"]},
          ftax.compare(model, device, framework, precision or None, batch=batch, **dims, **arguments)[0])
    predictor = ftax.Predictor(model, device, framework, precision or None, **arguments)
    operators = predictor.operators(batch=batch, **dims)
    check(f"Python's operators, {name}", {side: wanted[side] for side in ("host_s", "device_s")},
          {side: sum(operator[side] for operator in operators) for side in ("host_s", "device_s")})


def of_anchored(model, device, framework, precision, dims, batch, row):
    path = FOLDER / "anchor.csv"
    path.write_text(ANCHOR + row + "\n")
    words = words_of(model, device, framework, precision, dims, ["--anchor", str(path)])
    name = f"{model} on {device}, {framework} {precision}, anchored by {row}"
    found, defaults = predicted(words, batch)
    wanted = times(found)
    check(f"compare, {name}", wanted, report("compare", *words, "--batch", batch)["rows"][0])
    check(f"headroom, {name}", {"latency_s": wanted["latency_s"]}, report("headroom", *words, "--batch", batch))
    crossing = report("crossover", *words)["predictions"][0]
    check(f"crossover, {name}", times(predicted(words, crossing["batch"])[0]), crossing)
    rows, out = FOLDER / "rows.csv", FOLDER / "out.csv"
    rows.write_text(ANCHOR.replace("batch", "batch,seq") +
                    f"{device},{framework},,{precision},{model},{batch},{dims.get('seq', '')},10\n")
    run("validate", rows, "--anchor", path, "--predictions", out, "-q")
    row = next(csv.DictReader(out.open()))
    check(f"validate, {name}", {"latency_s": wanted["latency_s"]}, {"latency_s": float(row["predicted_ms"]) * 1e-3})
    if python:
        check(f"Python's predict, {name}", wanted,
              ftax.predict(model, device, framework, precision, anchor=str(path), batch=batch, **dims)[0].to_dict())


def of_text(model, device, framework, precision, batch, prompt, new_tokens):
    name = f"{model} on {device}, {framework} {precision}, batch {batch}, {prompt} + {new_tokens} tokens"
    words = words_of(model, device, framework, precision, {}, [])
    generated = report("generate", *words, "--batch", batch, "--prompt", prompt, "--new-tokens", new_tokens)
    row = generated["predictions"][0]
    version = generated["framework"]["version"]
    cache = ["--kv-precision", "fp8"] if row["precision"] == "fp8" else []
    decode, defaults = predicted([*words, *cache, "--dim", "seq=1", "--dim", f"past={prompt + (new_tokens - 2) // 2}"], batch)
    check(f"predict, a decoding step of {name}", times(row["decode"]), decode)
    check(f"predict, {name}", {"framework_version": version}, defaults)
    if batch == 1 and prompt <= 2048:
        check(f"predict, the prompt of {name}", times(row["prefill"]),
              predicted([*words, *cache, "--dim", f"seq={prompt}", "--dim", "past=0"], batch)[0])
    rows, out = FOLDER / "rows.csv", FOLDER / "out.csv"
    spelled, _, named = framework.partition("@")
    for column in ("version", "framework_version"):
        rows.write_text(f"gpu,framework,{column},precision,model,isl,osl,batch,latency_s\n"
                        f"{device},{spelled},{named},{precision},{model},{prompt},{new_tokens},{batch},1\n")
        run("validate", rows, "--predictions", out, "-q")
        found = next(csv.DictReader(out.open()))
        check(f"validate, {name}", {"total_s": row["total_s"], "low_s": row["low_s"]},
              {"total_s": float(found["predicted_ms"]) * 1e-3, "low_s": float(found["low_ms"]) * 1e-3})
    served = report("serve", *words, "--concurrency", 1, "--count", 20, "--prompt", prompt, "--new-tokens", new_tokens,
                    "--spread", 0)["rows"][0]
    check(f"serve, {name}", {"framework_version": version, "precision": row["precision"]}, served)
    if batch == 1:
        check(f"serve's time per token, {name}", {"tpot_s": row["tpot_s"]}, {"tpot_s": served["tpot_mean_s"]}, within=0.05 * row["tpot_s"])
    if python:
        check(f"Python's generate, {name}", {key: row[key] for key in ("ttft_s", "tpot_s", "total_s")},
              ftax.generate(model, device, framework, precision, batch=batch, prompt=prompt, new_tokens=new_tokens)[0])


def of_architectures():
    """nas against predict of the network that it builds, by default and under a named version."""
    arch = "|nor_conv_3x3~0|+|nor_conv_1x1~0|skip_connect~1|+|none~0|nor_conv_3x3~1|avg_pool_3x3~2|"
    archs = FOLDER / "archs.csv"
    archs.write_text(f"arch\n{arch}\n")
    for framework, precision, batch in itertools.product(("pytorch-eager", "pytorch-eager@1.12", "torchscript"), ("fp32", "fp16"), (1, 64)):
        name = f"nasbench201 on rtx-2080-ti, {framework} {precision}, batch {batch}"
        words = ["--space", "nasbench201", "--device", "rtx-2080-ti", "--framework", framework, "--precision", precision, "--batch", batch,
                 "--no-waits", "-q"]
        cost = float(next(csv.DictReader(io.StringIO(run("nas", archs, *words))))["predicted_ms"]) * 1e-3
        if not python:
            continue
        function = ftax.nas.CostFunction("nasbench201", "rtx-2080-ti", framework, precision, batches=[batch],
                                         campaign=ftax.nas.Campaign(waits_after_blocks=False))
        check(f"Python's nas, {name}", {"latency_s": cost}, {"latency_s": float(function([arch])[0, 0])})
        whole = ftax.predict(function.build_graph(arch), "rtx-2080-ti", framework, precision, batch=batch)[0]
        check(f"predict, {name}", {"latency_s": cost}, {"latency_s": whole.latency_s}, within=0.01 * cost)
    if python:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            assumed = ftax.nas.CostFunction("nasbench201", "rtx-2080-ti").warnings
        check("Python's nas says what it assumes", {"said": True, "warned": True},
              {"said": any("newest measured" in text for text in assumed), "warned": len(caught) > 0})


server = subprocess.Popen([FTAX, "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def mcp(tool, arguments):
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
    server.stdin.write(json.dumps(request) + "\n")
    server.stdin.flush()
    result = json.loads(server.stdout.readline())["result"]
    if result["isError"]:
        raise SystemExit(f"mcp {tool} {arguments}: {result['content'][0]['text']}")
    return result["structuredContent"]


python = len(sys.argv) > 2
if python:
    sys.path.insert(0, sys.argv[2])
    import ftax

    warnings.simplefilter("ignore")

verbs = {line.split("\t")[0] for line in run("completion", "words", "--", "").splitlines()} - {"help"}
verbs = {verb for verb in verbs if not verb.startswith("-")}
for verb in sorted(verbs - answers - set(exempt)):
    failures.append(f"ftax {verb} is in no scenario: add it to `answers` with a check, or to `exempt`")
for scenario in NETWORKS:
    of_network(*scenario)
for scenario in ANCHORED:
    of_anchored(*scenario)
for scenario in TEXTS:
    of_text(*scenario)
of_architectures()
server.stdin.close()
server.wait()
print(f"{checked} answers compared, {len(failures)} differ")
sys.exit("\n".join(failures[:40]) if failures else 0)
