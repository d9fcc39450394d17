"""A world in virtual time around the real budget code: clients, desks, loans, slices, the fold.

Hosts, workers, sockets, threads and the database are played in memory, so that a schedule decides
what happens next at every commit point: which message arrives, when the database answers and
whether it says so, who dies before or after that. After each step the books are compared with what
truly happened, which is counted apart, in a few lines.
"""

import asyncio
from collections import Counter, defaultdict, deque
from dataclasses import dataclass, field
from pathlib import Path

from schedule_books import HOSTS, Books
from schedule_loop import Loop, Reader, Side

from ledger.budgets.grants import BudgetAccount
from ledger.journals.records import AttemptOpened, AttemptSettled, TokenCounts


@dataclass(eq=False)
class Attempt:
    """What truly happened to it; `counts` is what it may have cost at most."""

    name: str
    worker: "Worker"
    scopes: tuple
    bound: int
    asked_s: int
    task: object = None
    state: str = "asking"  # then held, open, settled, lost, or ended with nothing
    answer: object = None
    holds: tuple = ()
    counts: int = 0
    late: bool = False


@dataclass(eq=False)
class Worker:
    host: "Host"
    journal: str
    client: object
    alive: bool = True
    records: list = field(default_factory=list)
    attempts: list = field(default_factory=list)


@dataclass(eq=False)
class Host:
    name: str
    path: Path
    desk: object = None
    workers: list = field(default_factory=list)  # whose journal is still there
    serving: list = field(default_factory=list)
    links: list = field(default_factory=list)  # of client to desk, desk to client

    @property
    def living(self):
        return [worker for worker in self.workers if worker.alive]


BUDGETS = (
    # id, scope, period, timezone, hard
    ("org:o@day", "org:o", "day", "UTC", True),
    ("team:t@day", "team:t", "day", "Europe/Berlin", True),
    ("key:k@month", "key:k", "month", "UTC", False),
)
DAY_S = 86_400
UTC_FIRST = 1_774_483_200  # 2026-03-26 00:00 UTC
# 2026-03-26 00:00 in Berlin; on the 29th clocks there jump: that day has 23 hours.
BERLIN = [UTC_FIRST - 3600 + day * DAY_S - (3600 if day > 3 else 0) for day in range(14)]
UTC_DAYS = [UTC_FIRST + day * DAY_S for day in range(14)]
MONTHS = [1_772_323_200, 1_775_001_600, 1_777_593_600]  # March, April, May
STARTS = {"org:o@day": UTC_DAYS, "team:t@day": BERLIN, "key:k@month": MONTHS}
ORDER = {"org:o": 0, "team:t": 1, "key:k": 2}
SCOPES = (("org:o", "team:t", "key:k"), ("team:t", "org:o"), ("org:o",), ("team:t", "key:k"))
HARD = {"org:o": "org:o@day", "team:t": "team:t@day"}


ROUNDS = 2000  # of messages without any time passing


def window_of(budget_id, at_s):
    """Start and end, from the table above."""
    starts = STARTS[budget_id]
    place = max(place for place, start in enumerate(starts) if start <= at_s)
    return starts[place], starts[place + 1]


