"""Whole numbers as people hand them over."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ._ftax import UsageError


def whole(argument: str, value: Any) -> int:
    """The number, as it stands: 1.5 and True are mistakes, not batches."""
    if isinstance(value, (bool, np.bool_)):
        raise UsageError(f"{argument} must be a whole number, not {value!r}")
    try:
        return operator.index(value)
    except TypeError:
        raise UsageError(f"{argument} must be a whole number, not {value!r}") from None


def wholes(argument: str, values: Any) -> list[int]:
    """The numbers of a list, an array, or one alone."""
    alone = isinstance(values, str) or not np.iterable(values)
    return [whole(argument, value) for value in ([values] if alone else values)]
