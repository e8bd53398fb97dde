#!/usr/bin/env python3
"""Measures a machine with an NVIDIA GPU by `ftax measure` and says how well ftax predicts it, in an order that can be proved:

  campaign.py predict -o FOLDER --device SLUG    before measuring: FOLDER/predictions.csv, from the datasheet
  campaign.py carry BUILD                        the program of a build folder and its libraries, into build/campaign
  campaign.py measure -o FOLDER                  on the machine, in a Python with torch; continues the rows of earlier calls
  campaign.py tables FOLDER                      FOLDER/tables.md: error before calibration, after calibration with the
                                                 model itself left out, and of the crossover

docs/calibrating-a-gpu.md has the steps. Needs the program ftax (--ftax, or on the PATH) and Python's own library."""

import argparse
import concurrent.futures
import csv
import io
import itertools
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "crossvalidation"))
import ledger  # noqa: E402

PRECISIONS = ("fp16", "bf16", "fp32", "tf32")
BATCHES = (1, 2, 4, 8, 16, 32, 64, 128)
LARGEST_HOST_BATCH = 8  # beyond it the launch queue may be full (src/scenario/machine_rows.hpp)
# Networks whose text graph can be run, most informative first.
MODELS = ("resnet50", "bert", "mobilenet_v2", "resnet18", "vit32", "distilbert", "densenet", "gpt2_forward", "vgg16",
          "efficientnet", "squeezenet", "alexnet", "googlenet", "resnext50_32x4d", "albert", "mnasnet", "shufflenet",
          "wide_resnet50_2", "resnet101", "squeeze_bert", "gernet", "inception", "efficientnet_lite", "resnet152",
          "roberta")
EAGER = "pytorch-eager"
FRAMEWORKS = (EAGER, "torch-cuda-graph", "torch-compile")
# The host costs of a framework are fitted to eight rows or more (calibration/fit/machine_fit.cpp): two batches of these leave
# enough with a network left out and another that did not compile.
FRAMEWORK_MODELS = ("resnet50", "bert", "mobilenet_v2", "resnet18", "distilbert", "vit32", "densenet", "squeezenet")
CONVOLUTIONAL = [model for model in FRAMEWORK_MODELS if "bert" not in model and model != "vit32"]
FOLDS = 5  # networks left out together: a fit without each of 25 would take an hour
KEY = ("framework", "precision", "model", "batch")


def networks(framework, precision, models, batches, *options):
    return ("model", framework, precision, *models, "--batch", ",".join(map(str, batches)), "--dim", "seq=128", *options)


# Calls of `ftax measure`, those first that public tables lack: a budget that ends early leaves useful rows.
CALLS = [*(networks(framework, precision, FRAMEWORK_MODELS, (1, 8)) for framework in FRAMEWORKS
           for precision in (("fp16",) if framework == "torch-compile" else ("fp16", "fp32"))),
         *(("dispatch", framework, precision) for framework in (EAGER, "torchscript", "libtorch", "torch-cuda-graph")
           for precision in ("fp32", "fp16", "bf16")),
         *(networks(EAGER, precision, MODELS, (1, 8, 64)) for precision in ("fp16", "fp32")),
         networks(EAGER, "amp", FRAMEWORK_MODELS, (1, 8)),
         networks(EAGER, "fp16", CONVOLUTIONAL, (1, 8), "--channels-last"),
         *(("kernels", EAGER, precision) for precision in ("fp16", "fp32")),
         *(networks(EAGER, precision, MODELS, (1, 8, 64)) for precision in ("bf16", "tf32")),
         *(("kernels", EAGER, precision) for precision in ("bf16", "tf32")),
         networks("torch-compile", "fp32", FRAMEWORK_MODELS, (1, 8)),
         *(networks(EAGER, precision, MODELS, (2, 4, 16, 32, 128)) for precision in ("fp16", "fp32"))]
