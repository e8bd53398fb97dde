#!/usr/bin/env bash
# campaign.sh SLICE...: measures a bare machine with an NVIDIA GPU through Python (torch; onnxruntime, torchvision, timm and
# transformers where they are), in three calls of at most nine minutes, each of which continues where the last one stopped,
# on the same machine or a fresh one. Nothing is installed. docs/calibrating-a-gpu.md says what to do before and after.
#
#   calibration/campaign.sh first     what no table has: host costs by operator and framework, of CUDA graphs, of torch.compile
#   calibration/campaign.sh second    networks × batches × precisions, end to end, device time and host time
#   calibration/campaign.sh third     device time of the designed operators, what is missing so far, kernel traces
#   calibration/campaign.sh all       all of it in that order, within one budget
#
# Each says beforehand what it will do in its time; what does not fit is left to the next call. It ends with 1 where a stage
# left no row that counts. Results: at most eight files, 16 MiB, in $OUT (default: out/campaign): environment.json,
# probe.csv, dispatch.csv, frameworks.csv, models.csv, operators.csv, kernels.csv.gz.
#
#   BUDGET_S=540     seconds this call may take
#   RESUME=FOLDER    results of an earlier call (copied and continued)
#   LIBTORCH=FILE    library built beforehand by calibration/bench/libtorch/bare/build.sh (default: build/campaign/
#                    libtorch_dispatch.so; without it 75 seconds go into building it here)
#   DEVICE=cpu       a dry run without a GPU; SMOKE=1: the smallest case of everything
#   PYTHON=python3   which Python
set -eu
cd "$(dirname "$0")/.."
OUT=${OUT:-out/campaign}
mkdir -p "$OUT"
OUT=$(cd "$OUT" && pwd)
if [ -n "${RESUME:-}" ]; then
    for file in "$RESUME"/*.csv "$RESUME"/*.csv.gz "$RESUME"/environment.json; do
        [ ! -e "$file" ] || [ -e "$OUT/${file##*/}" ] || cp "$file" "$OUT/"
    done
fi
[ $# -gt 0 ] || set -- all
python=${PYTHON:-python3}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0

# What the runtime costs without a framework, where there is a compiler.
if [ "${DEVICE:-cuda}" = cuda ] && [ ! -e "$OUT/probe.csv" ] && command -v nvcc >/dev/null; then
    cuda=$(dirname "$(dirname "$(command -v nvcc)")")
    cupti=$cuda/extras/CUPTI
    [ -e "$cupti/include/cupti.h" ] || cupti=$cuda
    cupti_lib=$cupti/lib64
    if timeout 120 nvcc -std=c++20 -arch=native -I. -I"$cupti/include" calibration/bench/cuda/*.cu \
               calibration/bench/cuda/*.cpp calibration/bench/nvml.cpp -L"$cupti_lib" -lcupti \
               -o "$scratch/probe" >"$scratch/log" 2>&1 &&
       LD_LIBRARY_PATH="$cupti_lib:$cuda/lib64${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" \
           timeout 60 "$scratch/probe" >"$scratch/probe.csv" 2>>"$scratch/log"; then
        mv "$scratch/probe.csv" "$OUT/"
    else
        echo "campaign: no probe of the CUDA runtime:" >&2
        tail -n 5 "$scratch/log" >&2
        failed=1
    fi
fi

# LibTorch's dispatch as C++ programs see it.
libtorch=${LIBTORCH:-build/campaign/libtorch_dispatch.so}
if [ ! -e "$libtorch" ]; then
    libtorch=
    torch=$("$python" -c "import importlib.util as u; print(u.find_spec('torch').submodule_search_locations[0])" 2>/dev/null || true)
    if [ -n "$torch" ] && command -v g++ >/dev/null; then
        if timeout 240 calibration/bench/libtorch/bare/build.sh "$torch" "$scratch/libtorch_dispatch.so" >"$scratch/log" 2>&1; then
            libtorch=$scratch/libtorch_dispatch.so
        else
            echo "campaign: LibTorch's dispatch was not built:" >&2
            tail -n 5 "$scratch/log" >&2
            failed=1
        fi
    fi
fi
budget=$((${BUDGET_S:-540} - SECONDS))
"$python" calibration/bench/python/campaign.py --output "$OUT" --device "${DEVICE:-cuda}" \
    --budget-s "$((budget > 30 ? budget : 30))" ${libtorch:+--libtorch "$(realpath "$libtorch")"} ${SMOKE:+--smoke} "$@" || failed=1
exit "$failed"
