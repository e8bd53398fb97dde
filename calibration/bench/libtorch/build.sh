#!/usr/bin/env bash
# build.sh TORCH OUTPUT: builds LibTorch's dispatch (libtorch_device.cpp) with g++ and the headers in the folder of the Python
# package torch alone, fmt among them. It takes a minute and more: build it beforehand, and carry its half a megabyte.
set -eu
torch=$1
output=$2
cd "$(dirname "$0")/../../.."
# What LibTorch's libraries link (CUDA's) need not be here; what this library calls must be in it or in them.
g++ -std=c++20 -O1 -DNDEBUG -DFMT_HEADER_ONLY -w -shared -fPIC -fvisibility=hidden -I. -Iinclude \
    -isystem "$torch/include" -isystem "$torch/include/torch/csrc/api/include" -include fmt/ranges.h \
    calibration/bench/libtorch/*.cpp \
    src/core/{expression,expression_parser,graph,near_names,operands,precision,strides,text_graph,types,work}.cpp \
    -L"$torch/lib" -ltorch_cpu -lc10 -Wl,-z,defs -Wl,--allow-shlib-undefined -s -o "$output.new"
mv "$output.new" "$output"
