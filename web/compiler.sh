#!/bin/sh
# The compilers of `make web`: clang, clang++, ar and ranlib in $(BUILD)/web/tools are links to this script. Compiles with Zig's
# clang for WebAssembly, with exceptions, and links with Zig's libc and the C++ library that build.sh has compiled.
set -eu
tools=$(cd "$(dirname "$0")" && pwd)
zig=$tools/zig
name=$(basename "$0")
case $name in ar | ranlib) exec "$zig" "$name" "$@" ;; esac

lib=$tools/lib
set -- -fwasm-exceptions "$@"
link=true
for word in "$@"; do
    case $word in -c | -S | -E | -M | -MM | --version | -v | -print-* | -dumpmachine) link=false ;; esac
done
if $link; then
    exec "$zig" cc -target wasm32-wasi -Wno-unused-command-line-argument "$@" "$tools/processes.o" "$tools/libc++.a"
fi

# libc++ as Zig compiles it for Linux: WASI's libc has the functions of threads, which answer that none can be started.
if [ "$name" = clang++ ]; then
    set -- -include "$tools/posix.h" -nostdinc++ -isystem "$lib/libcxx/include" -isystem "$lib/libcxxabi/include" \
        -D_LIBCPP_ABI_VERSION=1 -D_LIBCPP_ABI_NAMESPACE=__1 -D_LIBCPP_HAS_THREADS=1 -D_LIBCPP_HAS_THREAD_API_PTHREAD=1 \
        -D_LIBCPP_HAS_THREAD_API_EXTERNAL=0 -D_LIBCPP_HAS_THREAD_API_C11=0 -D_LIBCPP_HAS_MONOTONIC_CLOCK=1 \
        -D_LIBCPP_HAS_TERMINAL=1 -D_LIBCPP_HAS_MUSL_LIBC=0 -D_LIBCPP_HAS_VENDOR_AVAILABILITY_ANNOTATIONS=0 \
        -D_LIBCPP_HAS_FILESYSTEM=1 -D_LIBCPP_HAS_RANDOM_DEVICE=1 -D_LIBCPP_HAS_LOCALIZATION=1 -D_LIBCPP_HAS_UNICODE=1 \
        -D_LIBCPP_HAS_WIDE_CHARACTERS=1 -D_LIBCPP_HAS_TIME_ZONE_DATABASE=0 -D_LIBCPP_PSTL_BACKEND_SERIAL \
        -D_LIBCPP_HARDENING_MODE=_LIBCPP_HARDENING_MODE_NONE -D_LIBCPP_DISABLE_VISIBILITY_ANNOTATIONS \
        -D_LIBCPP_ASSERTION_SEMANTIC_DEFAULT=_LIBCPP_ASSERTION_SEMANTIC_IGNORE -D_LIBCXXABI_DISABLE_VISIBILITY_ANNOTATIONS "$@"
fi
exec "$zig" clang --target=wasm32-wasip1 -nostdinc -fvisibility=hidden -mexception-handling -mnontrapping-fptoint -msign-ext \
    -mbulk-memory -mmutable-globals -D_WASI_EMULATED_SIGNAL -D_WASI_EMULATED_MMAN -D_WASI_EMULATED_GETPID \
    -D_WASI_EMULATED_PROCESS_CLOCKS "$@" -fno-pic -isystem "$lib/include" -isystem "$lib/libc/include/wasm-wasi-musl" \
    -isystem "$lib/libc/include/generic-musl"
