#!/bin/sh
# wheel.sh PYTHON FOLDER: builds the source distribution and, from it alone, the wheel for PYTHON; bundles every library that manylinux
# does not promise (auditwheel), and tests the wheel in a bare distribution (tests/wheel/bare.sh). Both are in FOLDER/dist.
set -eu
source=$(cd "$(dirname "$0")/.." && pwd)
python=$(command -v "$1")
folder=$2
largest_mb=30

mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
tag=$("$python" -c 'import sys; print("cp%d%d" % sys.version_info[:2])')
tools=$folder/tools-$tag
built=$folder/built-$tag
repaired=$folder/repaired-$tag
if ! cmp -s "$source/cmake/wheel_requirements.txt" "$tools/requirements.txt"; then
    "$python" -m venv "$tools"
    "$tools/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes --only-binary :all: --requirement "$source/cmake/wheel_requirements.txt"
    cp "$source/cmake/wheel_requirements.txt" "$tools/requirements.txt"
fi
PATH=$tools/bin:$PATH

rm -rf "$built" "$repaired"
echo "compiling: $folder/build.log"
python -m build --no-isolation --outdir "$built" --config-setting=build-dir="$folder/build-$tag" \
       --config-setting=cmake.define.FTAX_BUILD_FIT=ON --config-setting=cmake.define.FTAX_LINK_LIBZIP=ON "$source" >"$folder/build.log" 2>&1 &
while kill -0 $! 2>/dev/null; do  # sources compiled so far
    [ ! -t 2 ] || printf '\r%s' "$(grep -o '^\[[0-9]*/[0-9]*\]' "$folder/build.log" | tail -n 1)" >&2
    sleep 2
done
[ ! -t 2 ] || echo >&2
wait $! || { cat "$folder/build.log" >&2; exit 1; }
echo "bundling libraries, then testing the wheel in a bare system"
auditwheel repair --wheel-dir "$repaired" "$built"/*.whl >"$folder/auditwheel.log" 2>&1 || { cat "$folder/auditwheel.log" >&2; exit 1; }

wheel=$(echo "$repaired"/*.whl)
bytes=$(wc -c <"$wheel")
if [ "$bytes" -gt $((largest_mb * 1000000)) ]; then
    echo "wheel.sh: $wheel has $bytes bytes, more than $largest_mb MB" >&2
    exit 1
fi
"$source/tests/wheel/bare.sh" "$wheel" "$folder"
mkdir -p "$folder/dist"
cp "$wheel" "$built"/*.tar.gz "$folder/dist"
echo "$folder/dist/$(basename "$wheel"): $((bytes / 1000000)) MB"
