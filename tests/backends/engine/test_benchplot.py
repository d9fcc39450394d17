"""The plot: whole SVG, a dot a run, nothing of the model's name taken as markup."""

from xml.etree import ElementTree as ET

from backends.engine.benchfigures import BenchSlo, RequestSample
from backends.engine.benchload import PromptShape, closed_load
from backends.engine.benchplot import svg
from backends.engine.benchreport import BenchReport, run_of


def bench(*loads: int, model: str = "m") -> BenchReport:
    runs = [
        run_of(
            closed_load(load, 2, PromptShape(8, 8)),
            [RequestSample(0.0, 8, 8, 0.1, 0.1 + load / 10)],
            BenchSlo(),
        )
        for load in loads
    ]
    return BenchReport({"model": model, "url": "u"}, BenchSlo(), tuple(runs))


def test_each_run_is_a_dot_in_each_panel():
    tree = ET.fromstring(svg(bench(1, 4, 16)))
    assert len(tree.findall(".//{*}circle")) == 9
    assert len(tree.findall(".//{*}polyline")) == 3
    for dot in tree.findall(".//{*}circle"):
        assert 0 <= float(dot.get("cx")) <= 720


def test_a_bench_without_answers_and_a_name_with_markup_are_whole():
    assert len(ET.fromstring(svg(BenchReport({"model": "<b>&"}, BenchSlo(), ()))))
    assert "<b>" not in svg(bench(1, model="<b>&"))
