"""Whole numbers as people hand them over."""

from __future__ import annotations

import itertools
import operator
from typing import Any

import numpy as np

from ._ftax import LimitError, UsageError

most = 10_000  # of a list, as on the command line


def whole(argument: str, value: Any) -> int:
    """The number, as it stands: 1.5 and True are mistakes, not batches."""
    if isinstance(value, (bool, np.bool_)):
        raise UsageError(f"{argument} must be a whole number, not {value!r}")
    try:
        number = operator.index(value)
    except TypeError:
        raise UsageError(f"{argument} must be a whole number, not {value!r}") from None
    if number.bit_length() > 63:
        raise UsageError(f"{argument} does not fit into 64 bits")
    return number


def wholes(argument: str, values: Any) -> list[int]:
    """The numbers of a list, an array, or one alone."""
    alone = isinstance(values, str) or not np.iterable(values)
    numbers = [whole(argument, value) for value in itertools.islice([values] if alone else values, most + 1)]
    if len(numbers) > most:
        raise LimitError(f"{argument} lists more than {most} values")
    return numbers
