#!/bin/sh
# Fails when product code has more lines than tests/line_budget.txt allows. A commit that raises the budget says why.
set -e
cd "$(dirname "$0")/.."
lines=$(find include src graphs predictors calibration cmake -type f | grep -E '\.(cpp|hpp|cu|py|sh|js|css)$' | xargs cat | wc -l)
budget=$(grep -v '^#' tests/line_budget.txt)
echo "product code: $lines lines of $budget"
[ "$lines" -le "$budget" ]
