"""Telemetry on a live host: health, steps and samples published; blind and gone engines seen."""

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest
from msgspec.structs import replace
from sqlalchemy import text

from backends import health
from backends.engine.probes import ProbeCost
from backends.enginesample import ProbeFailed
from backends.errors import UpstreamUnreachable
from backends.health import HealthState, ProbeResult
from backends.stepmodel import FittedStepModel
from gateway.clock import Clock
from gateway.fleet.measurements import read_measurements
from gateway.fleet.shared_load import SharedLoadTable
from gateway.fleet.target_views import engine_state
from gateway.host import scrape
from gateway.host import telemetry as telemetry_module
from gateway.host.engine_records import reason_of
from gateway.host.operated_samples import apply_overrides
from gateway.host.page_reader import PageText
from gateway.host.scrape import EngineScraper
from gateway.host.stepfits import EngineFit
from gateway.host.telemetry import TelemetryProcess, main
from gateway.table_layout import HEALTHS, EngineCell
from ledger.fleet.samples import FleetSample
from ledger.fleet.use import DOWN
from ledger.overrides import DISABLED, Override
from router.types import TargetHealth


def published(stack, row: int = 0) -> list[float]:
    return stack.board.published(row)


def test_a_healthy_engine_is_published_with_its_step_model(stack) -> None:
    cells = published(stack)
    assert HEALTHS[int(cells[EngineCell.HEALTH])] == "healthy"
    assert cells[EngineCell.KV_CAPACITY_TOKENS] > 900_000
    assert cells[EngineCell.A_S] == pytest.approx(3.347e-3)
    assert cells[EngineCell.CONTEXT_TOKENS] == 131_072
    assert cells[EngineCell.DENSITY_SPREAD] == 1.0  # nothing was asked, so nothing has a price
    assert cells[EngineCell.BID_PRICE_PUSD_PER_S] == 0.0
    assert abs(Clock().now_s() - cells[EngineCell.UPDATED_S]) < 10


def test_capacity_and_catalog_are_stored_once_per_engine(stack, patiently) -> None:
    def stored() -> list:
        with stack.reader.connect() as connection:
            query = text(
                "SELECT c.engine, c.kv_capacity_tokens, c.step_a_s, g.kind, g.gpu_type, g.simulated"
                " FROM capacity c JOIN catalog g ON g.engine = c.engine ORDER BY c.engine"
            )
            return [tuple(row) for row in connection.execute(query)]

    rows = patiently(lambda: found if len(found := stored()) == 2 else [])
    assert rows[1][0] == "pool:main/0"
    assert rows[1][1] > 900_000
    assert rows[1][3:] == ("simulated", "H200", 1)


@pytest.fixture
def watched(stack, tmp_path):
    """A second telemetry with a board of its own, driven by the test."""
    board = SharedLoadTable(tmp_path / "board", stack.runtime.layout)
    yield TelemetryProcess(stack.settings, stack.runtime, board, stack.database, Clock())
    board.close()


class Pages:
    """Answers like an engine's pages: one answer for each path, or an error."""

    def __init__(self, answer: PageText | Exception, **others: PageText) -> None:
        self._answers: dict[str, PageText | Exception] = {"/metrics": answer, **others}
        self.asked: list[str] = []

    async def read(self, path: str) -> PageText:
        self.asked.append(path)
        answer = self._answers[path]
        if isinstance(answer, Exception):
            raise answer
        return answer


def good(text: str) -> PageText:
    return PageText(200, text)


def look(telemetry, answer: PageText | Exception, state=None):
    before = state or health.attached_health(0.0)
    seat, watch = telemetry._seats[0], telemetry._watches[0]
    return asyncio.run(telemetry._scrape_engine(seat, watch, Pages(answer), before))


VLLM = """\
vllm:num_requests_running 1
vllm:num_requests_waiting 0
vllm:num_preemptions_total 0
vllm:prompt_tokens_total 7
vllm:generation_tokens_total 7
vllm:kv_cache_usage_perc 0.5
"""


def test_the_control_of_that_such_a_page_is_healthy(watched) -> None:
    assert look(watched, good(VLLM)).state is HealthState.HEALTHY


@pytest.mark.parametrize("models", [[], {"data": None}, {"data": ["m"]}, {"object": "error"}])
def test_models_that_cannot_be_read_end_no_telemetry(watched, caplog, models) -> None:
    """Every own engine is followed by the one process."""

    async def meet() -> None:
        answers = httpx.MockTransport(lambda _: httpx.Response(200, json=models))
        async with httpx.AsyncClient(transport=answers) as client:
            await watched._meet(watched._seats[0], watched._watches[0], client)

    asyncio.run(meet())
    assert watched._watches[0].step is None
    assert "cannot read the models of an engine" in caplog.text


