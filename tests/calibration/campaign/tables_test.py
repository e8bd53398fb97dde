"""The tables of a campaign, from measurements that ftax itself simulates with a machine unlike the datasheet's: a slower
card and a faster host. Before calibration the error must show, after it (the network left out) it must be gone."""

import csv
import json
import os
import random
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
SCRIPT = os.path.join(ROOT, "calibration", "campaign.py")
DEVICE = "quadro-rtx-8000"
MODELS = ("resnet18", "mobilenet_v2", "squeezenet", "distilbert")
sys.path.insert(0, os.path.dirname(SCRIPT))
import campaign  # noqa: E402


def altered_profiles(folder):
    """Paths of a device profile and a host profile of a machine without a datasheet."""
    device, host = os.path.join(folder, "true_device.json"), os.path.join(folder, "true_host.json")
    with open(os.path.join(ROOT, "data", "profiles", "devices.json")) as file:
        content = json.load(file)
    for parameter in content["parameters"]:
        if parameter.get("device") == DEVICE or parameter.get("key") == DEVICE:
            parameter["value"] *= {"clock.fp32": 0.8, "clock.tensor": 0.85, "bandwidth": 0.9}.get(parameter["name"], 1)
    with open(device, "w") as file:
        json.dump(content, file)
    with open(os.path.join(ROOT, "data", "profiles", "frameworks", "pytorch-eager.json")) as file:
        content = json.load(file)
    content["version"] = "2.11"  # whose cuDNN a calibration assumes
    for parameter in content["parameters"]:
        if parameter["name"] == "host.scale":
            parameter["value"] *= 0.2
    with open(host, "w") as file:
        json.dump(content, file)
    return device, host


def simulate(ftax, folder):
    device, host = altered_profiles(folder)
    noise = random.Random(3)
    columns = ["gpu", "framework", "precision", "model", "batch", "seq", "mode", "latency_ms", "problem"]
    with open(os.path.join(folder, "models.csv"), "w", newline="") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        for model in MODELS:
            for precision in ("fp32", "fp16"):
                for row in campaign.predict(ftax, DEVICE, "pytorch-eager", precision, model, campaign.BATCHES,
                                                   ("--profile", device, "--framework-profile", host)):
                    # Calls back to back have a gap after each kernel, of one microsecond.
                    seconds = {"end_to_end": row["latency_s"], "device_hot": row["device_s"] + 1e-6 * row["kernels"]}
                    if int(row["batch"]) <= 8:
                        seconds["host_dispatch"] = row["host_s"]
                    for mode in seconds:
                        writer.writerow({"gpu": DEVICE, "framework": "pytorch-eager", "precision": precision, "model": model,
                                         "batch": row["batch"], "seq": 128 if model == "distilbert" else "", "mode": mode,
                                         "latency_ms": 1e3 * seconds[mode] * noise.lognormvariate(0, 0.01), "problem": ""})


def mape(text, title):
    section = text[text.index(f"## {title}"):]
    return float(re.search(r"\| all \| \d+ \| ([\d.]+) %", section).group(1))


def main():
    ftax = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, SCRIPT, "--ftax", ftax, "predict", "-o", folder, "--device", DEVICE, "--models", *MODELS],
                       check=True, stderr=subprocess.DEVNULL)
        simulate(ftax, folder)
        subprocess.run([sys.executable, SCRIPT, "--ftax", ftax, "tables", folder], check=True)
        with open(os.path.join(folder, "tables.md")) as file:
            text = file.read()
    print(text)
    assert mape(text, "Before calibration") > 15
    assert mape(text, "After calibration") < 5
    assert mape(text, "Crossover batch, after") < mape(text, "Crossover batch, before")


if __name__ == "__main__":
    main()
