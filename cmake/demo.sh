#!/bin/sh
# demo.sh PROGRAM: what the model says of BERT and ResNet-50 on a Quadro RTX 8000, beside what the paper measured: first of
# a host that nobody has measured, then of the same host after one measured row.
set -eu
program=$1

show() {
    printf '\n$ ftax %s\n\n' "$*"
    "$program" "$@"
}

bert="predict bert --device quadro-rtx-8000 --framework pytorch-eager --precision fp16 --dim seq=128 --batch 1:64:x2"
show $bert --measured data/paper/figure3.csv --suggest-anchors
show $bert --measured data/paper/figure3.csv --anchor examples/anchor.csv
show predict resnet50 --device quadro-rtx-8000 --framework pytorch-eager --precision fp16 --batch 1:128:x2
