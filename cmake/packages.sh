#!/bin/sh
# packages.sh GROUP...: installs the Debian or Ubuntu packages of the groups that are missing, and says which.
set -eu

for group in "$@"; do
    case $group in
        program) set -- "$@" g++ cmake ninja-build pkg-config libfmt-dev nlohmann-json3-dev libcli11-dev libzip-dev libeigen3-dev ;;
        fit) set -- "$@" libceres-dev ;;
        tests) set -- "$@" doctest-dev libonnx-dev libonnx-testdata libprotobuf-dev protobuf-compiler libseccomp-dev mold strace valgrind
               # The test of the pages is skipped elsewhere: Ubuntu's Chromium is a snap.
               if grep -qx 'ID=debian' /etc/os-release; then set -- "$@" chromium-headless-shell; fi ;;
        python) set -- "$@" python3-dev python3-venv ;;
        wheel) set -- "$@" mmdebstrap ;;
        fuzz) set -- "$@" clang libclang-rt-dev libonnx-testdata mold ;;
        benchmarks) set -- "$@" libbenchmark-dev ;;
        coverage) set -- "$@" gcovr ;;
        *) echo "packages.sh: unknown group $group" >&2; exit 2 ;;
    esac
    shift
done

if ! command -v apt-get >/dev/null; then
    echo "This is neither Debian nor Ubuntu; the build needs the counterparts of: $*" >&2
    exit 0
fi
missing=
for package in "$@"; do
    case $(dpkg-query -W -f '${Status}' "$package" 2>/dev/null) in
        *" installed") ;;
        *) missing="$missing $package" ;;
    esac
done
[ -n "$missing" ] || exit 0

as_root=
[ "$(id -u)" -eq 0 ] || as_root=sudo
if [ -n "$as_root" ] && ! command -v sudo >/dev/null; then
    echo "Please install as root: apt-get install --no-install-recommends$missing" >&2
    exit 1
fi
echo "Installing with apt:$missing"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! { $as_root apt-get update && $as_root env DEBIAN_FRONTEND=noninteractive \
           apt-get install -y --no-install-recommends -o DPkg::Lock::Timeout=300 $missing; } >"$log" 2>&1; then
    cat "$log" >&2
    exit 1
fi
