#!/bin/sh
# libtorch.sh PYTHON FOLDER: puts LibTorch into FOLDER/torch, or leaves it when it is there. PyPI's wheel of torch is unpacked with
# the two of NVIDIA's libraries that its CPU part links; the others (4 GB) are not needed.
set -eu
python=$1
folder=$2
packages="torch==2.11.0 nvidia-cuda-runtime==13.0.96 nvidia-cuda-cupti==13.0.85"

if [ "$(cat "$folder/packages" 2>/dev/null)" = "$packages" ]; then
    exit 0
fi
echo "Installing $packages into $folder"
rm -rf "$folder"
# shellcheck disable=SC2086 # a list of words
"$python" -m pip install --quiet --disable-pip-version-check --no-deps --no-compile --target "$folder" $packages
echo "$packages" >"$folder/packages"
