#!/bin/sh
# demo.sh PROGRAM: three tables about a Quadro RTX 8000 and the measurements of the paper "The Framework Tax" (PyTorch 1.12): BERT on
# an unknown host, the same after one measured row, and ResNet-50 under the newest PyTorch.
set -eu
program=$1

# show HEADING SENTENCE WORDS...: a table with what to look for in it. Below the heading, its first line is the answer.
show() {
    printf '\n== %s ==\n%s\n\n$ ftax %s\n\n' "$1" "$2" "$(shift 2 && echo "$*")"
    shift 2
    "$program" "$@"
}

card="--device quadro-rtx-8000 --precision fp16"
bert="predict bert $card --framework pytorch-eager@1.12 --dim seq=128 --batch 1:64:x2 --measured data/paper/figure3.csv"
show "1. BERT, of a host that nothing is known of" \
     "PyTorch 1.12, as it was measured: the latency is the host's up to the crossover, and its interval is wide." \
     $bert --suggest-anchors
show "2. The same after one measured row (batch 2)" \
     "The row says how fast this host is: up to the crossover, errors shrink from a quarter to a few per cent (batch 1 apart)." \
     $bert --anchor examples/anchor.csv
show "3. ResNet-50 under the newest PyTorch that was measured" \
     "Nothing of this was measured: a prediction as for your own model." \
     predict resnet50 $card --framework pytorch-eager --batch 1:128:x2
printf '\nThe program is %s; try `%s compare --help`.\n' "$program" "$program"
