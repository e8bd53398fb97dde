"""The program `ftax` of the wheel. A package of its own: starting the program imports neither ftax nor numpy."""

import os
import sys


def main() -> None:
    """Becomes the program. Frameworks are measured in the Python that it is installed in, unless FTAX_PYTHON names another."""
    os.environ.setdefault("FTAX_PYTHON", sys.executable)
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "ftax")
    os.execv(program, [program, *sys.argv[1:]])