@pytest.mark.parametrize(
    "answer",
    [
        UpstreamUnreachable("refused"),
        TimeoutError("silent"),
        PageText(500, ""),
        good("vllm:num_requests_running 3\n"),  # no KV gauge: blind
        good("<html>"),
        good(VLLM.replace(" 1\n", " NaN\n")),
        good(VLLM.replace(" 0.5\n", " NaN\n")),
    ],
)
def test_what_cannot_be_read_is_never_healthy(watched, answer) -> None:
    state = look(watched, answer)
    assert state.state is not HealthState.HEALTHY
    assert watched._watches[0].sample is None


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (PageText(404, ""), "refuses: 404 at /metrics"),
        (UpstreamUnreachable("no connection"), "refuses: no connection"),
        (
            good("<html>"),
            "its metrics cannot be read: the metrics page has neither vllm:kv_cache_usage_perc nor",
        ),
    ],
)
def test_an_engine_that_is_not_known_is_told_with_the_reason(watched, caplog, answer, said) -> None:
    """One that was attached in vain was `unknown` for ever, and nothing said why."""
    state = look(watched, answer)
    assert said in reason_of(watched._seats[0], state, 0.0, unmet=False)
    assert f"engine changed engine=pool:main/0 state={state.state} reason={said}" in caplog.text


def test_what_is_said_of_an_engine_that_serves_or_is_not_ours_to_judge(stack) -> None:
    seat, loading = stack.runtime.engines[0], health.starting_health(0.0)
    ours = replace(seat, managed=True)
    assert reason_of(ours, loading, 0.0, unmet=False) == ""
    assert reason_of(ours, loading, 1.0, unmet=False) == "starting"
    assert reason_of(seat, loading, 0.0, unmet=True) == "its step times are not known yet"


@pytest.mark.parametrize(
    ("error", "probe"),
    [
        (TimeoutError(), ProbeResult.SILENT),
        (ProbeFailed("its page is larger than 16 bytes"), ProbeResult.BLIND),
    ],
)
def test_a_page_that_never_ends_is_left(watched, error, probe) -> None:
    """`PageReader` says so; its own tests show that it does."""
    state = look(watched, error)
    assert (state.state, state.last) == (HealthState.UNKNOWN, probe)


TENSORRT_LLM = """\
trtllm_num_requests_running{model_name="m"} 2
trtllm_kv_cache_utilization{model_name="m"} 0.5
trtllm_kv_cache_max_blocks{model_name="m"} 10
trtllm_kv_cache_tokens_per_block{model_name="m"} 32
"""


def test_an_engine_whose_metrics_are_elsewhere_is_asked_there_from_then_on(watched) -> None:
    pages = Pages(good("[]"), **{"/prometheus/metrics": good(TENSORRT_LLM)})

    async def twice() -> None:
        state = health.attached_health(0.0)
        for _ in range(2):
            seat, watch = watched._seats[0], watched._watches[0]
            state = await watched._scrape_engine(seat, watch, pages, state)
        assert state.state is HealthState.HEALTHY

    asyncio.run(twice())
    assert pages.asked == ["/metrics", "/prometheus/metrics", "/prometheus/metrics"]
    sample = watched._watches[0].sample
    assert sample is not None
    assert (sample.dialect, sample.kv_capacity_tokens) == ("tensorrt-llm", 320)


def test_a_way_that_hangs_delays_no_news(stack, watched, monkeypatch) -> None:
    asked: list[str] = []
    here: list[asyncio.AbstractEventLoop] = []

    async def hangs(address: str) -> None:
        if asyncio.get_running_loop() in here:  # the stack's own telemetry asks once a minute, too
            asked.append(address)
        await asyncio.Event().wait()

    monkeypatch.setattr(telemetry_module, "round_trip_s", hangs)
    monkeypatch.setattr(telemetry_module, "WAY_LOOK_S", 0.01)

    async def run() -> None:
        here.append(asyncio.get_running_loop())
        follows = asyncio.create_task(watched.run())
        board = watched._board
        await until(lambda: asked)
        since_s = Clock().now_s()
        await until(lambda: board.published(0)[EngineCell.UPDATED_S] > since_s)
        assert HEALTHS[int(board.published(0)[EngineCell.HEALTH])] == "healthy"
        follows.cancel()
        await asyncio.gather(follows, return_exceptions=True)

    asyncio.run(run())
    assert len(asked) <= len(watched._seats), "one at a time for each engine"


