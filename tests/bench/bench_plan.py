"""What planning one request costs a worker: budgets' room, candidates, decision, decision record.

The planner as a worker has it, asked again and again: four engines and four APIs, three hard
budgets on the key's scopes, ten policies of which the last matches. Nothing is sent anywhere, so
there is no bar: it shows where the CPU of a request goes. Figures are CPU time of this thread, as
in `bench_decide`. Writes `build/bench-plan.json`; run it as `python tests/bench/bench_plan.py`.
"""

import asyncio
import gc
import json
import os
import platform
import statistics
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import yaml  # noqa: E402  (after the checkout's packages, as all below)
from ours import CANDIDATES, configuration  # noqa: E402  (as above)

from backends.errors import BackendError  # noqa: E402  (as above)
from gateway.clock import Clock  # noqa: E402  (as above)
from gateway.config.settings import Settings, parse  # noqa: E402  (as above)
from gateway.fleet.candidates import CandidateBuilder  # noqa: E402  (as above)
from gateway.fleet.fleet import Fleet  # noqa: E402  (as above)
from gateway.fleet.shared_load import SharedLoadTable  # noqa: E402  (as above)
from gateway.fleet.target_stats import TargetStats  # noqa: E402  (as above)
from gateway.http.body import decode_members  # noqa: E402  (as above)
from gateway.kinds.chat import read_chat  # noqa: E402  (as above)
from gateway.kinds.inference_request import InferenceRequest  # noqa: E402  (as above)
from gateway.request.admission import BudgetAdmission  # noqa: E402  (as above)
from gateway.request.degraded_decider import DegradedDecider  # noqa: E402  (as above)
from gateway.request.load_tracker import LoadTracker  # noqa: E402  (as above)
from gateway.request.plan import LearnedEstimates, RoutePlanner, RoutingPlan  # noqa: E402  (as above)
from gateway.request.routes import RouteCache  # noqa: E402  (as above)
from gateway.runtime import RuntimePorts, resolve_runtime  # noqa: E402  (as above)
from gateway.table_layout import HEALTHS, EngineCell, LoadCell  # noqa: E402  (as above)
from gateway.telemetry.metrics.requests import RequestMetrics  # noqa: E402  (as above)
from ledger.budgets import broker_protocol as wire  # noqa: E402  (as above)
from ledger.budgets.client import BudgetClient  # noqa: E402  (as above)
from ledger.identity.keyring import Identity  # noqa: E402  (as above)
from ledger.prices.book import Price, PriceBook, PriceTerms, rates_from  # noqa: E402  (as above)
from router.estimates import OutputLengths  # noqa: E402  (as above)
from router.token_ratio import TokenRatio  # noqa: E402  (as above)

BATCHES, ROUNDS = 200, 50
WORKERS = 2
ENGINE = {
    EngineCell.HEALTH: float(HEALTHS.index("healthy")),
    EngineCell.KV_CAPACITY_TOKENS: 480_000.0,
    EngineCell.KV_BLOCK_TOKENS: 16.0,
    # fit of published H100 measurements of an 8B model, 2026-11-20
    EngineCell.A_S: 4.79e-3,
    EngineCell.B_S: 28e-6,
    EngineCell.C_S: 46.8e-9,
    EngineCell.D_S: 27.8e-6,
    EngineCell.T0_S: 13.8e-3,
    EngineCell.MAX_NUM_SEQS: 256.0,
    EngineCell.PREFILL_BUDGET_TOKENS: 2048.0,
    EngineCell.CONTEXT_TOKENS: 32_768.0,
}
SCOPES = ("org:bench", "team:bench", "key:bench")
IDENTITY = Identity(
    key_id="bench", user_id=None, team_id="bench", org_id="bench", scopes=frozenset(["inference"]),
    models=None, residency="any", tags=(), isolation="team",
)  # fmt: skip


