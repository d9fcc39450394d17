"""Names of hosts: one a state directory, kept; and who writes for a copy of one is refused."""

import asyncio
import os
import shutil
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import insert, select

from deploy import warmstart
from ledger import hosts
from ledger.budgets import broker
from ledger.budgets import broker_protocol as wire
from ledger.budgets.broker import BudgetBroker
from ledger.database import make_engine
from ledger.hosts import HostConflict, claim_name, claim_of, keep_claim, renew_claim
from ledger.orm import tables as orm
from ledger.unixsocket import short_path

LIMIT_PUSD = 10**9
HOLD_PUSD = LIMIT_PUSD // 20
KEY = ("team:a@day", 1_779_926_400)


@pytest.fixture
def shared(lent_database):
    """An engine of a ledger that several hosts have."""
    made = make_engine(lent_database.lend())
    yield made
    made.dispose()
    lent_database.take_back()


def a_host(folder, name):
    (folder / name).mkdir(exist_ok=True)
    return claim_of(folder / name)


def test_a_directory_keeps_its_name_whatever_its_machine_is_called(engine, tmp_path):
    first = a_host(tmp_path, "a")
    assert claim_name(engine, first, "web") == "web"
    assert claim_name(engine, a_host(tmp_path, "a"), "3f9c21") == "web"  # a container made anew


def test_two_directories_on_machines_of_one_name_have_two_names(engine, tmp_path):
    item, two = a_host(tmp_path, "a"), a_host(tmp_path, "b")
    assert claim_name(engine, item, "web") == "web"
    assert claim_name(engine, two, "web") == f"web~{two.holder[:8]}"
    assert [claim_name(engine, claim, "web") for claim in (item, two)] == [
        "web",
        f"web~{two.holder[:8]}",
    ]


def test_a_machine_without_a_name_is_not_the_holder_of_nobodys_grant(engine, tmp_path):
    assert claim_name(engine, a_host(tmp_path, "a"), "") == "host"


def test_of_many_that_come_at_once_each_has_a_name(engine, tmp_path):
    claims = [a_host(tmp_path, str(number)) for number in range(8)]
    with ThreadPoolExecutor(8) as pool:
        names = list(pool.map(lambda claim: claim_name(engine, claim, "web"), claims))
    assert len(set(names)) == 8
    assert "web" in names


def test_a_spoilt_id_is_said(tmp_path):
    (tmp_path / hosts.ID_FILE).write_bytes(b"")
    with pytest.raises(HostConflict, match="delete it"):
        claim_of(tmp_path)


# ---------------------------------------------------------------- a copy of a state directory


@pytest.fixture
def copied(shared, tmp_path):
    """A host that has begun, and a copy of its state directory."""
    first = a_host(tmp_path, "a")
    assert claim_name(shared, first, "web") == "web"
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    copy = a_host(tmp_path, "b")
    assert copy.holder == first.holder
    return first, copy


def test_a_copy_is_refused_while_the_first_says_that_it_is_there(shared, copied):
    first, copy = copied
    with pytest.raises(HostConflict, match=f"`web` already writes .* file `{hosts.ID_FILE}`"):
        claim_name(shared, copy, "web", wait=lambda _: renew_claim(shared, first))
    renew_claim(shared, first)


def test_a_copy_begins_when_nothing_was_said_for_a_while_and_the_first_is_told(shared, copied):
    first, copy = copied
    waited = []
    assert claim_name(shared, copy, "web", wait=waited.append) == "web"
    assert sum(waited) == hosts.LEASE_S
    with pytest.raises(HostConflict, match="a copy"):
        renew_claim(shared, first)
    renew_claim(shared, copy)


def test_the_same_directory_begins_at_once(shared, copied):
    first, _ = copied
    assert claim_name(shared, first, "web", wait=pytest.fail) == "web"


def test_another_kernel_is_elsewhere(shared, copied):
    """A virtual machine that was copied while it ran has the same files, and is another one."""
    first, _ = copied
    there = first._replace(place="another-boot" + first.place[36:])
    with pytest.raises(HostConflict):
        claim_name(shared, there, "web", wait=lambda _: renew_claim(shared, first))