class World:
    """Two hosts with two workers each on one database; `step` does one thing and checks all."""

    def __init__(self, code, rng):
        self.code, self.rng, self.trace = code, rng, []
        self.loop = Loop(self._connect, self._thread)
        self.now_s = UTC_FIRST + rng.choice((2 * DAY_S + 72_000, 5 * DAY_S + 72_000))
        self.last_s = self.now_s + 4 * DAY_S
        limits = {"org:o@day": rng.choice((400, 1000, 20_000)),
                  "team:t@day": rng.choice((300, 1000, 9000)), "key:k@month": 500}  # fmt: skip
        self.books = Books(code, limits, [*BUDGETS])
        self.away = False
        self.jobs = deque()
        self.attempts, self.named = [], {}
        self.number = 0
        self.doomed = []
        self.counted = defaultdict(int)  # by account, and by account and host
        self.overrun = defaultdict(int)
        self.booked = defaultdict(int)
        self.happened = Counter()
        self.hosts = [Host(name, Path(f"{name}.sock")) for name in HOSTS]
        for host in self.hosts:
            self.start_desk(host)
            self.news(host)
            self.start_worker(host)
            self.start_worker(host)
        self.pump()

    # ---- what the code under test stands on

    def _connect(self, path):
        (host,) = [each_host for each_host in self.hosts if str(each_host.path) == path]
        if host.desk is None:
            raise ConnectionRefusedError(path)
        client_reader, desk_reader = Reader(self.loop), Reader(self.loop)
        up, down = Side(desk_reader), Side(client_reader)
        host.links.append((up, down))
        host.serving.append(self.loop.create_task(host.desk._serve(desk_reader, down)))
        return client_reader, up

    def _thread(self, work):
        future = self.loop.create_future()
        self.jobs.append((work.args[2], work, future))
        return future

    def database_answers(self, *, crash=None):
        name, work, future = self.jobs.popleft()
        (host,) = [named for named in self.hosts if named.name == name]
        if crash:
            self.happened[f"writer died {crash} the grant's commit"] += 1
        if crash == "before":
            self.kill_desk(host)
        elif self.away:
            self.happened["the database was away"] += 1
            future.set_exception(OSError("the database is away"))
        else:
            found = work()
            if crash == "after":
                self.kill_desk(host)
            elif not future.done():
                future.set_result(found)

    def sides(self):
        return [side for host in self.hosts for link in host.links for side in link if side.flight]

    def pump(self):
        """Everything arrives and is answered, in order; no time passes."""
        self._run()
        rounds = 0
        while self.jobs or (sides := self.sides()):
            rounds += 1
            assert rounds < ROUNDS, "they talk for ever"
            if self.jobs:
                self.database_answers()
            else:
                for side in sides:
                    side.deliver()
            self._run()
        for host in self.hosts:
            host.links = [link for link in host.links if not (link[0].closed and link[1].closed)]

    def _run(self):
        self.loop.run()
        while self.doomed:
            self.kill_worker(self.doomed.pop())
        assert not self.loop.faults, self.loop.faults
        assert not self.loop.ready, "it runs for ever"

    # ---- births and deaths

    def start_desk(self, host):
        host.desk = self.code.broker.BudgetBroker(self.books, host=host.name, socket=host.path)
        host.desk.restore([worker.journal for worker in host.workers])

    def kill_desk(self, host):
        desk, host.desk = host.desk, None
        for up, down in host.links:
            up.flight.clear()
            up.closed = True
            if not down.closed:
                lost = self.rng.randint(0, len(down.flight))
                self.happened["messages lost"] += lost
                for _ in range(lost):
                    down.flight.pop()
                down.close()
        for _, _, future in [job for job in self.jobs if job[0] == host.name]:
            future.cancel()
        self.jobs = deque(job for job in self.jobs if job[0] != host.name)
        for task in (*desk._borrowing, *host.serving):
            task.cancel()
        host.serving = []
        self._run()

    def start_worker(self, host):
        self.number += 1
        name = f"{host.name}-w{self.number}"
        client = self.code.client.BudgetClient(
            host.path, worker=name, now_us=lambda: self.now_s * 1_000_000
        )
        host.workers.append(Worker(host, name, client))
        self.loop.create_task(client.connect())
        self._run()

    def kill_worker(self, worker):
        worker.alive = False
        if worker.client._writer is not None:
            worker.client._writer.close()
        if worker.client._task is not None:
            worker.client._task.cancel()
        for attempt in worker.attempts:
            if attempt.state == "asking":
                attempt.state = "ended"
                attempt.task.cancel()
            elif attempt.state == "open":
                self.happened["worker died with an open attempt"] += 1
            elif attempt.state == "held":  # never dispatched, never in the journal
                attempt.state = "ended"
                self.happened["worker died between hold and journal"] += 1
                self._count(attempt, 0)
        self._run()

    # ---- attempts

    def ask(self, worker, scopes, bound, *, dies=False):
        self.number += 1
        attempt = Attempt(f"a{self.number}", worker, scopes, bound, self.now_s)
        attempt.task = self.loop.create_task(self._ask(attempt, dies))
        worker.attempts.append(attempt)
        self.attempts.append(attempt)
        self.named[attempt.name] = attempt
        self.loop.run()
        return attempt

    async def _ask(self, attempt, dies):
        try:
            answer = await attempt.worker.client.hold(attempt.name, attempt.scopes, attempt.bound)
        except (self.code.client.BrokerUnavailable, asyncio.CancelledError) as error:
            attempt.state, attempt.answer = "ended", error
            return
        attempt.answer = answer
        try:
            self._judge(attempt, answer)
        except AssertionError as fault:
            self.loop.faults.append(fault)  # a task keeps its faults to itself
        if isinstance(answer, self.code.client.BudgetRefusal):
            attempt.state = "ended"
            return
        attempt.holds, attempt.state = answer, "held"
        self._count(attempt, attempt.bound)
        if dies:
            self.doomed.append(attempt.worker)
        else:
            attempt.state = "open"
            attempt.worker.records.append(
                AttemptOpened(attempt.name, attempt.name, 1, 0, "k", None, "t", "o", "chat", True,
                              "m", "x/m", "api", None, None, "x", "m", False, "p", "1", "cheapest",
                              None, 1, attempt.bound, 1, holds=answer)
            )  # fmt: skip

    def _judge(self, attempt, answer):
        if isinstance(answer, self.code.client.BudgetRefusal):
            self._check_refusal(attempt, answer)
        else:
            self._check_holds(attempt, answer)

    def _check_holds(self, attempt, holds):
        named = []
        for budget_id, scope, _, _, hard in BUDGETS:
            if scope in attempt.scopes:
                start = window_of(budget_id, attempt.asked_s)[0]
                named.append((budget_id, start, attempt.bound if hard else 0))
        assert [(hold.scope, hold.window, hold.amount_pusd) for hold in holds] == named

    def _check_refusal(self, attempt, refusal):
        assert refusal.scope in {HARD[scope] for scope in attempt.scopes if scope in HARD}
        ends = {window_of(refusal.scope, at)[1] for at in (attempt.asked_s, self.now_s)}
        assert refusal.resets_at_us // 1_000_000 in ends

    def _count(self, attempt, counts):
        change, attempt.counts = counts - attempt.counts, counts
        for hold in attempt.holds:
            if hold.amount_pusd:
                account = BudgetAccount(hold.scope, hold.window)
                self.counted[account] += change
                self.counted[account, attempt.worker.host.name] += change

    def settle(self, attempt, cost, *, late=False):
        record = AttemptSettled(
            attempt.name, 1, "finished", 200, TokenCounts(), "reported", cost, 1, 1
        )
        for hold in attempt.holds:
            account = BudgetAccount(hold.scope, hold.window)
            over = max(0, cost - attempt.bound)
            self.happened["settled above the bound"] += over > 0
            self.happened["settled in a window that ended"] += (
                self.now_s >= window_of(hold.scope, hold.window)[1]
            )
            self.overrun[account] += over
            self.overrun[account, attempt.worker.host.name] += over
        self._count(attempt, cost)
        attempt.state, attempt.late = "settled", late
        self.happened["settled late"] += late
        if not late:
            attempt.worker.records.append(record)
            attempt.worker.client.release(attempt.name, cost)
            attempt.worker.client.release(attempt.name, cost)  # a second call changes nothing
            self._run()
        return record

    # ---- the writer's passes

    def apply(self, host, worker, most, *, crash=False):
        since = self.books.positions.get(worker.journal, 0)
        records = worker.records[since : since + most]
        spent = self.books.apply(host.name, worker.journal, records, since + len(records))
        for record in records:
            if isinstance(record, AttemptSettled):
                self._book(record.attempt_id, record.cost_pusd)
        if crash:
            self.happened["writer died between commit and desk"] += 1
            self.kill_desk(host)
        else:
            host.desk.apply_spent(spent)

    def _book(self, name, pusd):
        for hold in self.named[name].holds:
            self.booked[BudgetAccount(hold.scope, hold.window)] += pusd

    def bury(self, host, worker, *, crash=None):
        """Its journal is wholly applied: what is open is lost, then the files go."""
        lost = [attempt for attempt in worker.attempts if attempt.state == "open"]
        spent = self.books.settle_lost(host.name, worker.journal, [named.name for named in lost])
        for named in lost:
            named.state = "lost"
            self._book(named.name, named.bound)
        self.happened["lost at the bound"] += len(lost)
        if crash:
            self.happened[f"writer died {crash} a journal went"] += 1
        if crash == "before":
            self.kill_desk(host)
            return
        host.workers.remove(worker)
        if crash == "after":
            self.kill_desk(host)
            return
        host.desk.apply_spent(spent)
        host.desk.close_journal(worker.journal)

    def settle_late(self, attempt, cost):
        worker = attempt.worker
        record = self.settle(attempt, cost, late=True)
        spent = self.books.apply(worker.host.name, worker.journal, [record])
        self._book(attempt.name, cost - attempt.bound)
        worker.host.desk.apply_spent(spent)

    def replay(self, host, worker):
        """A position that was lost: what is in the books is read again."""
        done = worker.records[: self.books.positions.get(worker.journal, 0)]
        spent = self.books.apply(host.name, worker.journal, done)
        assert not any(spent.values())
        host.desk.apply_spent(spent)

    def unapplied(self, worker):
        return len(worker.records) - self.books.positions.get(worker.journal, 0)

    def news(self, host):
        seen = host.desk.read_snapshot()
        host.desk.refresh(seen)
        host.serving.append(self.loop.create_task(self._share(host.desk, seen)))

    async def _share(self, desk, seen):
        try:
            await desk.share(seen)
        except OSError:
            return  # the database is away: the next round sees

    # ---- one step

    def step(self, name, action):
        self.trace.append(name)
        action(self)
        self._run()
        self.check()

    def check(self):
        books = self.books
        total = defaultdict(int)
        for (account, host), (granted, _) in books.grants.items():
            total[account] += granted
            counted, over = self.counted[account, host], self.overrun[account, host]
            assert counted <= granted + over, (account, host, counted, granted)
        for account, row in books.windows.items():
            assert row.spent == self.booked[account], (account, row, self.booked[account])
            assert total[account] == row.granted <= row.highest, (account, row)
            assert self.counted[account] <= row.highest + self.overrun[account], (account, row)
        for host in self.hosts:
            for worker in host.living:
                for key, piece in worker.client._slices.items():
                    granted, held, spent = piece
                    assert granted >= 0 <= held, (worker.journal, key, piece)
                    if granted < held + spent:
                        assert self.overrun[BudgetAccount(*key), host.name], (
                            worker.journal,
                            key,
                            piece,
                        )

    def available(self, host, account):
        """What the host could hold once all idle money of its workers came back."""
        books = self.books
        row, (mine, used) = books.windows[account], books.grants.get((account, host.name), (0, 0))
        for worker in host.workers:
            used -= books.by_journal.get((worker.journal, account), 0)
            if worker.alive:
                piece = worker.client._slices.get((account.budget_id, account.window))
                used += piece.held_pusd + piece.spent_pusd if piece else 0
            else:
                used += host.desk._book._pot(account).granted.get(worker.journal, 0)
        limit = books.limits[account.budget_id]
        return limit - max(row.granted, row.spent) + mine - used

    def is_calm(self, host):
        """Nothing is under way, nobody is missing: a refusal must be true to the unit."""
        return (
            host.desk is not None
            and not self.away
            and not host.desk._book._undeclared
            and all(item.client.connected and item.client._budgets for item in host.living)
            and not any(attempt.state == "asking" for w in host.living for attempt in w.attempts)
        )

    def ask_calmly(self, worker, scopes, bound):
        """Ask, let everything arrive, and judge the answer."""
        rooms = {
            HARD[scope]: self.available(
                worker.host, BudgetAccount(HARD[scope], window_of(HARD[scope], self.now_s)[0])
            )
            for scope in scopes
            if scope in HARD
        }
        attempt = self.ask(worker, scopes, bound)
        self.pump()
        for _ in range(self.code.broker.LEFT_TRIES):  # of what another host has and may leave
            if attempt.state == "asking":
                self.loop.pass_time(self.code.broker.LEFT_AFTER_S)
                self.pump()
        if attempt.state == "ended":
            assert isinstance(attempt.answer, self.code.client.BudgetRefusal), attempt.answer
            assert attempt.answer.limit_pusd == self.books.limits[attempt.answer.scope]
            assert rooms[attempt.answer.scope] < bound, f"unjustified: {bound} of {rooms}"
        else:
            assert attempt.state == "open", attempt.state
        return attempt

    # ---- the end

    def finish(self):
        """Everything comes back, ends and is applied: then nothing is held and all is there."""
        self.trace.append("finish")
        self.away = False
        for host in self.hosts:
            if host.desk is None:
                self.start_desk(host)
        self.pump()
        self.loop.pass_time(6)
        self.pump()
        self.loop.pass_time(6)
        self.pump()
        for attempt in self.attempts:
            assert attempt.state != "asking", attempt.answer
            if attempt.state == "open" and attempt.worker.alive:
                self.settle(attempt, attempt.bound // 2)
        self._write_up()
        self._hear_late()
        self._use_what_is_left(self.rng.choice(self.hosts))
        for host in self.hosts:
            for worker in host.living:
                assert not worker.client._held
                assert not any(slice_.held_pusd for slice_ in worker.client._slices.values()), (
                    "held"
                )
                worker.alive = False
                self.loop.create_task(worker.client.aclose())
        self.pump()
        self._write_up()
        self._check_end()

    def _hear_late(self):
        for attempt in self.attempts:
            if attempt.state == "lost" and self.rng.random() < 0.5:
                self.settle_late(attempt, self.rng.choice((0, attempt.bound // 2, attempt.bound)))

    def _write_up(self):
        self.pump()
        for host in self.hosts:
            for worker in list(host.workers):
                self.apply(host, worker, 10**6)
                if self.rng.random() < 0.2:
                    self.replay(host, worker)
                if not worker.alive:
                    self.bury(host, worker)
            self.news(host)
            self.pump()
        self.check()

    def _use_what_is_left(self, host):
        """All that is there is lent: to the unit on the host, and no more than that."""
        (other,) = [each_host for each_host in self.hosts if each_host is not host]
        if not host.living:
            self.start_worker(host)
        for each_host in self.hosts:
            self.news(each_host)
        self.pump()
        worker = host.living[-1]
        assert self.is_calm(host)
        for scope, budget_id in HARD.items():
            account = BudgetAccount(budget_id, window_of(budget_id, self.now_s)[0])
            room, row = self.available(host, account), self.books.windows[account]
            if row.granted >= row.spent:
                left = self.books.limits[budget_id] - row.granted
                if (account, host.name) in self.books.grants:  # else nobody else is known of
                    assert self._idle(other, account) <= max(0, left), "not shared"
                assert room == left + self._idle(host, account), "leaked"
            if room > 0:
                if not self.overrun[account] and self.rng.random() < 0.5:
                    assert self.ask_calmly(worker, (scope,), room + 1).state == "ended"
                attempt = self.ask_calmly(worker, (scope,), room)
                assert attempt.state == "open"
                self.settle(attempt, 0)
                self.pump()

    def _idle(self, host, account):
        granted, spent = self.books.grants.get((account, host.name), (0, 0))
        return granted - spent

    def _check_end(self):
        for host in self.hosts:
            assert host.workers == []
            for (account, name), (granted, spent) in self.books.grants.items():
                if name == host.name:
                    assert host.desk.lent_pusd(account) == 0, ("leaked", account)
                    assert host.desk._book.idle_pusd(account) == granted - spent, account
        for (name, _), life in self.books.lives.items():
            attempt = self.named[name]
            assert life.counted_pusd == attempt.counts
            assert life.ended == (attempt.state == "settled")
            assert life.late == attempt.late