async def desk_of(folder: Path) -> BudgetClient:
    """A desk that knows three hard budgets and has lent enough of each for all that follows."""
    news = wire.BudgetUpdate(
        lines=tuple(
            wire.BudgetTerms(f"{scope}@month", scope, "month", "UTC", True, str(10**18))
            for scope in SCOPES
        )
    )

    async def tell(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(wire.frame(news))
        async for payload in wire.payloads(reader):
            asked = wire.REQUESTS.decode(payload)
            if isinstance(asked, wire.LoanRequest):
                writer.write(wire.frame(wire.Loan(asked.number, asked.asks)))
                break
        writer.close()

    socket = folder / "desk"
    server = await asyncio.start_unix_server(tell, str(socket))
    desk = BudgetClient(socket, worker="bench")
    await desk.connect()
    held = await desk.hold("first", SCOPES, 10**17)
    assert isinstance(held, tuple), held
    desk.release("first", 0)
    server.close()
    while desk.connected:  # noqa: ASYNC110  (so that nothing is given back; it tells nobody)
        await asyncio.sleep(0.01)
    await desk.aclose()
    return desk


def board_of(folder: Path, settings: Settings, layout: object) -> SharedLoadTable:
    """Healthy engines with some load, APIs with some experience."""
    board = SharedLoadTable(folder / "board", layout)  # type: ignore[arg-type]  # the runtime's
    now_s = time.monotonic()
    for row in range(len(board.layout.engines)):
        board.publish(row, {**ENGINE, EngineCell.UPDATED_S: now_s + 3600.0})
        for worker in range(WORKERS):
            cells = board.load_row(worker, row)
            board.cells[cells + LoadCell.SEQUENCES] = 5.0 + row
            board.cells[cells + LoadCell.CONTEXT_TOKENS] = 9000.0 + 100 * row
            board.cells[cells + LoadCell.PROMISED_TOKENS] = 14_000.0
    for worker in range(WORKERS):
        experience = TargetStats(board, worker, Clock())
        for row in range(len(board.layout.apis)):
            for _ in range(20):
                experience.api(row, ttft_s=0.4, tpot_s=0.012, ok=True)
    return board


def prices() -> PriceBook:
    return PriceBook(
        Price(
            version=number + 1,
            name=f"api-{number}/mock",
            book="bench",
            effective_from_us=0,
            terms=PriceTerms(rates_from({"input": 10**6 + number, "output": 3 * 10**6 + number})),
        )
        for number in range(CANDIDATES // 2)
    )


@dataclass(frozen=True)
class Parts:
    planner: RoutePlanner
    admission: BudgetAdmission
    flights: LoadTracker

    def begin_and_end(self, plan: RoutingPlan) -> None:
        """What an attempt takes before its dispatch, and gives back."""
        step = plan.step(plan.decision.order[0])
        flight = self.flights.reserve(plan, step, 0.0)
        bound_pusd = step.verdict.candidate.bound_pusd or 0
        with suppress(StopIteration):  # nothing is awaited
            self.admission.hold("req.1", step.scopes, bound_pusd).send(None)
        self.admission.release("req.1", 1)
        if flight is not None:
            flight.release()


def parts_of(folder: Path) -> Parts:
    upstream = list(range(9001, 9001 + CANDIDATES // 2))
    document = configuration(folder, folder / "prices.yaml", upstream, port=8080, workers=WORKERS)
    settings = parse(yaml.safe_dump(document), name="bench.yaml")
    runtime = resolve_runtime(
        settings, RuntimePorts({}, {}), ledger_url="sqlite://", policy_version="bench"
    )
    board = board_of(folder, settings, runtime.layout)
    fleet = Fleet(settings, runtime, lambda *_: RefusingBackend())  # type: ignore[arg-type,return-value]  # nothing is sent
    candidates = CandidateBuilder(board, prices(), stale_s=10.0)
    admission = BudgetAdmission(asyncio.run(desk_of(folder)))
    learned = LearnedEstimates(TokenRatio(), OutputLengths())
    for length in range(50, 400, 5):
        learned.outputs.observe(("mock", "bench"), 500, length)
        learned.ratio.observe(("mock", "bench"), 4 * length, length)
    failsafe = DegradedDecider(board, RequestMetrics(None, models=[], targets=[]))
    routes = RouteCache(settings, fleet, admission)
    planner = RoutePlanner("bench", routes, candidates, learned, failsafe, picture_tokens=0)
    return Parts(planner, admission, LoadTracker(board, 0))


class RefusingBackend:
    """A backend that refuses everything."""

    def exchange(self) -> None:
        raise BackendError("nothing is sent")


def asked() -> InferenceRequest:
    text = {
        "model": "mock",
        "max_tokens": 128,
        "messages": [{"role": "user", "content": "a" * 2000}],
    }
    members = decode_members(json.dumps(text).encode())
    return read_chat(members, max_n=8, session=None)


def measure_us(parts: Parts, *, attempts: bool) -> tuple[list[float], RoutingPlan]:
    """Sorted microseconds per plan, one figure per batch; `attempts`: one begins and ends with it.

    An attempt changes the board, so that the next plan looks at its target anew.
    """
    question, clock = asked(), Clock()

    def plan() -> RoutingPlan:
        made = parts.planner.plan("req", question, IDENTITY, clock=clock, sticky=lambda _: None)
        if attempts:
            parts.begin_and_end(made)
        return made

    found = plan()
    assert len(found.decision.order) == CANDIDATES, found.decision
    batches = []
    for _ in range(BATCHES):
        start = time.thread_time_ns()
        for _ in range(ROUNDS):
            plan()
        batches.append((time.thread_time_ns() - start) / ROUNDS / 1000)
    return sorted(batches), found


def main() -> int:
    machine = f"{os.cpu_count()} cores {platform.machine()}, Python {platform.python_version()}"
    figures = []
    with tempfile.TemporaryDirectory() as folder:
        parts = parts_of(Path(folder))
        gc.disable()
        for what in ("Planner.plan", "Planner.plan, hold, take off, and their end"):
            batches, plan = measure_us(parts, attempts=what != "Planner.plan")
            quiet, middle = batches[BATCHES // 10], statistics.median(batches)
            print(
                f"{what}, {CANDIDATES} candidates, 3 budgets, 10 policies, {WORKERS} workers: "
                f"p10 {quiet:.1f} us, median {middle:.1f} us; record {len(plan.decision_blob)} "
                f"bytes; {machine}"
            )
            figures.append(
                {
                    "figure": f"{what}, {CANDIDATES} candidates",
                    "value": round(quiet, 2),
                    "unit": "us",
                    "note": f"p10 of batches; median {middle:.1f}; {machine}",
                }
            )
    build = ROOT / "build"
    build.mkdir(exist_ok=True)
    (build / "bench-plan.json").write_text(json.dumps(figures, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
