#!/bin/sh
# Scores the device profile on whole models it has not seen: fits it anew without each model in turn (operator rows
# stay in) and validates that model's eager rows, hosts anchored by the other models of the same run.
# usage: device_folds.sh FTAX OPERATOR_PROFILE framework_tax.csv FOLDER
set -e
ftax=$1 start=$2 rows=$3 folder=$4
mkdir -p "$folder"
head -n 1 "$rows" > "$folder/header"
grep ',pytorch-eager,' "$rows" | grep -v '^A100,.*2022_1025_pretrained-fp32@2022-10-26' > "$folder/eager"
rm -f "$folder/predictions.csv"
for model in $(cut -d, -f4 "$folder/eager" | sort -u); do
    "$ftax" fit --start "$start" "$rows" --leave-out-run 'A100:2022_1025_pretrained-fp32@2022-10-26' \
        --leave-out-model "$model" -o "$folder/devices.json" 2> "$folder/fit.log"
    { cat "$folder/header"; grep ",$model," "$folder/eager"; } > "$folder/left.csv"
    { cat "$folder/header"; grep -v ",$model," "$folder/eager"; } > "$folder/others.csv"
    "$ftax" validate "$folder/left.csv" --anchor "$folder/others.csv" --profile "$folder/devices.json" \
        --predictions "$folder/one.csv" > /dev/null 2>&1
    if [ -e "$folder/predictions.csv" ]; then tail -n +2 "$folder/one.csv" >> "$folder/predictions.csv"
    else cp "$folder/one.csv" "$folder/predictions.csv"; fi
done
