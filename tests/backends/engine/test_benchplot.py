"""The plot: whole SVG, a dot a run, nothing of the model's name taken as markup."""

from xml.etree import ElementTree as ET

from backends.engine.benchfigures import Promise, Sample
from backends.engine.benchload import Shape, closed
from backends.engine.benchplot import svg
from backends.engine.benchreport import Bench, run_of


def bench(*loads: int, model: str = "m") -> Bench:
    runs = [
        run_of(closed(load, 2, Shape(8, 8)), [Sample(0.0, 8, 8, 0.1, 0.1 + load / 10)], Promise())
        for load in loads
    ]
    return Bench({"model": model, "url": "u"}, Promise(), tuple(runs))


def test_each_run_is_a_dot_in_each_panel():
    tree = ET.fromstring(svg(bench(1, 4, 16)))
    assert len(tree.findall(".//{*}circle")) == 9
    assert len(tree.findall(".//{*}polyline")) == 3
    for dot in tree.findall(".//{*}circle"):
        assert 0 <= float(dot.get("cx")) <= 720


def test_a_bench_without_answers_and_a_name_with_markup_are_whole():
    assert ET.fromstring(svg(Bench({"model": "<b>&"}, Promise(), ())))
    assert "<b>" not in svg(bench(1, model="<b>&"))
