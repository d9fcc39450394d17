"""The host's table: shared between processes, kept over restarts, named for people."""

import pytest

from gateway.fleet.estimate_table import HEAD_CELLS, NAME_BYTES, SWEEP_S, EstimateTable
from router.estimator_rules import UNUSED_S
from router.target_prompts import PromptOverrun

KEY = ("chat", "search")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "estimates"


@pytest.fixture
def open_table(path):
    opened = []

    def make(slots: int = 64) -> EstimateTable:
        opened.append(EstimateTable(path, slots))
        return opened[-1]

    yield make
    for table in opened:
        table.close()


def teach(table: EstimateTable, key=KEY, now_s: float = 10.0) -> None:
    for _ in range(300):
        assert table.ratio.observe(key, 3000, 1000, now_s) is None


def test_it_is_private_and_kept_for_the_next_process(open_table, path) -> None:
    first = open_table()
    teach(first)
    known = first.ratio.estimate(KEY, 3000)
    assert known[0] == pytest.approx(1000, rel=0.02)
    assert path.stat().st_mode & 0o777 == 0o600
    assert open_table().ratio.estimate(KEY, 3000) == known


def test_workers_learn_from_each_other(open_table) -> None:
    first, second = open_table(), open_table()
    teach(first)
    teach(second)
    (known,) = first.known()
    assert (known.model, known.team, known.observations) == ("chat", "search", 600)
    assert known.bytes_per_token == pytest.approx(3, rel=0.02)
    assert (known.template_tokens, known.seen_s) == (64, 10.0)


def test_of_another_layout_nothing_is_believed(open_table, path) -> None:
    teach(open_table())
    assert open_table(32).known() == []
    path.write_bytes(b"\xff" * path.stat().st_size)
    assert open_table().known() == []


def test_a_name_that_is_too_long_is_learned_by_and_not_shown(open_table) -> None:
    table, long = open_table(), ("m" * NAME_BYTES, "search")
    teach(table, long)
    assert table.ratio.estimate(long, 3000)[0] == pytest.approx(1000, rel=0.02)
    assert [known[:2] for known in table.known()] == [(None, None)]
    teach(table, ("模型", "équipe"))
    assert [known[:2] for known in table.known()] == [(None, None), ("模型", "équipe")]


def test_one_of_all_processes_lets_it_age_once_in_a_while(open_table) -> None:
    first, second = open_table(), open_table()
    teach(first)
    assert first.sweep(SWEEP_S)
    assert not second.sweep(SWEEP_S * 1.5)
    assert second.sweep(UNUSED_S + 10.0)
    assert first.known() == []
    assert first.sweep(5.0)  # the clock was set back


def test_targets_are_known_by_name_with_all_that_was_learned(open_table) -> None:
    table = open_table()
    table.target_output.observe_overrun("p/m", 500, 1.0)
    for target in ("p/m", "p/n", "p/" + "n" * NAME_BYTES):
        table.target_prompts.observe(target, PromptOverrun(pictures=3.0), 1.0)
    known = open_table().known_targets()
    assert set(known) == {"p/m", "p/n", None}
    assert known["p/m"].output.allowance_tokens == 1000
    assert known["p/n"].output is None
    assert {told.prompts.overrun.pictures for told in known.values()} == {6.0}
    assert table.sweep(UNUSED_S + 10.0)
    assert table.known_targets() == {}


def test_the_newest_reset_is_kept(open_table) -> None:
    open_table().reset_to(7)
    assert open_table().reset == 7
    assert HEAD_CELLS >= 3
