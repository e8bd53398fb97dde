#!/usr/bin/env bash
# campaign.sh: measures a bare machine with an NVIDIA GPU through Python (torch; torchvision, timm and transformers where they
# are), in calls of at most nine minutes, each of which continues where the last one stopped, on the same machine or a fresh
# one with the same card. Nothing is installed. docs/calibrating-a-gpu.md says what to do before and after.
#
#   calibration/campaign.sh build          here, beforehand: the probe and LibTorch's dispatch, into build/campaign
#   calibration/campaign.sh [all|STAGE...] there: environment, frameworks, dispatch, models, settings, operators, compiled, traces
#
# It says beforehand how long what is missing takes, runs one case of every path first, and ends with 1 where a stage left no
# row that counts. Results: at most eight files, 16 MiB, in $OUT (default: out/campaign).
#
#   BUDGET_S=570     seconds this call may take
#   RESUME=FOLDER    results of an earlier call, copied and continued (default: build/campaign/rows)
#   CARRIED=FOLDER   what was built beforehand (default: build/campaign)
#   DEVICE=cpu       a dry run without a GPU; SMOKE=1: one case of every path and no more
#   PYTHON=python3   which Python
set -eu
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
carried=${CARRIED:-build/campaign}
mkdir -p "$carried"
failed=0

# What the runtime costs without a framework.
build_probe() {
    nvcc -std=c++20 -gencode arch=compute_80,code=compute_80 -gencode arch=compute_90,code=sm_90 -I. calibration/bench/cuda/probe.cu \
         -o "$carried/probe"
}
# LibTorch's dispatch as C++ programs see it.
build_libtorch() {
    calibration/bench/libtorch/build.sh \
        "$("$python" -c "import importlib.util as u; print(u.find_spec('torch').submodule_search_locations[0])")" "$carried/libtorch_dispatch.so"
}
if [ "${1:-}" = build ]; then
    build_libtorch
    ! command -v nvcc >/dev/null || build_probe
    exit
fi

[ "${1:-}" != all ] || shift
OUT=${OUT:-out/campaign}
mkdir -p "$OUT"
OUT=$(cd "$OUT" && pwd)
for file in "${RESUME:-$carried/rows}"/*.csv "${RESUME:-$carried/rows}"/environment.json; do
    [ ! -e "$file" ] || [ -e "$OUT/${file##*/}" ] || cp "$file" "$OUT/"
done
if [ "${DEVICE:-cuda}" = cuda ] && [ ! -e "$OUT/probe.csv" ]; then
    if { [ -e "$carried/probe" ] || build_probe; } >"$carried/log" 2>&1 &&
       timeout 60 "$carried/probe" >"$carried/probe.csv" 2>>"$carried/log"; then
        mv "$carried/probe.csv" "$OUT/"
    else
        echo "campaign: no probe of the CUDA runtime:" >&2
        tail -n 5 "$carried/log" >&2
        failed=1
    fi
fi
[ -e "$carried/libtorch_dispatch.so" ] || timeout 240 bash -c "$(declare -f build_libtorch); python=$python carried=$carried; build_libtorch" \
    >"$carried/log" 2>&1 || { echo "campaign: LibTorch's dispatch was not built:" >&2; tail -n 5 "$carried/log" >&2; failed=1; }
budget=$((${BUDGET_S:-570} - SECONDS))
"$python" calibration/bench/python/campaign.py --output "$OUT" --device "${DEVICE:-cuda}" --budget-s "$((budget > 30 ? budget : 30))" \
    --libtorch "$(realpath "$carried")/libtorch_dispatch.so" ${SMOKE:+--smoke} "$@" || failed=1
exit "$failed"
