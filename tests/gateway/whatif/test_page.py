"""The report is one file: plots inside, nothing fetched, names from outside escaped."""

import builtins
import re

import pytest

from gateway.whatif.page import PlotsMissingError, page


def test_it_stands_alone(busy) -> None:
    html = page({**busy, "traffic": {**busy["traffic"], "source": "<script>x.csv"}})
    assert html.count("<svg") == 5
    assert "<script" not in html
    assert "&lt;script&gt;x.csv" in html
    assert not re.search(r"(src|href)=", html.replace("xlink:href", ""))
    for figure in ("fixed + $", "Promises kept, by class", "KV cache in use", "requests (", "old"):
        assert figure in html


def test_without_the_drawing_libraries_it_says_how_to_have_them(busy, monkeypatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: object) -> object:
        if name == "vl_convert":
            raise ImportError(name)
        return real(name, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(PlotsMissingError, match=r"breakeven\[dashboard\]"):
        page(busy)
