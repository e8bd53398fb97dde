"""What a campaign (calibration/campaign.sh) says about ftax, in three steps that keep their order provable:

  campaign_tables.py predict -o FOLDER --device SLUG      before measuring: FOLDER/predictions.csv, from the datasheet
  calibration/campaign.sh, three times                    on the machine; its files go into FOLDER
  campaign_tables.py tables FOLDER                        FOLDER/tables.md: error before calibration, after calibration
                                                          with the model itself left out, and of the crossover

Needs the program ftax (--ftax, or on the PATH) and Python's own library."""

import argparse
import concurrent.futures
import csv
import io
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "bench", "python"))
from design import BATCHES, FRAMEWORKS, FRAMEWORK_MODELS, LARGEST_HOST_BATCH, MODELS, PRECISIONS  # noqa: E402

EAGER = FRAMEWORKS[0]
FOLDS = 5  # networks left out together: a fit without each of 25 would take an hour
KEY = ("framework", "precision", "model", "batch")


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
    if not os.path.exists(path):
        return []
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def key_of(row):
    return tuple(str(row[name]) for name in KEY)


def measured_times(folder):
    """Seconds by mode, then by framework, precision, model and batch."""
    times = {"end_to_end": {}, "device_hot": {}, "host_dispatch": {}}
    for row in read(os.path.join(folder, "models.csv")):
        if not row["problem"] and not row.get("layout"):
            times[row["mode"]][key_of(row)] = float(row["latency_ms"]) / 1e3
    return times


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
    found = {curve: crossover(points) for curve, points in curves.items()}
    return {curve: batch for curve, batch in found.items() if batch}


def quantile(values, share):
    return sorted(values)[round(share * (len(values) - 1))]


def table(title, errors, unit="rows"):
    """Markdown; errors by group, each |predicted - measured| / measured."""
    lines = [f"## {title}", "", f"| framework, precision | {unit} | MAPE | median | P90 |", "|---|---|---|---|---|"]
    everything = [e for group in errors.values() for e in group]
    for name, group in [*sorted(errors.items()), *([("all", everything)] if everything else [])]:
        cells = [statistics.mean(group), statistics.median(group), quantile(group, 0.9)]
        lines.append(f"| {name} | {len(group)} | " + " | ".join(f"{100 * e:.1f} %" for e in cells) + " |")
    return "\n".join(lines) + "\n"


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
    files = [path for name in ("operators.csv", "dispatch.csv", "models.csv", "probe.csv")
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

    probed = {row["quantity"]: float(row["value"]) for row in read(os.path.join(arguments.folder, "probe.csv"))}

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
    verbs = parser.add_subparsers(required=True)
    verb = verbs.add_parser("predict")
    verb.add_argument("-o", "--output", required=True)
    verb.add_argument("--device", required=True)
    verb.add_argument("--models", nargs="*")
    verb.set_defaults(run=write_predictions)
    verb = verbs.add_parser("tables")
    verb.add_argument("folder")
    verb.set_defaults(run=write_tables)
    arguments = parser.parse_args()
    arguments.run(arguments)


if __name__ == "__main__":
    main()
