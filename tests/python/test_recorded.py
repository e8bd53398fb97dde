"""What the package returns or raises for expressions over its whole interface: recorded.tsv holds them with their results, numbers
to six digits. FTAX_UPDATE_GOLDEN=1 records what they give now; commit that with the change that is the cause."""

import dataclasses
import hashlib
import json
import os
import pickle
import re
import warnings
from pathlib import Path

import ftax
import numpy as np
import pytest

TABLE = Path(__file__).with_name("recorded.tsv")
ROOT = Path(__file__).parents[2]
ROWS = [line.split("\t") for line in TABLE.read_text().splitlines()]
LONGEST = 300


def plain(value):
    """A value as JSON can hold it, numbers rounded."""
    if dataclasses.is_dataclass(value):
        return plain(dataclasses.asdict(value))
    if isinstance(value, dict):
        return {str(key): plain(held) for key, held in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, (list, tuple, set)):
        return [plain(held) for held in value]
    if isinstance(value, (float, np.floating)):
        return float(f"{value:.6g}")
    if isinstance(value, str):
        return value.replace(str(ROOT), "ROOT")
    return value if isinstance(value, (int, bool, type(None))) else repr(value)


def text_of(expression, names):
    """What an expression gives and warns of; a long result as its beginning and a digest."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = json.dumps(plain(eval(expression, names)), sort_keys=True, ensure_ascii=False)
        except Exception as error:
            message = re.sub(r"(?s)incompatible function arguments.*", "incompatible function arguments", str(error))
            result = f"{type(error).__name__} {getattr(error, 'code', '')}: {plain(message)}"
    text = "; ".join([result, *(f"warning {plain(str(one.message))}" for one in caught)]).replace("\n", "⏎").replace("\t", " ")
    return text if len(text) <= LONGEST else f"{text[:LONGEST - 60]}… {hashlib.sha256(text.encode()).hexdigest()[:12]}"


def chain(*steps):
    """A graph of builder calls: each is a method, then its arguments; "@" is the result before, "@0" the input."""
    net = ftax.GraphBuilder("chain")
    results = [net.input("x", ["batch", "8", "16", "16"])]
    for method, *arguments in steps:
        held = [results[int(a[1:] or -1)] if isinstance(a, str) and a.startswith("@") else a for a in arguments if not isinstance(a, dict)]
        options = next((a for a in arguments if isinstance(a, dict)), {})
        results.append(getattr(net, method)(*held, **options))
    return net.finish([results[-1]]).to_text()


@pytest.fixture
def names(tiny, widths, monkeypatch):
    monkeypatch.chdir(ROOT)
    llm = dict(model="llama-3-8b", device="h100-sxm5-80gb", framework="vllm@0.11")
    return {"ftax": ftax, "np": np, "pickle": pickle, "tiny": tiny, "widths": widths, "chain": chain, "llm": llm,
            "digest": lambda text: hashlib.sha256(text.encode()).hexdigest()[:12]}


@pytest.mark.parametrize("expression", [row[0] for row in ROWS])
def test_results_are_those_recorded(expression, names):
    found = text_of(expression, names)
    if os.environ.get("FTAX_UPDATE_GOLDEN"):
        recorded = [[row[0], found] if row[0] == expression else row for row in ROWS]
        ROWS[:] = recorded
        TABLE.write_text("".join("\t".join(row) + "\n" for row in recorded))
    else:
        assert found == dict(row[:2] for row in ROWS if len(row) > 1).get(expression)