class LockedEngine(BaseHTTPRequestHandler):
    """An engine of embeddings that says nothing to who has no key."""

    def do_GET(self) -> None:
        self.answer({"/metrics": VLLM, "/v1/models": json.dumps({"data": []})}.get(self.path, "{}"))

    def do_POST(self) -> None:
        words = len(self.rfile.read(int(self.headers["content-length"])).split())
        self.answer(json.dumps({"usage": {"prompt_tokens": words}}))

    def answer(self, text: str) -> None:
        proved = self.headers["authorization"] == "Bearer sk-engine"
        self.send_response(200 if proved else 401)
        self.end_headers()
        self.wfile.write(text.encode() if proved else b'{"error": "Unauthorized"}')

    def log_message(self, *_words) -> None:
        pass


@pytest.fixture
def locked() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), LockedEngine) as server:
        threading.Thread(target=server.serve_forever).start()
        yield f"http://127.0.0.1:{server.server_port}/v1"
        server.shutdown()


@pytest.mark.parametrize(("key", "health"), [("sk-engine", "healthy"), ("", "down")])
def test_an_engine_that_asks_for_a_key_is_met_with_it(stack, tmp_path, locked, key, health) -> None:
    seat = replace(stack.runtime.engines[0], base_url=locked, simulated=False)
    settings = deepcopy(stack.settings)
    engine = settings.pools[seat.pool].engine
    object.__setattr__(engine, "api_key_env", "ENGINE_KEY")
    object.__setattr__(engine, "kinds", ("embedding",))
    board = SharedLoadTable(tmp_path / "locked", stack.runtime.layout)
    runtime = replace(stack.runtime, engines=(seat,))
    environ = {"ENGINE_KEY": key}
    telemetry = TelemetryProcess(settings, runtime, board, stack.database, Clock(), environ)

    async def run() -> None:
        follows = asyncio.create_task(telemetry.run())
        await until(lambda: HEALTHS[int(board.published(0)[EngineCell.HEALTH])] == health)
        follows.cancel()
        await asyncio.gather(follows, return_exceptions=True)

    asyncio.run(run())
    board.close()


def test_an_engine_that_cannot_be_measured_is_loading_and_not_asked_all_the_time(
    watched, monkeypatch
) -> None:
    """Each time costs a stranger's engine a request."""
    asked: list[float] = []

    async def cannot(_seat) -> None:
        asked.append(Clock().now_s())

    async def run() -> None:
        follows = asyncio.create_task(watched.run())
        await until(lambda: len(asked) >= 2 * len(watched._seats))
        await asyncio.sleep(1.0)
        assert HEALTHS[int(watched._board.published(0)[EngineCell.HEALTH])] == "loading"
        follows.cancel()
        await asyncio.gather(follows, return_exceptions=True)

    monkeypatch.setattr(watched._fits, "measure_model", cannot)
    monkeypatch.setattr(scrape, "MEET_AGAIN_S", 0.2)
    monkeypatch.setattr(scrape, "MEET_AGAIN_LIMIT_S", 60.0)
    asyncio.run(run())
    assert len(asked) <= 4 * len(watched._seats)


@pytest.fixture
def managed(stack, tmp_path: Path):
    """Telemetry of one seat that `serve` is to run, where the stack's engine answers already."""
    seat = replace(stack.runtime.engines[0], managed=True)
    runtime = replace(stack.runtime, engines=(seat,))
    board = SharedLoadTable(tmp_path / "managed", runtime.layout)
    yield TelemetryProcess(stack.settings, runtime, board, stack.database, Clock()), board
    board.close()


async def until(check, patience_s: float = 20.0) -> None:
    async with asyncio.timeout(patience_s):
        while not check():  # noqa: ASYNC110  (the board sets no event)
            await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    ("stage", "said"),
    [
        ("waiting", "loading"), ("starting", "loading"), ("warming", "loading"),
        ("draining", "draining"), ("backing_off", "down"), ("blocked", "down"), ("stopped", "down"),
    ],
)  # fmt: skip
def test_whatever_answers_on_a_managed_port_counts_for_nothing(managed, stage, said) -> None:
    telemetry, board = managed
    board.publish_stage(0, stage)
    pages, asked = Pages(good(VLLM)), []

    async def follow() -> None:
        transport = httpx.MockTransport(lambda request: asked.append(str(request.url)))
        async with httpx.AsyncClient(transport=transport) as client:
            seat, watch = telemetry._seats[0], telemetry._watches[0]
            task = asyncio.create_task(telemetry._follow(seat, watch, pages, client))
            await until(lambda: HEALTHS[int(board.published(0)[EngineCell.HEALTH])] == said)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    asyncio.run(follow())
    assert pages.asked == asked == []
    assert board.published(0)[EngineCell.A_S] == 0.0


