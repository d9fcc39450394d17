"""Layouts in words, figures by name."""

import pytest

from backends.engine.planning.question import ParallelLayout, PlanFigure, value


def test_a_layout_is_named_as_people_name_it():
    named = [str(ParallelLayout(*sizes)) for sizes in ((1, 1), (2, 1), (1, 4), (4, 2))]
    assert named == ["1 GPU", "TP2", "PP4", "TP4 x PP2"]
    assert ParallelLayout(4, 2).gpus == 8


def test_a_figure_is_found_by_its_name():
    figures = (PlanFigure("a", 1.0, "s", "1"), PlanFigure("b", 2.0, "s", "2"))
    assert value(figures, "b") == 2.0
    with pytest.raises(StopIteration):
        value(figures, "c")
