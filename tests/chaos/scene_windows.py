"""L7, L8: windows end while attempts are open, and the clock jumps: each counts where it was held.

A writer with its desk, two workers' desk clients and their journals, on a clock that is moved by
hand: holds of the evening are settled after midnight, in any order, beside holds of the new day.
"""

import asyncio
import random
from collections import Counter
from pathlib import Path

import msgspec
from scene import Given, Scene, SceneFigures
from sqlalchemy import insert, text
from stage import Stage

from ledger.budgets.client import BudgetClient
from ledger.database import make_engine, migrate
from ledger.journals.journal import JournalWriter
from ledger.journals.records import AttemptOpened, AttemptSettled, Hold, TokenCounts
from ledger.orm import tables as orm
from ledger.prices.book import Price, PriceTerms, rates_from
from ledger.verify.checks import verify
from ledger.writer import DESK_SOCKET, LedgerWriter

ROUNDS, SETTLES = 100, 1_000
DAY_S = 86_400
EVENING_S = 1_774_483_200 + DAY_S - 60  # 2026-03-26, a minute before midnight UTC
BUDGET = "team:t@day"
BOUND, LIMIT = 1_000, 10**9
PRICE = Price(1, "p/m", "chaos", 0, PriceTerms(rates_from({"input": 1, "output": 1})))


def opened(name: str, at_us: int, holds: tuple[Hold, ...]) -> AttemptOpened:
    who = ("k", None, "t", "o", "chat", True, "m", "p/m", "api", None, None, "p", "m", False)
    why = ("d", "v", "cheapest", None, 1, BOUND, 9)
    return AttemptOpened(name, name[:-2], 1, at_us, *who, *why, holds=holds)


def settled(name: str, at_us: int, cost: int) -> AttemptSettled:
    tokens = TokenCounts(cost)  # at a pico-USD each
    return AttemptSettled(name, at_us, "finished", 200, tokens, "reported", cost, 1, 2)


class Night:
    """One ledger; `turn` plays one midnight after the other. `truth`: spending by window."""

    def __init__(self, folder: Path, url: str, rng: random.Random, *, broken: bool) -> None:
        self.folder, self.rng, self.broken = folder, rng, broken
        self.engine = make_engine(url, keep_open=True)
        self.now_s = EVENING_S
        self.truth: Counter[int] = Counter()
        self.names: set[str] = set()
        self.backwards = 0
        with self.engine.begin() as connection:
            connection.execute(insert(orm.BudgetRow), [{
                "id": BUDGET, "scope": "team:t", "period": "day", "limit_pusd": LIMIT,
                "hard": True, "timezone": "UTC", "created_us": 0,
            }])  # fmt: skip
            connection.execute(insert(orm.PriceVersionRow), [{
                "version": 1, "name": "p/m", "since_us": 0, "source": "", "recorded_us": 0,
                "price": msgspec.to_builtins(PRICE),
            }])  # fmt: skip

    def now_us(self) -> int:
        return self.now_s * 10**6

    async def play(self, rounds: int, settles: int, say: object) -> None:
        writer = LedgerWriter(
            self.engine, journals=self.folder / "journal", run_dir=self.folder / "run", host="h",
            now_us=self.now_us,
        )  # fmt: skip
        stop = asyncio.Event()
        running = asyncio.create_task(writer.run(stop))
        workers = []
        for name in ("w0", "w1"):
            journal = JournalWriter(self.folder / "journal", name)
            desk = BudgetClient(
                self.folder / "run" / DESK_SOCKET, worker=name, journal=journal.name,
                now_us=self.now_us,
            )  # fmt: skip
            await desk.connect()
            workers.append((desk, journal))
        for number in range(rounds):
            await self.turn(number, settles, workers)
            if (number + 1) % 10 == 0:
                say(f"{number + 1} of {rounds} midnights")
        for desk, journal in workers:
            await desk.aclose()
            journal.close()
        stop.set()
        await running

    async def turn(self, number: int, settles: int, workers: list) -> None:
        midnight = EVENING_S + 60 + number * DAY_S
        self.now_s = midnight - 60
        open_: list[tuple[str, int, object, JournalWriter, Hold]] = []
        for place in range(settles):
            if place == settles // 2:
                self.now_s = midnight + self.rng.choice((0, 1, 30, 3_600))
            if place == settles * 3 // 4:  # an hour back, and on again
                self.now_s -= 3_600
                self.backwards += 1
            if place == settles * 7 // 8:
                self.now_s += 3_600
            desk, journal = self.rng.choice(workers)
            name = f"n{number}-{place}.1"
            holds = await desk.hold(name, ["team:t"], BOUND)
            if not isinstance(holds, tuple):
                continue
            journal.append(opened(name, self.now_us(), holds))
            open_.append((name, self.rng.randrange(BOUND), desk, journal, holds[0]))
            if place > settles // 2 and self.rng.random() < 0.5:
                self._settle(open_.pop(self.rng.randrange(len(open_))))
        self.rng.shuffle(open_)
        for item in open_:
            self._settle(item)

    def _settle(self, pair: tuple) -> None:
        name, cost, desk, journal, hold = pair
        journal.append_ending(settled(name, self.now_us(), cost))
        desk.release(name, cost)
        self.names.add(name)
        window = self.now_s // DAY_S * DAY_S if self.broken else hold.window
        self.truth[window] += cost


def play(given: Given) -> SceneFigures:
    found, rounds = SceneFigures(), given.of(ROUNDS)
    settles = SETTLES if given.scale >= 0.05 else 100
    with Stage(given) as stage:
        url = stage.new_url("night.db")
        migrate(url)
        night = Night(stage.folder, url, given.rng, broken=given.broken)
        asyncio.run(night.play(rounds, settles, given.say))
        with night.engine.connect() as connection:
            spent = {row[0]: int(row[1]) for row in connection.execute(text(
                'SELECT "window", spent_pusd FROM budget_windows WHERE spent_pusd > 0'
            ))}  # fmt: skip
            names = list(connection.execute(text("SELECT attempt_id FROM attempts")).scalars())
            findings = verify(connection).findings
        night.engine.dispose()
    found.size = f"{rounds} midnights, {len(night.names)} settles, {night.backwards} jumps back"
    found.lost = len(night.names - set(names))
    found.duplicated = len(names) - len(set(names))
    windows = {*spent, *night.truth}
    found.difference_pusd = sum(
        abs(spent.get(window, 0) - night.truth[window]) for window in windows
    )
    found.overspent_pusd = max(0, *(pusd - LIMIT for pusd in spent.values()))
    found.figures["windows"] = len(windows)
    found.expect("verify findings", len(findings), holds=not findings)
    return found


SCENES = (
    Scene(
        "L8", "L7, L8", "windows end between hold and settle; the clock jumps", play,
        "counted where it is settled",
    ),
)  # fmt: skip
