"""Measured rows as CSV files hold them, their predictions and the errors of these."""
import csv
import statistics
import subprocess


def read(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def write(path, rows):
    with open(path, "w", newline="") as file:
        out = csv.DictWriter(file, rows[0].keys(), lineterminator="\n")
        out.writeheader()
        out.writerows(rows)


def predicted(ftax, rows, name, profile, models):
    """The rows with their predictions, through NAME.left.csv and NAME.predictions.csv."""
    write(f"{name}.left.csv", rows)
    options = [word for option, value in (("--profile", profile), ("--models", models)) if value for word in (option, value)]
    subprocess.run([ftax, "validate", f"{name}.left.csv", "--predictions", f"{name}.predictions.csv", "-q", *options],
                   check=True, capture_output=True)
    return read(f"{name}.predictions.csv")


def errors(rows):
    ratios = [float(r["predicted_ms"]) / float(r["latency_ms"]) for r in rows]
    own = sorted(abs(x - 1) for x in ratios)
    return {"mape_percent": round(100 * statistics.fmean(own), 1), "median_percent": round(100 * statistics.median(own), 1),
            "p90_percent": round(100 * own[int(0.9 * (len(own) - 1))], 1),
            "bias_percent": round(100 * (statistics.fmean(ratios) - 1), 1)}
