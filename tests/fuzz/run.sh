#!/bin/sh
# run.sh BUILD SECONDS [TARGET...]: fuzzes the targets for SECONDS each, one per processor at a time, from seeds made of what is
# installed and committed. Fails when something is found; what was found lies in BUILD/found, to be copied to tests/fuzz/crashes/TARGET.
set -eu
here=$(dirname "$0")
root=$here/../..
build=$1
seconds=$2
shift 2
[ $# -gt 0 ] || set -- onnx_wire onnx_graph onnx_operator zip pt2_json text_graph config_json profile_json measurement_csv kineto_trace architecture expression \
                   generated_graph
if [ $# -gt 1 ]; then
    printf '%s\n' "$@" | xargs -P "$(nproc)" -I TARGET "$0" "$build" "$seconds" TARGET
    exit
fi
target=$1

export ASAN_OPTIONS=allocator_may_return_null=1:detect_leaks=1:intercept_tls_get_addr=0 # tests/CMakeLists.txt says why
mkdir -p "$build/found"
corpus=$build/corpus/$target
mkdir -p "$corpus"
case $target in
    onnx_wire|onnx_graph) number=0
            for model in $(find /usr/share/libonnx-testdata -name model.onnx -size -3k); do
                number=$((number + 1))
                cp "$model" "$corpus/seed-$number"
            done ;;
    zip) mkdir -p "$build/zip/m/models"
         cp "$here"/seeds/pt2_json/*.json "$build/zip/m/models/model.json"
         (cd "$build/zip" && cmake -E tar cf ../seed.zip --format=zip m) && mv "$build/seed.zip" "$corpus/" ;;
    text_graph) for model in alexnet squeezenet bert; do
                    head -n 60 "$root/graphs/zoo/$model.txt" >"$corpus/seed-$model"
                done ;;
    profile_json) head -n 40 "$root/data/profiles/frameworks/pytorch-eager.json" >"$corpus/seed-framework"
                  cp "$root"/data/devices/t4.json "$root"/data/devices/h100*.json "$corpus/" ;;
esac
[ ! -d "$here/seeds/$target" ] || cp "$here"/seeds/$target/* "$corpus/"
# Weighing inputs by their entropy takes half of the time of the targets that reach most code.
if FTAX_FUZZ_TARGET=$target "$build/ftax_fuzzer" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 \
       -max_len=8192 -use_value_profile=1 -entropic=0 -print_final_stats=1 -artifact_prefix="$build/found/$target-" \
       "$corpus" >"$build/$target.log" 2>&1; then
    executions=$(sed -n 's/^stat::number_of_executed_units: *//p' "$build/$target.log")
    printf '%-16s%s executions, nothing found\n' "$target" "$executions"
else
    found=$(grep -m 3 -E 'ERROR|runtime error|SUMMARY' "$build/$target.log" || tail -n 5 "$build/$target.log")
    printf '%-16sFOUND, see %s\n%s\n' "$target" "$build/$target.log" "$found"
    exit 1
fi
