"""The controls: what each scene's protection is, taken away in the host's own processes."""

SETTLED_LATER = """
import asyncio
from ledger.journals.journal import JournalWriter

async def late(self, record, written=None):
    if written is not None:
        written()
    asyncio.get_running_loop().call_later(0.5, self.append_ending, record)

JournalWriter.append_durable = late
"""

# No control: a child that is killed each second would wait longer each time to be started again.
DIES_OFTEN = """
try:
    from gateway.host import children
except ModuleNotFoundError:  # L10 begins with older code
    from gateway import children

children.BACK_OFF_LIMIT_S = 0.4
"""

ENDS_AT_ONCE = (
    SETTLED_LATER
    + """
import os
import signal

async def stop(self, grace_s):
    self._stopping.set()
    if self.pid is not None:
        os.kill(self.pid, signal.SIGKILL)
    if self._running is not None:
        await asyncio.gather_facts(self._running, return_exceptions=True)

children.ChildProcess.stop = stop
"""
)

HOLDS_WITHOUT_END = """
from ledger.budgets import client

def admits(piece, amount_pusd):
    return piece._replace(held_pusd=piece.held_pusd + amount_pusd)

client.hold = admits
"""

HOLDS_KEPT = """
from ledger.budgets.client import BudgetClient

BudgetClient.release = lambda self, attempt_id, actual_pusd: None
"""

STATEMENTS_DROPPED = """
from ledger.writing.repository import ApplyResult, DatabaseUnavailable, LedgerRepository
from sqlalchemy.exc import DBAPIError

whole = LedgerRepository.apply

def apply(self, items, moves, *, at_us):
    try:
        return whole(self, items, moves, at_us=at_us)
    except DatabaseUnavailable:
        return ApplyResult()

LedgerRepository.apply = apply
"""

POISON_SPREADS = """
from ledger.writing.repository import ApplyResult, LedgerRepository

batch = LedgerRepository._apply_batch

def apply_batch(self, connection, items, at_us, *, opens):
    if opens:
        return ApplyResult()
    return batch(self, connection, items, at_us, opens=opens)

LedgerRepository._apply_batch = apply_batch
"""

UNPRICED_IS_FREE = """
from gateway.fleet.candidates import CandidateBuilder
from ledger.prices.book import Price, PriceTerms, rates_from
from ledger.prices.quotes import PriceQuote

known = CandidateBuilder._quote
free = PriceQuote(Price(0, "a/b", "x", 0, PriceTerms(rates_from({"input": 0, "output": 0}))))
CandidateBuilder._quote = lambda self, name: known(self, name) or free
"""

DISPATCHED_UNRECORDED = """
from ledger.journals.journal import JournalFull, JournalWriter

recorded = JournalWriter.append

def append(self, record):
    try:
        recorded(self, record)
    except JournalFull:
        pass

JournalWriter.append = append
JournalWriter.refusal = lambda self: None
"""

LEASES = """
from pathlib import Path
from ledger.writing import tail

owned = tail.has_owner

def has_owner(journal):
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            words = (stat.parent / "cmdline").read_bytes()
            state = stat.read_text().rpartition(")")[2].split()[0]
            files = stat.parent.glob("fd/*")
            if b"gateway.worker" in words and state in "Tt":
                if any(journal.name in str(file.readlink()) for file in files):
                    return False
        except OSError:
            continue
    return owned(journal)

tail.has_owner = has_owner
"""

BY_THE_WALL = """
import time
from gateway.clock import Clock

Clock.__init__.__defaults__ = (time.time, *Clock.__init__.__defaults__[1:])
"""

LIMITS_APART = """
from gateway.request.limits import rate_limiter

rate_limiter.are_shared = lambda url: False
"""

TELLS_NOTHING = """
from gateway.fleet.peers.sender import PeerSender

tell = PeerSender.send
PeerSender.send = lambda self, shares, now_s, *, changed: tell(self, {}, now_s, changed=changed)
"""

BELIEVED_FOR_EVER = """
from gateway.fleet.peers import listener

listener.SILENCE_S = 1e6
"""

REVOCATIONS_UNHEARD = """
from ledger.identity import keyring

keyring.KeyGeneration.read = lambda self: 0
"""

KEYS_FORGOTTEN = """
from ledger.identity import keyring

keyring._remember = lambda *_: None
"""

STORED_LATER = """
import asyncio
from gateway.request.store.object_store import ObjectStore

at_once = ObjectStore.store

async def store(self, documents, **how):
    async def later():
        await asyncio.sleep(0.5)
        await at_once(self, documents, **how)
    self.late = {*getattr(self, "late", ()), asyncio.ensure_future(later())}

ObjectStore.store = store
"""

NOTHING_MAKES_ROOM = """
from ledger import stored_objects

stored_objects._evict = lambda *_: 0
"""

SETTLED_MUCH_LATER = SETTLED_LATER.replace("call_later(0.5,", "call_later(5.0,")

TEXTS = {
    "settled much later": SETTLED_MUCH_LATER,
    "keys forgotten": KEYS_FORGOTTEN,
    "revocations unheard": REVOCATIONS_UNHEARD,
    "peers tell nothing": TELLS_NOTHING,
    "peers believed for ever": BELIEVED_FOR_EVER,
    "limits apart": LIMITS_APART,
    "stored later": STORED_LATER,
    "nothing makes room": NOTHING_MAKES_ROOM,
    "": "",
    "settled later": SETTLED_LATER,
    "ends at once": ENDS_AT_ONCE,
    "holds without end": HOLDS_WITHOUT_END,
    "holds kept": HOLDS_KEPT,
    "statements dropped": STATEMENTS_DROPPED,
    "poison spreads": POISON_SPREADS,
    "unpriced is free": UNPRICED_IS_FREE,
    "dispatched unrecorded": DISPATCHED_UNRECORDED,
    "leases": LEASES,
    "durations by the wall": BY_THE_WALL,
}