def test_each_life_of_a_managed_engine_is_met_anew(managed, monkeypatch) -> None:
    telemetry, board = managed
    met: list[float] = []
    measure = telemetry._fits.measure_model

    async def counted(seat):
        met.append(board.life(0))
        if len(met) == 2:  # this life ends while it is met
            board.publish_stage(0, "serving", life=3)
        return await measure(seat)

    monkeypatch.setattr(telemetry._fits, "measure_model", counted)

    def healthy(life: float) -> bool:
        cells = board.published(0)
        return (
            HEALTHS[int(cells[EngineCell.HEALTH])] == "healthy"
            and cells[EngineCell.LIFE] == life
            and cells[EngineCell.A_S] > 0.0
        )

    async def lives() -> None:
        task = asyncio.create_task(telemetry.run())
        board.publish_stage(0, "serving", life=1)
        await until(lambda: healthy(1.0))
        board.publish_stage(0, "backing_off")
        await until(lambda: board.published(0)[EngineCell.LIFE] == 0.0)
        assert board.published(0)[EngineCell.A_S] == 0.0
        assert HEALTHS[int(board.published(0)[EngineCell.HEALTH])] == "down"
        board.publish_stage(0, "serving", life=2)
        await until(lambda: healthy(3.0))
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(lives())
    assert met == [1.0, 2.0, 3.0]


def test_samples_reach_the_ledger(stack, watched, monkeypatch) -> None:
    monkeypatch.setattr(telemetry_module, "SAMPLE_S", 0.05)
    healthy = ("pool:main/0", "healthy", 1)

    def samples() -> list[tuple]:
        with stack.reader.connect() as connection:
            query = text("SELECT engine, health, simulated FROM engine_samples")
            return [tuple(row) for row in connection.execute(query)]

    async def some() -> None:
        before = samples().count(healthy)
        task = asyncio.create_task(watched.run())
        await until(lambda: samples().count(healthy) > before)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(some())


@pytest.mark.parametrize("restarted", [True, False])
def test_a_restart_of_telemetry_leaves_its_gap_unobserved(
    stack, watched, monkeypatch, restarted
) -> None:
    """What it finds first would else stand for all the time in which nobody looked.

    Of a host that starts nothing is marked: an engine that loads was not ready before.
    """
    if restarted:
        watched._board.publish(0, {EngineCell.UPDATED_S: 1.0})
    kept: list[FleetSample] = []
    monkeypatch.setattr(watched._backlog, "add", kept.extend)
    watched._mark_gap()
    name = stack.runtime.engines[0].name
    assert [(row.engine, row.health) for row in kept] == [(name, "unknown")] * restarted


def test_a_ledger_that_hangs_holds_up_no_sampling(watched, monkeypatch) -> None:
    monkeypatch.setattr(telemetry_module, "SAMPLE_S", 0.01)
    hangs, rounds = threading.Event(), []
    monkeypatch.setattr(watched._backlog, "flush", lambda _: hangs.wait(30))
    monkeypatch.setattr(watched._backlog, "add", rounds.append)

    async def some() -> None:
        tasks = [asyncio.create_task(work()) for work in (watched._sample, watched._store_samples)]
        await until(lambda: len(rounds) > 5)
        hangs.set()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(some())


def test_an_engine_that_an_operator_took_out_is_drained_in_the_books() -> None:
    """Its time is unavailable then; what nobody asks of an engine that may be asked is idle."""
    rows = [FleetSample(1, "main", f"pool:main/{n}", "healthy") for n in (0, 1)]
    rows.append(FleetSample(1, "main", "pool:main/0", "loading"))
    known = [Override(1, "target:pool:main/0", DISABLED, None, 0, "ann")]
    seen = [apply_overrides(row, known).health for row in rows]
    assert seen == ["draining", "healthy", "loading"]
    assert {"draining", "loading"} <= DOWN


def test_every_argument_is_needed(capsys) -> None:
    with pytest.raises(SystemExit):
        main(["--config", "c"])
    assert "--runtime" in capsys.readouterr().err


def unhealthy(stack, seconds: float) -> int:
    """Looks, a thousand a second, at which the engine could not have been chosen."""
    board, found, ends_s = stack.board, 0, time.monotonic() + seconds
    while time.monotonic() < ends_s:
        state = engine_state(
            board.published(0), board.loads(0), time.monotonic(), 60.0, life=board.life(0)
        )
        found += state.health is not TargetHealth.HEALTHY or state.step is None
        time.sleep(0.001)
    return found


