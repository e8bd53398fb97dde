#!/usr/bin/env bash
# campaign.sh SLICE...: measures a bare machine with an NVIDIA GPU through Python alone (torch; onnxruntime and torchvision
# where they are), in slices that each end before nine minutes and continue where they stopped when called again.
# Results: compact CSV and JSON under $OUT (default: out/campaign). Nothing is built, nothing is installed.
#
#   calibration/campaign.sh environment operators    what the machine is; device time of the designed operators
#   calibration/campaign.sh dispatch                 host time per operator and framework, in nine processes
#   calibration/campaign.sh models                   networks × batches × precisions, end to end and device time
#   calibration/campaign.sh frameworks               the same under TorchScript, CUDA graphs, torch.compile, ONNX Runtime
#   calibration/campaign.sh all                      all of it, within one budget
#
# Before it, calibration/campaign_tables.py records what ftax predicts from the datasheet; after it, it sets three tables.
#
#   BUDGET_S=500     seconds this call may take
#   RESUME=FOLDER    results of an earlier call (their CSV files are copied and continued)
#   DEVICE=cpu       a dry run without a GPU; SMOKE=1: the smallest case of everything
#   PYTHON=python3   which Python
set -eu
cd "$(dirname "$0")/.."
OUT=${OUT:-out/campaign}
mkdir -p "$OUT"
if [ -n "${RESUME:-}" ]; then
    for file in "$RESUME"/*.csv; do
        [ -e "$file" ] && [ ! -e "$OUT/${file##*/}" ] && cp "$file" "$OUT/"
    done
fi
[ $# -gt 0 ] || set -- all
# What the runtime costs without a framework, where there is a compiler; it is no loss when that fails.
if [ "${DEVICE:-cuda}" = cuda ] && [ ! -e "$OUT/probe.csv" ] && command -v nvcc >/dev/null; then
    cuda=$(dirname "$(dirname "$(command -v nvcc)")")
    program=$(mktemp)
    if timeout 120 nvcc -std=c++20 -arch=native -I. -I"$cuda/extras/CUPTI/include" calibration/bench/cuda/*.cu \
               calibration/bench/cuda/*.cpp calibration/bench/nvml.cpp -L"$cuda/extras/CUPTI/lib64" -lcupti -o "$program" >"$OUT/probe.log" 2>&1; then
        LD_LIBRARY_PATH="${LD_LIBRARY_PATH:-}:$cuda/extras/CUPTI/lib64:$cuda/lib64" \
            timeout 60 "$program" >"$OUT/probe.csv" 2>>"$OUT/probe.log" || rm -f "$OUT/probe.csv"
    fi
    rm -f "$program"
fi
exec "${PYTHON:-python3}" calibration/bench/python/campaign.py --output "$OUT" --device "${DEVICE:-cuda}" \
     --budget-s "${BUDGET_S:-500}" ${SMOKE:+--smoke} "$@"
