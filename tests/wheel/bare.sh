#!/bin/sh
# bare.sh WHEEL FOLDER: installs the wheel into a minimal Debian that has Python and nothing of the build (a chroot in FOLDER, kept
# for the next time), and runs bare_test.py there.
set -eu
wheel=$1
folder=$2
source=$(dirname "$0")

case $wheel in # Debian's release with a Python that the wheel is for
    *-abi3-*) release=trixie; version=3.13 ;;
    *-cp311-*) release=bookworm; version=3.11 ;;
    *) echo "bare.sh: no Debian has the Python of $wheel; tested are wheels of Python 3.11 and, from 3.12 on, those for all later" >&2; exit 1 ;;
esac
root=$folder/$release
as_root=
[ "$(id -u)" -eq 0 ] || as_root=sudo
if [ ! -e "$root/etc/debian_version" ]; then
    echo "Making a bare Debian $release in $root"
    $as_root mmdebstrap --quiet --variant=minbase --include=python3-venv "$release" "$root"
fi
python3 -m pip download --quiet --disable-pip-version-check --only-binary=:all: --python-version "$version" --no-deps \
        --platform manylinux_2_28_x86_64 --platform manylinux_2_27_x86_64 --platform manylinux2014_x86_64 \
        --dest "$folder/numpy-$version" 'numpy<3'
$as_root rm -rf "$root/test"
$as_root mkdir -p "$root/test"
$as_root cp "$wheel" "$folder/numpy-$version"/*.whl "$source/bare_test.py" "$source/../../examples/anchor.csv" "$root/test"
$as_root unshare --mount sh -c '
    mount -t proc proc "$1/proc"
    exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin chroot "$1" sh -ec "
        python3 -m venv --clear /test/venv
        /test/venv/bin/pip install --quiet --no-index --find-links /test ftax
        cd /test && PATH=/test/venv/bin:\$PATH exec python bare_test.py"' sh "$root"
"$source/../hardening/check.sh" $(find "$root/test/venv/lib" -path '*ftax_program/ftax*' -type f -perm -100 -o -name '_ftax*.so')
