#!/bin/sh
# venv.sh FOLDER [FILE]: makes a virtual environment with the packages of FILE (requirements.txt here), or leaves it when it has them.
set -eu
venv=$1
requirements=${2:-$(dirname "$0")/requirements.txt}

if cmp -s "$requirements" "$venv/requirements.txt"; then
    exit 0
fi
echo "Installing the packages of $requirements into $venv"
python3 -m venv "$venv"
"$venv/bin/python" -m pip install --no-compile --quiet --disable-pip-version-check --require-hashes --only-binary :all: --requirement "$requirements"
cp "$requirements" "$venv/requirements.txt"
