#!/usr/bin/env bash
# campaign.sh SLICE...: measures a bare machine with an NVIDIA GPU through Python (torch; onnxruntime and torchvision where
# they are), in slices that each end before nine minutes and continue where they stopped when called again.
# Results: compact CSV and JSON under $OUT (default: out/campaign). Nothing is installed; where nvcc and g++ are, two small
# programs are built that measure the CUDA runtime and LibTorch's dispatch without Python.
#
#   calibration/campaign.sh environment operators    what the machine is; device time of the designed operators
#   calibration/campaign.sh dispatch                 host time per operator and framework (LibTorch too), in nine processes
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
[ -e "$OUT/predictions.csv" ] ||
    echo "campaign: no $OUT/predictions.csv yet; 'campaign_tables.py predict' records them before anything is measured" >&2
python=${PYTHON:-python3}

# What the runtime costs without a framework, where there is a compiler; it is no loss when that fails.
if [ "${DEVICE:-cuda}" = cuda ] && [ ! -e "$OUT/probe.csv" ] && command -v nvcc >/dev/null; then
    cuda=$(dirname "$(dirname "$(command -v nvcc)")")
    program=$(mktemp)
    if timeout 120 nvcc -std=c++20 -arch=native -I. -I"$cuda/extras/CUPTI/include" calibration/bench/cuda/*.cu \
               calibration/bench/cuda/*.cpp calibration/bench/{nvml,kernel_record}.cpp -L"$cuda/extras/CUPTI/lib64" -lcupti \
               -o "$program" >"$OUT/probe.log" 2>&1; then
        LD_LIBRARY_PATH="${LD_LIBRARY_PATH:-}:$cuda/extras/CUPTI/lib64:$cuda/lib64" \
            timeout 60 "$program" >"$OUT/probe.csv" 2>>"$OUT/probe.log" || rm -f "$OUT/probe.csv"
    fi
    rm -f "$program"
fi

# LibTorch's dispatch as C++ programs see it, with the headers that come with torch, fmt among them.
if [ ! -e "$OUT/libtorch_dispatch.so" ] && [ ! -e "$OUT/libtorch.log" ] && command -v g++ >/dev/null; then
    torch=$("$python" -c "import importlib.util as u; print(u.find_spec('torch').submodule_search_locations[0])" || true)
    if [ -n "$torch" ]; then
        timeout 240 g++ -std=c++20 -O1 -DNDEBUG -DFMT_HEADER_ONLY -w -shared -fPIC -fvisibility=hidden -I. -Iinclude \
                -isystem "$torch/include" -isystem "$torch/include/torch/csrc/api/include" -include fmt/ranges.h \
                calibration/bench/libtorch/*.cpp calibration/bench/libtorch/bare/*.cpp \
                calibration/bench/{bench_device,kernel_record}.cpp \
                src/core/{expression,expression_parser,graph,near_names,strides,text_graph,types,work}.cpp \
                -L"$torch/lib" -ltorch_cpu -lc10 -Wl,--allow-shlib-undefined -o "$OUT/libtorch_dispatch.so" \
                >"$OUT/libtorch.log" 2>&1 || echo "campaign: no LibTorch dispatch, see $OUT/libtorch.log" >&2
    fi
fi
budget=$((${BUDGET_S:-500} - SECONDS))
exec "$python" calibration/bench/python/campaign.py --output "$OUT" --device "${DEVICE:-cuda}" \
     --budget-s "$((budget > 30 ? budget : 30))" ${SMOKE:+--smoke} "$@"
