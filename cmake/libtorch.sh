#!/bin/sh
# libtorch.sh PYTHON FOLDER: puts LibTorch into FOLDER/torch and on the path of PYTHON, a virtual environment's, or leaves it when it
# is there. PyPI's wheel of torch is unpacked with the two of NVIDIA's libraries that its CPU part links. Of the others (4 GB) Python's
# `import torch` needs the names only: they become libraries whose functions end the program.
set -eu
python=$1
folder=$2
packages="torch==2.11.0 nvidia-cuda-runtime==13.0.96 nvidia-cuda-cupti==13.0.85"

site=$("$python" -c "import sysconfig; print(sysconfig.get_path('purelib'))")
(cd "$(dirname "$folder")" && echo "$PWD/$(basename "$folder")") >"$site/libtorch.pth"
if [ "$(cat "$folder/packages" 2>/dev/null)" = "$packages" ]; then
    exit 0
fi
echo "Installing $packages into $folder"
rm -rf "$folder"
# shellcheck disable=SC2086 # a list of words
"$python" -m pip install --quiet --disable-pip-version-check --no-deps --no-compile --target "$folder" $packages

libraries='cublas|cublasLt|cudnn|cufft|curand|cusparse|cusparseLt|cusolver|nccl|cufile|nvshmem_host'
nm -D --undefined-only "$folder"/torch/lib/*.so 2>/dev/null |
    sed -nE 's/^ +U ((cublas|cudnn|cufft|curand|cusparse|cusolver|nccl|cuFile|nvshmem)[A-Za-z0-9_]*)(@.*)?$/\1/p' | sort -u |
    sed 's/.*/.globl &\n&: .long 0/' >"$folder/missing.s"
for library in $(readelf -d "$folder"/torch/lib/*.so | sed -nE "s/.*NEEDED.*\[(lib($libraries)\.so\.[0-9]+)\]/\1/p" | sort -u); do
    case $library in libnvshmem*) version=NVSHMEM ;; *) version=$library ;; esac
    echo "$version { *; };" >"$folder/missing.map"
    cc -shared -nostdlib -Wl,-soname,"$library",--version-script="$folder/missing.map" \
       -o "$folder/nvidia/cu13/lib/$library" "$folder/missing.s"
done
echo "$packages" >"$folder/packages"
