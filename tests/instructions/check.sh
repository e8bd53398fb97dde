#!/bin/sh
# check.sh PROGRAM [--record]: counts instructions (callgrind) and fails where they exceed the recorded ones by 10 %.
# `make instructions` records them anew. Counts depend on the compiler: another one than recorded skips (exit 77).
set -eu
program=$1
recorded=$(dirname "$0")/recorded.tsv
skip() { echo "SKIPPED: $1"; exit 77; }
command -v valgrind >/dev/null || skip "valgrind is not installed"

count() {
    valgrind --tool=callgrind --callgrind-out-file=/dev/null --toggle-collect="$1" "$program" 2>&1 |
        sed -n 's/.*Collected : \([0-9]*\).*/\1/p'
}
compiler=$("$program" --version)
gates="gate_load gate_predict gate_kernel gate_serve gate_learn gate_nas"
if [ "${2-}" = --record ]; then
    { printf 'compiler\t%s\n' "$compiler"; for gate in $gates; do printf '%s\t%s\n' "$gate" "$(count "$gate")"; done; } >"$recorded"
    cat "$recorded"
    exit 0
fi
value() { sed -n "s/^$1	//p" "$recorded"; }
[ "$compiler" = "$(value compiler)" ] || skip "recorded with g++ $(value compiler), this is $compiler"
failed=0
for gate in $gates; do
    now=$(count "$gate") before=$(value "$gate")
    echo "$gate: $now instructions, recorded $before ($((100 * (now - before) / before)) %)"
    [ "$now" -le $((before + before / 10)) ] || failed=1
done
[ $failed -eq 0 ] || echo "more than 10 % above the recorded count; if that is meant: make instructions"
exit $failed
