"""Predicts rows of networks, cards and engines that no fit of kernels has used, for calibration/crossvalidation/ledger.py to score.

    other_networks.py FTAX MEASUREMENTS NETWORKS OUT.csv

NETWORKS is the folder of exported networks that calibration/refit.sh keeps (part `evidence`). Two sets have rows that are not one
forward pass, and are composed of several:

- A pipeline of lambda_diffusers.csv is 31 passes of the UNet on twice the batch (guidance), the text encoder for the prompt and for the
  empty prompt, and one pass of the decoder (LambdaLabsML/lambda-diffusers, scripts/benchmark.py, 30 steps of its scheduler). The text
  encoder of CLIP ViT-L/14 has the dimensions of BERT-base, which stands for it, at 77 tokens.
- A query of MLPerf's BERT is one feature of SQuAD 1.1 of up to 384 tokens. NVIDIA's harness sorts them, cuts off their padding and
  concatenates a batch (mlcommons/inference_results_v4.1, closed/NVIDIA/code/bert/tensorrt/README.md), so a batch takes the mean of
  batches of one length. bert-99.9 runs in fp8 on Hopper and Ada (configs/bert: use_fp8).
"""

import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "calibration/crossvalidation"))
from model_folds import COPIED, Study, read, write

# Means of the eighths of the lengths of SQuAD's features. Source: the histogram of the training set, mean 172 tokens
# (graphcore/tutorials, blogs_code/packedBERT/histograms.py), times 1.035: so much longer are contexts and questions of the
# validation set (bytes per example on the data set's card at Hugging Face, less those of its further answers).
SQUAD_LENGTHS = [90, 126, 142, 157, 174, 197, 230, 309]
TIMES = ("predicted_ms", "low_ms", "high_ms")
UNET = {"xformers": "sd15_unet_512", "plain": "sd15_unet_512_plain"}


def networks_of_paddleclas(rows, folder):
    """Models under the names of timm, whose files may have their size in the name."""
    for row in rows:
        if row["timm"]:
            exists = (folder / f"{row['timm']}.pt2").exists()
            yield row | {"model": row["timm"] if exists else row["timm"].rpartition("_")[0]}


def passes_of_pipeline(row):
    batch = int(row["batch"])
    return [(31, row | {"model": UNET[row["attention"]], "batch": 2 * batch}), (1, row | {"model": "sd15_vae_512"}),
            (2, row | {"model": "bert_base", "input": 77})]


def passes_of_squad(row):
    precision = "fp8" if row["model"] == "bert-99.9" else row["precision"]
    share = 1 / len(SQUAD_LENGTHS)
    return [(share, row | {"model": "bert_large", "precision": precision, "input": n}) for n in SQUAD_LENGTHS]


def add_composed(study, fold, rows, passes_of, part_of):
    """Rows whose latency is a weighted sum of passes; bounds are summed as well, since their errors are common."""
    parts = [passes_of(row) for row in rows]
    predicted = study.predict([row for own in parts for _, row in own])
    if len(predicted) != sum(map(len, parts)):
        sys.exit(f"{fold}: passes without a prediction")
    for row, own in zip(rows, parts):
        times = [predicted.pop(0) for _ in own]
        sums = {name: sum(weight * float(t[name]) for (weight, _), t in zip(own, times)) for name in TIMES}
        study.predictions.append(row | sums | {"fold": fold, "part": part_of(row)})


def add(study, fold, rows, part_of):
    study.predictions += [row | {"fold": fold, "part": part_of(row)} for row in study.predict(rows)]


def main(ftax, measurements, networks, out):
    measurements, networks = pathlib.Path(measurements), pathlib.Path(networks)
    with tempfile.TemporaryDirectory() as folder:
        study = Study(ftax, folder)
        study.models = networks

        def rows_of(name):
            return read(measurements / f"{name}.csv")

        add(study, "PaddleClas", list(networks_of_paddleclas(rows_of("paddleclas"), networks)), lambda r: f"page: {r['page']}")
        add(study, "printed tables", rows_of("printed_tables"), lambda r: f"{r['run']}, {r['precision']}")
        mlperf = rows_of("mlperf_v41_v51")
        add(study, "MLPerf, ResNet-50", [r for r in mlperf if r["model"] == "mlperf_resnet50"], lambda r: r["scenario"])
        add_composed(study, "MLPerf, BERT-large", [r for r in mlperf if r["model"].startswith("bert-99")], passes_of_squad,
                     lambda r: f"{r['model']}, {r['scenario']}")
        add_composed(study, "diffusion pipelines", rows_of("lambda_diffusers"), passes_of_pipeline,
                     lambda r: f"{r['precision']}, {r['attention']}")
        add(study, "diffusion, one step", rows_of("diffusion_eager"), lambda r: f"{r['framework']}, {r['precision']}")
        add(study, "kernl's BERT", [r for r in rows_of("models_2x") if r["run"] == "kernl" and
                                    (r["input"], r["batch"]) not in COPIED.get(r["framework"], [])], lambda r: r["framework"])
        write(out, study.predictions)


if __name__ == "__main__":
    main(*sys.argv[1:])