def test_a_restart_of_telemetry_costs_no_capacity(run_stack, patiently, monkeypatch) -> None:
    """The control: one that begins anew has the engine load until it is measured again."""
    with run_stack() as stack:

        async def again() -> None:
            stack._telemetry.cancel()
            await asyncio.gather(stack._telemetry, return_exceptions=True)
            stack.follow()

        def restarted() -> int:
            with ThreadPoolExecutor(1) as pool:  # looks from before it on: it may be soon over
                looking = pool.submit(unhealthy, stack, 1.0)
                stack.call(again())
                return looking.result()

        assert stack.chat("own").status_code == 200
        assert restarted() == 0
        monkeypatch.setattr(EngineScraper, "take_over", lambda *_: False)
        assert restarted() > 0
        patiently(lambda: not unhealthy(stack, 0.1))


@pytest.fixture
def elsewhere(stack, tmp_path: Path):
    """Telemetry of a vLLM that somebody else runs, by the setting; and what it sent to it."""
    made: list[TelemetryProcess] = []

    def make(measure: str) -> tuple[TelemetryProcess, SharedLoadTable, list[float]]:
        seat = replace(stack.runtime.engines[0], simulated=False)
        settings = deepcopy(stack.settings)
        for name, value in (("kind", "vllm"), ("measure", measure)):
            object.__setattr__(settings.pools[seat.pool].engine, name, value)
        runtime = replace(stack.runtime, engines=(seat,), state_dir=str(tmp_path))
        runtime.run_dir.mkdir()
        board = SharedLoadTable(tmp_path / "elsewhere", runtime.layout)
        telemetry = TelemetryProcess(settings, runtime, board, stack.database, Clock())
        asked: list[float] = []

        async def measured(_seat) -> EngineFit:
            asked.append(Clock().now_s())
            step = FittedStepModel(a_s=0.5, b_s=0.0, c_s=0.0, d_s=0.0, t0_s=0.0)
            return EngineFit(step, "1", "measured", read=ProbeCost(3, 20, 10))

        telemetry._fits.measure_model = measured
        made.append(telemetry)
        return telemetry, board, asked

    yield make
    for telemetry in made:
        telemetry._board.close()


@pytest.mark.parametrize(
    ("measure", "is_busy", "first", "last"),
    [
        ("off", False, "assumed", "assumed"), ("off", True, "assumed", "assumed"),
        ("idle", False, "measured", "measured"), ("idle", True, "assumed", "measured"),
        ("always", False, "measured", "measured"), ("always", True, "measured", "measured"),
    ],
)  # fmt: skip
def test_the_setting_says_whether_and_when_an_engine_is_measured(
    elsewhere, monkeypatch, measure, is_busy, first, last
) -> None:
    """One that is not measured serves by what is assumed; measuring takes it out for no moment."""
    telemetry, board, asked = elsewhere(measure)
    busy = [is_busy]
    monkeypatch.setattr(EngineScraper, "is_idle", lambda *_: not busy[0])
    monkeypatch.setattr(scrape, "MEET_AGAIN_S", 0.05)
    run_dir = telemetry._runtime.run_dir

    def is_healthy() -> bool:
        return HEALTHS[int(board.published(0)[EngineCell.HEALTH])] == "healthy"

    async def run() -> None:
        follows = asyncio.create_task(telemetry.run())
        await until(is_healthy)
        assert read_measurements(run_dir)["pool:main/0"].source.startswith(first)
        assert bool(asked) is (first == "measured")
        busy[0] = False
        if first != last:
            await until(lambda: bool(asked))
        await asyncio.sleep(0.5)
        assert is_healthy()
        follows.cancel()
        await asyncio.gather(follows, return_exceptions=True)

    asyncio.run(run())
    assert len(asked) == (last == "measured")
    note = read_measurements(run_dir)["pool:main/0"]
    assert note.source.startswith(last)
    assert (note.setting, note.requests) == (measure, 3 if asked else 0)
    assert (board.published(0)[EngineCell.A_S] == 0.5) is (last == "measured")


def test_an_engine_is_idle_while_neither_we_nor_others_have_work_there(watched) -> None:
    watch = watched._watches[0]
    for page, is_idle in ((VLLM, False), (VLLM.replace("running 1", "running 0"), True)):
        look(watched, good(page))
        assert watch.is_idle(watched._board) is is_idle
