#!/bin/sh
# check.sh PROGRAM FTAX [--record]: counts instructions (callgrind) of PROGRAM's gates and of whole commands of FTAX, and fails where they
# exceed the recorded ones by 10 %. `make instructions` records them anew. Counts depend on the compiler: another one than recorded skips
# (exit 77).
set -eu
program=$1 ftax=$2
recorded=$(dirname "$0")/recorded.tsv
skip() { echo "SKIPPED: $1"; exit 77; }
command -v valgrind >/dev/null || skip "valgrind is not installed"

commands() { # NAME and words of a command, a line each
    cat <<'END'
version --version
help --help
cold_predict predict resnet50 --device t4 --batch 1:128:x2
suggest_anchors predict resnet50 --device t4 --batch 1:4000:+1 --suggest-anchors
generate generate llama-3-70b --device h100-sxm5-80gb --framework vllm --tp 4 --batch 1:128:x2 --prompt 512 --new-tokens 128
END
}
count() {
    words=$(commands | sed -n "s/^$1 //p")
    # shellcheck disable=SC2086 # words
    if [ -n "$words" ]; then set -- "$ftax" $words; else set -- --toggle-collect="$1" "$program"; fi
    valgrind --tool=callgrind --callgrind-out-file=/dev/null "$@" 2>&1 | sed -n 's/.*Collected : \([0-9]*\).*/\1/p'
}
compiler=$("$program" --version)
gates="gate_load gate_predict gate_kernel gate_serve gate_learn gate_nas $(commands | sed 's/ .*//')"
if [ "${3-}" = --record ]; then
    { printf 'compiler\t%s\n' "$compiler"; for gate in $gates; do printf '%s\t%s\n' "$gate" "$(count "$gate")"; done; } >"$recorded"
    cat "$recorded"
    exit 0
fi
value() { sed -n "s/^$1	//p" "$recorded"; }
[ "$compiler" = "$(value compiler)" ] || skip "recorded with g++ $(value compiler), this is $compiler"
failed=0
for gate in $gates; do
    now=$(count "$gate") before=$(value "$gate")
    [ -n "$before" ] || { echo "$gate: $now instructions, none recorded: make instructions"; failed=1; continue; }
    echo "$gate: $now instructions, recorded $before ($((100 * (now - before) / before)) %)"
    [ "$now" -le $((before + before / 10)) ] || failed=1
done
[ $failed -eq 0 ] || echo "more than 10 % above the recorded count; if that is meant: make instructions"
exit $failed