DRY_CALLS = [networks(EAGER, "fp32", ("squeezenet", "distilbert"), (1, 2)), networks("torchscript", "fp32", ("squeezenet",), (1, 2)),
             networks(EAGER, "amp", ("squeezenet",), (1,)), networks(EAGER, "fp32", ("squeezenet",), (1,), "--channels-last"),
             *(("dispatch", framework, "fp32") for framework in (EAGER, "torchscript", "libtorch")), ("kernels", EAGER, "fp32")]


def carry(arguments):
    """Copies the program with all that it loads but the C library, LibTorch and the driver."""
    os.makedirs(arguments.output, exist_ok=True)
    for name in ("ftax", "ftax-fit", "ftax_cuda_probe", "ftax_libtorch.so"):
        path = os.path.join(arguments.build, name)
        if not os.path.exists(path):
            print(f"warning: {path} was not built", file=sys.stderr)
            continue
        listed = subprocess.run(["ldd", path], capture_output=True, text=True, check=True).stdout
        for library in (line.split()[2] for line in listed.splitlines() if " => /" in line):
            if not os.path.basename(library).startswith(("libc.", "libm.", "libtorch", "libc10", "libcuda")):
                shutil.copy(library, arguments.output)
        shutil.copy(path, arguments.output)


def measure(arguments):
    """Calls `ftax measure` until the budget is spent. Exit code 1 where a call failed."""
    end, failed = time.monotonic() + arguments.budget, False
    libraries = os.path.dirname(os.path.realpath(shutil.which(arguments.ftax) or arguments.ftax))
    environment = {**os.environ, "LD_LIBRARY_PATH": os.pathsep.join(filter(None, (libraries, os.environ.get("LD_LIBRARY_PATH"))))}
    for kind, framework, precision, *options in DRY_CALLS if arguments.device == "cpu" else CALLS:
        if (left := end - time.monotonic()) < 15:
            print("campaign: the budget is spent; another call continues", file=sys.stderr)
            break
        done = subprocess.run([arguments.ftax, "measure", kind, *options, "--framework", framework, "--precision", precision, "--device",
                               arguments.device, "--python", sys.executable, "--quick", "--resume", "--budget", f"{left:.0f}",
                               "-o", arguments.output], env=environment)
        if done.returncode > 1:  # 1: the budget ended it
            print(f"campaign: {kind} under {framework} in {precision}: exit code {done.returncode}", file=sys.stderr)
            failed = True
    return 1 if failed else 0


def predict(ftax, device, framework, precision, model, batches, options=()):
    """Rows of `ftax predict`, or none where it refuses (a precision that the device lacks). The campaign waits for the
    device after each run."""
    command = [ftax, "predict", model, "--device", device, "--framework", framework, "--precision", precision,
               "--synchronized", "--batch", ",".join(map(str, batches)), "--csv", "-", *options]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode and "seq" in done.stderr:
        done = subprocess.run([*command, "--dim", "seq=128"], capture_output=True, text=True)
    if done.returncode:
        print(f"warning: {model} {framework} {precision}: {done.stderr.strip()}", file=sys.stderr)
        return []
    return [{"framework": framework, "precision": precision, "model": model, "batch": row["batch"],
             **{name: float(row[name]) for name in ("latency_s", "host_s", "device_s", "kernels")}}
            for row in csv.DictReader(io.StringIO(done.stdout))]


def write_predictions(arguments):
    models = arguments.models or MODELS
    plan = [(EAGER, precision, model) for precision in PRECISIONS for model in models]
    plan += [(framework, precision, model) for framework in FRAMEWORKS[1:] for precision in ("fp32", "fp16")
             for model in models if model in FRAMEWORK_MODELS]
    os.makedirs(arguments.output, exist_ok=True)
    with open(os.path.join(arguments.output, "predictions.csv"), "w", newline="") as file:
        writer = csv.DictWriter(file, [*KEY, "latency_s", "host_s", "device_s", "kernels"], lineterminator="\n")
        writer.writeheader()
        for framework, precision, model in plan:
            writer.writerows(predict(arguments.ftax, arguments.device, framework, precision, model, BATCHES))


