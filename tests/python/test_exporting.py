"""The recipes of docs/exporting.md, one after another as a reader runs them. They need torch."""

import pathlib
import re

import ftax
import pytest

pytest.importorskip("torch", exc_type=ImportError)
PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "exporting.md"


def test_recipes(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = {}
    for recipe in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL):
        exec(recipe, names)  # our own page
    assert {"image.pt2", "encoder.pt2", "step.pt2"} <= {path.name for path in tmp_path.iterdir()}
    assert len(re.findall(r"\d to \d", capsys.readouterr().out)) == 9  # intervals, hosts of three tables, and one in the first decision
    assert ftax.load_graph("step.pt2").symbols == ["batch", "past"]
    short, long = (ftax.predict("step.pt2", "t4", batch=64, past=past)[0].device_s for past in (128, 8192))
    assert short < long
