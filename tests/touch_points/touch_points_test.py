"""Example patches touch as many files as the table of docs/extending.md says.

    touch_points_test.py REPOSITORY

A patch that no longer applies is made again from the same change.
"""
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(sys.argv[1])
FOLDER = Path(__file__).parent
ROW = re.compile(r"^\| .* \| (\d+) \| \[.*\]\(\.\./tests/touch_points/(\w+\.patch)\) \|$", re.M)


def touched(patch):
    """Files that the patch changes, if it applies to the sources."""
    applied = subprocess.run(["git", "apply", "--check", "--numstat", patch], cwd=ROOT, capture_output=True, text=True, check=False)
    return applied.stdout.count("\n") if applied.returncode == 0 else applied.stderr


def main():
    stated = {name: int(files) for files, name in ROW.findall((ROOT / "docs" / "extending.md").read_text())}
    found = {patch.name: touched(patch) for patch in FOLDER.glob("*.patch")}
    if stated != found or not found:
        sys.exit(f"docs/extending.md states {stated}, the patches touch {found}")


main()