def read(path):
    return ledger.read(path) if os.path.exists(path) else []


def key_of(row):
    return tuple(str(row[name]) for name in KEY)


def measured_times(folder):
    """Median seconds by mode, then by framework, precision, model and batch."""
    times = {"end_to_end": {}, "device_hot": {}, "host_dispatch": {}}
    for row in read(os.path.join(folder, "models.csv")):
        if not row["problem"] and not row.get("layout"):
            times[row["mode"]].setdefault(key_of(row), []).append(float(row["latency_ms"]) / 1e3)
    return {mode: {key: statistics.median(seconds) for key, seconds in rows.items()} for mode, rows in times.items()}


def host_time(times, key):
    """Host time of one pass, independent of the batch: beyond the largest batch at which it can be separated from the device's
    time, that of the largest where it was."""
    batches = [int(other[3]) for other in times if other[:3] == key[:3] and int(other[3]) <= LARGEST_HOST_BATCH]
    return times.get((*key[:3], str(min(int(key[3]), max(batches, default=0)))))


def crossover(points):
    """Batch where host and device time meet, interpolated in logarithms; None where they do not. Points: batch, host,
    device."""
    points = sorted(points)
    for (b0, h0, d0), (b1, h1, d1) in zip(points, points[1:]):
        low, high = math.log(d0 / h0), math.log(d1 / h1)
        if low < 0 <= high:
            return math.exp(math.log(b0) + (math.log(b1) - math.log(b0)) * -low / (high - low))
    return None


def crossovers(rows):
    """By framework, precision and model; rows: (key, host, device)."""
    curves = {}
    for key, host, device in rows:
        curves.setdefault(key[:3], []).append((int(key[3]), host, device))
    return {curve: batch for curve, points in curves.items() if (batch := crossover(points))}


def table(title, errors, unit="rows"):
    """Markdown; errors by group, each |predicted - measured| / measured."""
    groups = sorted(errors.items()) + [("all", list(itertools.chain(*errors.values())))] * bool(errors)
    return f"## {title}\n\n" + ledger.table(["framework, precision", unit, "MAPE", "median", "P90"], [
        [name, len(group), *(f"{100 * e:.1f} %" for e in (statistics.mean(group), statistics.median(group), ledger.quantile(group, 0.9)))]
        for name, group in groups])


def errors_of(predicted, measured):
    groups = {}
    for key, seconds in measured.items():
        if key in predicted:
            groups.setdefault(f"{key[0]}, {key[1]}", []).append(abs(predicted[key] / seconds - 1))
    return groups


def fit(ftax, *options):
    done = subprocess.run([ftax, "fit", *options], capture_output=True, text=True)
    if done.returncode:
        print(f"warning: {options[-1]}: {done.stderr.strip()}", file=sys.stderr)
    return done.returncode == 0