async def test_who_was_taken_over_ends(shared, copied, monkeypatch):
    first, copy = copied
    monkeypatch.setattr(hosts, "SAID_EACH_S", 0.01)
    keeping = asyncio.create_task(keep_claim(shared, first))
    claim_name(shared, copy, "web", wait=lambda _: None)
    async with asyncio.timeout(30):
        with pytest.raises(HostConflict):
            await keeping


def test_a_writer_of_a_copy_says_why_it_ends(shared, copied, tmp_path):
    first, _ = copied
    state = tmp_path / "b"
    words = ["--allow-unsafe-database", "--state-dir", state, "--journals", state / "journal"]
    url = shared.url.render_as_string(hide_password=False)
    with (tmp_path / "said").open("w") as file:
        writer = warmstart.programs().start(
            [*words, "--run-dir", state / "run"], output=file.fileno(),
            environ={**os.environ, "BREAKEVEN_LEDGER_URL": url},
            program=warmstart.MODULE.format("ledger.writer"),
        )  # fmt: skip
    try:
        while writer.poll() is None:
            renew_claim(shared, first)
    finally:
        writer.kill()
    said = (tmp_path / "said").read_text()
    assert writer.wait() == 1
    assert "`web` already writes to this ledger" in said
    assert "Traceback" not in said


# ---------------------------------------------------------------- why


class Worker:
    """A worker of a desk: what it was lent."""

    def __init__(self, reader, writer):
        self._payloads, self._writer = wire.payloads(reader), writer
        self.lent = 0

    async def borrow(self, pusd):
        self._writer.write(wire.frame(wire.LoanRequest(1, (wire.amount(KEY, pusd),), pusd)))
        while not isinstance(answer := await self._hear(), (wire.Loan, wire.LoanRefusal)):
            if isinstance(answer, wire.LoanRecall):  # all of it is in use
                self._writer.write(wire.frame(wire.LoanReturn((), answer.number)))
        if isinstance(answer, wire.Loan):
            self.lent += sum(loan.pusd for loan in answer.loans)

    def hang_up(self):
        self._writer.close()

    async def _hear(self):
        async with asyncio.timeout(30):
            return wire.ANSWERS.decode(await anext(self._payloads))


@pytest.fixture(autouse=True)
def nothing_idle(monkeypatch):
    """Before it refuses, a desk waits for what others leave idle: here nobody leaves anything."""
    monkeypatch.setattr(broker, "LEFT_AFTER_S", 0.01)


async def lent_by_two(shared, tmp_path, names):
    """Two desks, a worker each, that borrow in turn until neither gets more."""
    row = {"id": KEY[0], "scope": "team:a", "period": "day", "limit_pusd": LIMIT_PUSD,
           "hard": True, "created_us": 0}  # fmt: skip
    with shared.begin() as connection:
        connection.execute(insert(orm.BudgetRow), [row])
    desks, workers = [], []
    for place, name in enumerate(names):
        socket = tmp_path / f"desk-{place}"
        desk = BudgetBroker(shared, host=name, socket=socket)
        desk.restore(())
        await desk.start()
        desks.append(desk)
    for place in range(len(names)):
        with short_path(tmp_path / f"desk-{place}") as path:
            reader, writer = await asyncio.open_unix_connection(path)
        writer.write(wire.frame(wire.ClientHello(f"j{place}", f"j{place}", ())))
        workers.append(Worker(reader, writer))
    for number in range(4 * LIMIT_PUSD // HOLD_PUSD):
        await workers[number % 2].borrow(HOLD_PUSD)
    with shared.connect() as connection:
        granted = connection.execute(select(orm.BudgetWindowRow.granted_pusd)).scalar_one()
    for worker, desk in zip(workers, desks, strict=True):
        worker.hang_up()
        await desk.stop()
    return sum(worker.lent for worker in workers), granted


async def test_two_hosts_lend_no_more_than_the_budget_and_no_less(shared, tmp_path):
    names = [claim_name(shared, a_host(tmp_path, name), "web") for name in ("a", "b")]
    lent, granted = await lent_by_two(shared, tmp_path, names)
    assert LIMIT_PUSD - 2 * HOLD_PUSD < lent <= granted <= LIMIT_PUSD


async def test_under_one_name_they_would_lend_it_twice(shared, tmp_path):
    """The control: each desk takes the whole of their one grant for its own."""
    lent, granted = await lent_by_two(shared, tmp_path, ["web", "web"])
    assert granted <= LIMIT_PUSD < lent
