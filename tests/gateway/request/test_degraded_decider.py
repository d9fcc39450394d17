"""Deciding goes on while telemetry is silent and where a decision fails, and an alarm says so."""

import logging
import os
import signal
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from gateway.fleet.shared_load import SharedLoadTable
from gateway.host import watchdog
from gateway.request.degraded_decider import DegradedDecider
from gateway.table_layout import EngineCell, TableLayout
from gateway.telemetry.metrics.requests import RequestMetrics
from router.request_kinds import RequestKind
from router.types import Candidate, EngineState, OutputMoments, Policy, RoutingRequest, TargetHealth

NOW_S = 100.0
ASKED = RoutingRequest(RequestKind.CHAT, "m", 100, 100, 50, OutputMoments(0, 50.0, 2500.0, 50.0))
RULE = Policy("p")


def engine(health: TargetHealth = TargetHealth.UNKNOWN, age_s: float = 12.0) -> Candidate:
    state = EngineState(
        health, None, 1, 0, 100.0, 0.0, 10_000, 100.0, 0.0, 16, 64, 2048, age_s=age_s
    )
    kinds = frozenset({RequestKind.CHAT})
    return Candidate("pool:a/0", "a", frozenset(), kinds, 8192, True, 0, 0, engine=state)


class ToldCounters:
    def __init__(self, folder, decide) -> None:
        self.board = SharedLoadTable(
            folder / "board", TableLayout(workers=1, engines=("pool:a/0",), apis=())
        )
        self.registry = CollectorRegistry()
        metrics = RequestMetrics(self.registry, models=(), targets=())
        self.metrics, self.failsafe = metrics, DegradedDecider(self.board, metrics, decide)

    def decide(self, candidate: Candidate, now_s: float = NOW_S):
        decision, static = self.failsafe.decide(ASKED, RULE, [candidate], now_s)
        return decision.order[0].detail if decision.order else "nobody", static

    def counted(self, cause: str) -> float | None:
        self.metrics.flush()
        name = "breakeven_static_decisions_total"
        return self.registry.get_sample_value(name, {"cause": cause})


@pytest.fixture
def told(tmp_path):
    made = []

    def make(decide=None):
        from router.decide import decide as usual  # noqa: PLC0415  (the one that is replaced)

        made.append(ToldCounters(tmp_path, decide or usual))
        return made[-1]

    yield make
    for made_value in made:
        made_value.board.close()


@pytest.mark.parametrize(
    ("silent_s", "candidate", "found"),
    [
        (11.0, engine(), ("telemetry is silent", True)),
        (0.2, engine(), ("nobody", False)),  # the engine does not answer: its own fault
        (11.0, engine(age_s=float("inf")), ("nobody", False)),  # never seen
        (11.0, engine(TargetHealth.DOWN), ("nobody", False)),
    ],
)
def test_only_our_own_blindness_changes_the_order(told, silent_s, candidate, found) -> None:
    line = told()
    line.board.record_alive(NOW_S - silent_s)
    assert line.decide(candidate) == found
    assert line.counted("telemetry") == (1.0 if found[1] else 0.0)


def test_before_its_first_word_telemetry_is_not_silent(told) -> None:
    assert told().decide(engine()) == ("nobody", False)


def test_a_defect_in_deciding_costs_no_answer(told, caplog) -> None:
    def broken(*_):
        raise ZeroDivisionError("a defect")

    line = told(broken)
    with caplog.at_level(logging.ERROR):
        for second in range(70):
            assert line.decide(engine(), NOW_S + second) == (
                "deciding failed: ZeroDivisionError", True,
            )  # fmt: skip
    assert line.counted("decision") == 70.0
    assert len(caplog.records) == 2  # once a minute
    assert "a defect" in caplog.records[0].getMessage()


def test_a_cell_that_is_no_number_is_an_engine_nobody_sees(stack) -> None:
    assert stack.chat("chat", max_tokens=2).headers["x-breakeven-backend"] == "pool:main/0"
    cell = stack.board.published_row(0) + EngineCell.KV_CAPACITY_TOKENS
    stack.call(_held(stack))
    try:
        before, stack.board.cells[cell] = stack.board.cells[cell], float("nan")
        assert stack.chat("chat", max_tokens=2).headers["x-breakeven-backend"] == "alpha/m"
        stack.board.cells[cell] = before
    finally:
        stack.call(_followed(stack))


async def _held(stack) -> None:
    """Nobody publishes."""
    stack._telemetry.cancel()


async def _followed(stack) -> None:
    stack.follow()


def reason(answer) -> str:
    """Of `own:cheapest ttft=24ms`; of a refusal none."""
    return answer.headers.get("x-breakeven-decision", "").partition(" ")[0].partition(":")[2]


def test_a_silent_telemetry_costs_no_answer_and_is_started_again(make_host, patiently) -> None:
    """Requests go on with own engines alone, by the configured order, until it speaks again."""
    host = make_host(telemetry={"scrape_s": 0.1, "stale_s": 2})
    host.start()
    (pid,) = host.pids("gateway.host.telemetry")
    # The parent would start telemetry again before a busy machine has done all that is asked here.
    os.kill(host.process.pid, signal.SIGSTOP)
    os.kill(pid, signal.SIGSTOP)
    patiently(lambda: host.metric("breakeven_telemetry_silent_seconds") > 2.0)
    patiently(lambda: reason(host.ask()) == "static")
    answers = [host.ask() for _ in range(20)]
    assert {answer.status_code for answer in answers} == {200}
    assert set(map(reason, answers)) == {"static"}
    patiently(lambda: host.metric("breakeven_static_decisions_total") >= 20)  # workers write theirs
    os.kill(host.process.pid, signal.SIGCONT)
    patiently(lambda: not Path(f"/proc/{pid}").exists(), 3 * watchdog.HUNG_S)
    patiently(lambda: host.pids("gateway.host.telemetry"))
    patiently(lambda: reason(host.ask()) in ("cheapest", "only"))
