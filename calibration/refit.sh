#!/usr/bin/env bash
# refit.sh BUILD MEASUREMENTS MODELS [PART...]: fits data/profiles anew and writes the ledgers that score them.
#
# BUILD is a configured build folder (CMake, Release), MEASUREMENTS holds the measured rows (docs/accuracy.md), MODELS the
# architectures of timm as .pt2 files (graphs/zoo/export.py). PYTHON has torch, torchvision, timm and transformers, for the
# networks of crossvalidation/networks.tsv. Parts: those of the case below, all where none is named; docs/accuracy.md says
# what each writes.
#
# About half an hour of one core. What an earlier part wrote to BUILD/refit is used again by later ones.
set -eu
[ $# -ge 3 ] || { sed -n '2,4p' "$0" >&2; exit 64; }
build=$(realpath "$1") measurements=$(realpath "$2") models=$(realpath "$3")
shift 3
[ $# -gt 0 ] || set -- devices uncertainty evidence frameworks operators layers quantized serving device timm tensorrt nas kernelbench edge other served
cd "$(dirname "$0")/.."
work=$build/refit
mkdir -p "$work"
unsound_run="A100:2022_1025_pretrained-fp32@2022-10-26"  # calibration/crossvalidation/folds.hpp says why

export FTAX_DATA=$PWD/data  # what one part writes, the next reads
cmake --build "$build" --target ftax_program ftax_folds
scores=calibration/crossvalidation
ledger() { name=$1; shift; python3 $scores/ledger.py "$name" data "$@"; }
folds() { name=$1; shift; ledger "$name" "$build/ftax_folds" "$@"; }
fit() { "$build/ftax" fit "$@" --iterations 12 --leave-out-run "$unsound_run"; }

evidence_rows="framework_tax framework_tax_more timm_infer neusight_models models_2x edge_models kernelbench \
    optimum_encoder printed_tables diffusion_eager mlperf_v41_v51 pytorch_gpu_benchmark"

fit_devices() {
    "$build/ftax" fit "$measurements/neusight_ops.csv" "$measurements/tensor_ops.csv" "$measurements/layer_ops.csv" \
        -o "$work/operators.json" \
        --host-output data/profiles/hosts/neusight-pytorch-2.1.json --framework-version 2.1
    fit --start "$work/operators.json" "$measurements/framework_tax.csv" "$measurements/framework_tax_more.csv" \
        "$measurements/timm_infer.csv" --models "$models" -o "$work/models.json"
    # An engine compiles convolutions of its own.
    fit --start "$work/models.json" "$measurements/framework_tax.csv" "$measurements/framework_tax_more.csv" \
        --framework torch-tensorrt --only conv.engine -o "$work/devices.json"
    # Parameters that our own measurements of a card gave stay as they are (docs/calibrating-a-gpu.md, step 6).
    python3 - data/profiles/devices.json "$work/devices.json" <<'END'
import json, sys
kept, fitted = (json.load(open(path)) for path in sys.argv[1:])
key = lambda p: (p["name"], p.get("architecture", ""), p.get("device", ""))
own = {key(p): p for p in kept["parameters"] if "measured" in p["source"]}
fitted["parameters"] = sorted({**{key(p): p for p in fitted["parameters"]}, **own}.values(), key=key)
json.dump(fitted, open(sys.argv[1], "w"), indent=2)
END
}

for part in "$@"; do
    case $part in
        devices) fit_devices ;;
        uncertainty) "$build/ftax_folds" uncertainty "$measurements/framework_tax.csv" "$work/operators.json" \
            data/profiles/uncertainty.json ;;
        evidence)
            mkdir -p "$work/networks"
            for archive in kernelbench_models exported_models; do
                tar -xf "$measurements/$archive.tar.xz" -C "$work/networks" --transform 's,.*/,,'
            done
            # Exported before timm's files are linked: those of one name are other networks, and stay as they are.
            [ -e "$work/networks/swin_v1_tiny.pt2" ] ||
                "${PYTHON:-python3}" graphs/zoo/export.py $scores/networks.tsv -o "$work/networks"
            ln -s "$models"/*.pt2 "$work/networks" 2>/dev/null || true
            ln -sf sd15_unet_512.pt2 "$work/networks/sd15_unet.pt2"
            # Models of PaddleClas under the names of timm, whose files may have their size in the name.
            awk -F, -v OFS=, -v path="$work/networks/" 'NR > 1 && $10 {
                if (system("test -e " path $10 ".pt2")) sub(/_[0-9]+$/, "", $10)
                $6 = $10 } 1' "$measurements/paddleclas.csv" > "$work/paddleclas.csv"
            folds coverage evidence "$work/networks" data "$work/paddleclas.csv" $(printf "$measurements/%s.csv " $evidence_rows) ;;
        # Host costs are fitted beside those in data/: the second time starts from the first.
        frameworks)
            "$build/ftax_folds" frameworks "$measurements/framework_tax.csv" data "$work/frameworks.csv"
            folds framework_tax frameworks "$measurements/framework_tax.csv" data ;;
        operators) folds operators operators "$measurements/neusight_ops.csv" ;;
        layers) folds layer_kernels layers "$measurements/tensor_ops.csv" "$measurements/layer_ops.csv" ;;
        serving) folds serving serving "$measurements/llm_static.csv" data ;;
        quantized) folds quantized quantized "$measurements/tensor_ops.csv" ;;
        device) folds device_bound devices "$measurements/framework_tax.csv" "$work/operators.json" ;;
        timm)
            rm -rf "$work/timm"  # the folds keep fits that they find there
            fit --start "$work/operators.json" "$measurements/framework_tax.csv" -o "$work/blind.json"
            ledger timm python3 $scores/model_folds.py timm "$build/ftax" "$work/blind.json" \
                "$measurements/timm_infer.csv" "$models" graphs/zoo/timm.tsv "$work/timm" ;;
        tensorrt) ledger tensorrt python3 $scores/model_folds.py tensorrt "$build/ftax" "$measurements/models_2x.csv" data \
            "$work/networks" "$models" "$measurements/timm_infer.csv" "$measurements/timm_infer_291.csv" ;;
        kernelbench) ledger kernelbench python3 $scores/model_folds.py kernelbench "$build/ftax" "$measurements/kernelbench.csv" \
            "$measurements/kernelbench_models.tar.xz" ;;
        edge) ledger edge python3 $scores/model_folds.py edge "$build/ftax" "$measurements/edge_models.csv" ;;
        other) ledger other_networks python3 tests/regression/other_networks.py "$build/ftax" "$measurements" "$work/networks" ;;
        served) ledger served python3 $scores/served_rows.py "$build/ftax" "$measurements/serving.csv" \
            "$measurements/serving_engines.csv" "$measurements/requests_vllm_rtx4090_llama8b.csv" ;;
        nas) folds nas nas "$measurements" data ;;
        *) echo "refit.sh: no part is called $part" >&2; exit 64 ;;
    esac
done
python3 tests/docs/quoted_figures.py --write