def fitted_predictions(arguments, device, measured):
    """Every measured network predicted by profiles that were fitted without its rows: one fit of the device for each fold of
    networks, one of the host for each of its frameworks."""
    files = [path for name in ("operators.csv", "dispatch.csv", "models.csv", "runtime.csv", "probe.csv")
             if os.path.exists(path := os.path.join(arguments.folder, name))]
    models = sorted({key[2] for key in measured})
    graphs = {row["model"] for row in read(os.path.join(arguments.folder, "models.csv")) if row.get("source") == "ftax graph"}

    def predictions(fold):
        left_out, rows = models[fold::FOLDS], []
        with tempfile.TemporaryDirectory() as folder:
            profile, host = os.path.join(folder, "profile.json"), os.path.join(folder, "host.json")
            if not left_out or not fit(arguments.ftax, *files, "-o", profile, "--leave-out-model", *left_out):
                return rows
            curves = sorted({key[:3] for key in measured if key[2] in left_out})
            for framework in sorted({curve[0] for curve in curves}):
                if not fit(arguments.ftax, *files, "--host-output", host, "--leave-out-model", *left_out, "--framework", framework):
                    continue
                hosts = {False: host, True: host + ".graph"}  # networks run from ftax's own graphs call no modules
                with open(host) as file, open(hosts[True], "w") as graph:
                    found = json.load(file)
                    for parameter in found["parameters"]:
                        parameter["value"] = 1e-12 if parameter["name"] == "host.module_call" else parameter["value"]
                    json.dump(found, graph)
                for curve in curves:
                    if curve[0] == framework:
                        rows += predict(arguments.ftax, device, *curve, sorted(int(k[3]) for k in measured if k[:3] == curve),
                                        ("--profile", profile, "--framework-profile", hosts[curve[2] in graphs]))
        return rows
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return [row for rows in pool.map(predictions, range(FOLDS)) for row in rows]


def write_tables(arguments):
    before = read(os.path.join(arguments.folder, "predictions.csv"))
    times = measured_times(arguments.folder)
    measured = times["end_to_end"]
    if not measured:
        sys.exit(f"{arguments.folder}: no network was measured end to end")
    device = next(row["gpu"] for row in read(os.path.join(arguments.folder, "models.csv")) if row["gpu"])
    after = fitted_predictions(arguments, device, measured)

    def latencies(rows):
        return {key_of(row): float(row["latency_s"]) for row in rows}

    probed = {row["quantity"]: float(row["value"]) for name in ("runtime.csv", "probe.csv")
              for row in read(os.path.join(arguments.folder, name))}

    def predicted_crossovers(rows, gap_s=1e-6):
        """Measured device times are those of a stream: kernels and the gaps between them."""
        return crossovers((key_of(row), float(row["host_s"]), float(row["device_s"]) + gap_s * float(row["kernels"]))
                          for row in rows)

    found = crossovers((key, host, seconds) for key, seconds in times["device_hot"].items()
                       if (host := host_time(times["host_dispatch"], key)))
    text = [f"# {device}: predicted beside measured", "",
            table("Before calibration: from the datasheet, written before measuring",
                  errors_of(latencies(before), measured)),
            table("After calibration: each network predicted by profiles fitted without it",
                  errors_of(latencies(after), measured)),
            table("Crossover batch, before calibration", errors_of(predicted_crossovers(before), found), "curves"),
            table("Crossover batch, after calibration", errors_of(predicted_crossovers(after, probed.get("kernel_gap", 1e-6)), found), "curves")]
    with open(os.path.join(arguments.folder, "tables.md"), "w") as file:
        file.write("\n".join(text))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ftax", default="ftax", help="the program")
    runs = {"carry": carry, "measure": measure, "predict": write_predictions, "tables": write_tables}
    verbs = parser.add_subparsers(required=True, dest="verb", metavar="{" + ",".join(runs) + "}")
    verb = verbs.add_parser("carry")
    verb.add_argument("build")
    verb.add_argument("-o", "--output", default="build/campaign")
    verb = verbs.add_parser("measure")
    verb.add_argument("-o", "--output", required=True, help="folder with the rows")
    verb.add_argument("--device", default="cuda", choices=("cuda", "cpu"), help="cpu: a dry run of a few minutes")
    verb.add_argument("--budget", type=float, default=570, help="seconds that this call may take")
    verb = verbs.add_parser("predict")
    verb.add_argument("-o", "--output", required=True)
    verb.add_argument("--device", required=True)
    verb.add_argument("--models", nargs="*")
    verb = verbs.add_parser("tables")
    verb.add_argument("folder")
    arguments = parser.parse_args()
    return runs[arguments.verb](arguments)


if __name__ == "__main__":
    sys.exit(main())
