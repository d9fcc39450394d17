"""Write `written.tar.xz` and `written.json.xz`: a ledger, a journal, and what they say.

    .venv/bin/python tests/ledger/written/written_make.py

It ran once, on the code of commit 7179456 (2026-11-26), before the registries of issue 24. To run
it, check out the commit that added it ("ledger: read a ledger that was written before the
registries"): later renames reach its imports, not what it wrote. What it wrote is evidence: do not
write it again with later code, or the test compares the later code with itself. A later form gets
files of its own beside these.
"""

import io
import lzma
import shutil
import sqlite3
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import date
from pathlib import Path

import msgspec
from sqlalchemy import Engine, insert
from written_read import (
    BOOKS,
    BOOKS_READERS,
    JOURNALS,
    LEDGER,
    SAID,
    START_US,
    journal_records,
    unpacked,
)

from gateway.request.stage_turns import DECISION_LIMIT_BYTES
from ledger.accounts import provisional_charge_pusd
from ledger.budgets.entered import BudgetSpec
from ledger.budgets.grants import BudgetAccount, GrantNeed, grow
from ledger.budgets.windows import window_at
from ledger.database import make_engine, migrate, sqlite_url
from ledger.declared import declare
from ledger.fleet.hours import close_hours
from ledger.identity.keys import KeySpec, create_key
from ledger.journals.journal import JournalWriter
from ledger.journals.reader import JournalOffset
from ledger.journals.records import (
    AttemptOpened,
    AttemptSettled,
    ComparedCost,
    Hold,
    Record,
    RequestRefused,
    TokenCounts,
)
from ledger.orm import tables as orm
from ledger.prices.book import tier_cost_pusd
from ledger.prices.rates import Price, PriceTerms, TierRates, rates_from
from ledger.seals.audit_log import AuditLog
from ledger.seals.sealer import Sealer
from ledger.spans import DAY_US, HOUR_US
from ledger.sums.rollups import Rollups
from ledger.verify.checks import verify
from ledger.writing.fold import JournalItem
from ledger.writing.repository import JournalMove, LedgerRepository
from router.decide import decide
from router.explain import pack_bounded
from router.prompts import RequestUnits
from router.reasons import Reason
from router.request_kinds import RequestKind
from router.snapshot_codec import encode
from router.types import (
    ApiState,
    Candidate,
    Decision,
    EngineState,
    Feature,
    InfeasibleAction,
    OutputMoments,
    Policy,
    Preference,
    Residency,
    RoutingRequest,
    Slo,
    StepModel,
    TargetHealth,
    Verdict,
)

RATE_PUSD, POOL = 9_800_000_000_000, "reserved"
HELD_PUSD = 10**12
SCOPES = (
    "global", "external", "org:acme", "team:search", "user:ann", "key:k1", "provider:openai",
    "model:chat-large", "tag:app=web",
)  # fmt: skip
HARD = "team:search@month"
STEP = StepModel(a_s=4.79e-3, b_s=28e-6, c_s=46.8e-9, d_s=27.8e-6, t0_s=13.8e-3)
STATE = EngineState(
    health=TargetHealth.HEALTHY, step=STEP, running=4, waiting=2, context_tokens=4001.0,
    queued_prefill_tokens=130.0, kv_capacity_tokens=100_000, kv_used_tokens=4005.0,
    kv_promised_tokens=1003.0, kv_block_tokens=16, max_num_seqs=256, prefill_budget_tokens=2048,
    step_feedback=1.05, safety_ttft=0.85, safety_tpot=0.8, prefill_rate_tokens_per_s=11.0,
    tightest_ttft_ms=450.0, tightest_tpot_ms=45.0, prefix_hit_tokens=48, age_s=0.25,
    residents=((300.0, 800.0, 20.0), (40.0, 90.0, 5.0)), head_tokens=65.0, head_since_s=0.125,
)  # fmt: skip
OWN = Candidate(
    name="pool:reserved/0", pool="reserved", features=frozenset({Feature.TOOLS, Feature.N}),
    kinds=frozenset({RequestKind.CHAT, RequestKind.COMPLETION}), context_tokens=8192, internal=True,
    expected_pusd=0, bound_pusd=1000, avoided_pusd=2_000_000, budget_room_pusd=10**9,
    bid_price_pusd_per_s=5.5e6, accepts_salt=False, engine=STATE, output_cap=300,
    top_density_pusd_per_s=7.5e6, density_spread=1.5,
)  # fmt: skip
API = Candidate(
    name="openai/gpt-4o-mini", pool=None, features=frozenset(Feature), kinds=frozenset(RequestKind),
    context_tokens=128_000, internal=False, expected_pusd=1_000_000, bound_pusd=4_000_000,
    api=ApiState(
        health=TargetHealth.UNKNOWN, ttft_median_ms=300.0, ttft_sigma=0.36, tpot_median_ms=15.0,
        tpot_sigma=0.31, observations=100, requests_left=90, tokens_left=7_000, retry_after_s=2.5,
    ),
)  # fmt: skip
KINDS = list(RequestKind)
SHARP = {"input": 3_000_001, "output": 7_500_000, "cached": 300_007, "cache_write": 3_750_011,
         "cache_write_1h": 6_000_013, "reasoning": 9_000_017, "audio_input": 11_000_019,
         "audio_output": 23_000_023}  # fmt: skip
PRICES = (
    Price(
        1,
        "openai/gpt-4o-mini",
        "litellm",
        0,
        PriceTerms(
            rates_from(SHARP),
            (
                TierRates("flex", 0, rates_from({"input": 1_000_003, "output": 3_000_000})),
                TierRates("standard", 2_000, rates_from({"input": 5_000_000, "output": 9_000_001})),
            ),
        ),
        source="https://example.com/prices",
        source_date="2026-05-01",
        retired_on="2027-01-01",
    ),
    Price(
        2,
        "acme/rerank",
        "litellm",
        0,
        PriceTerms(rates_from({"input": 11, "output": 0}), search_pusd=2_000_000_000),
    ),
    Price(
        3,
        "acme/whisper",
        "litellm",
        0,
        PriceTerms(rates_from({"input": 0, "output": 0}), second_pusd=100_000_001),
    ),
    Price(
        4,
        "acme/fee",
        "ours",
        0,
        PriceTerms(
            rates_from({"input": 11, "output": 13}),
            request_pusd=5_000_000_000,
            uplift_ppm=100_000,
            inclusive=True,
        ),
        rank=1,
        effective_until_us=2**60,
    ),
    Price(
        5,
        "acme/gone",
        "ours",
        START_US,
        PriceTerms(rates_from({"input": 1, "output": 2})),
        rank=1,
        withdrawn=True,
    ),
    Price(
        6,
        "simulated/echo",
        "ours",
        0,
        PriceTerms(rates_from({"input": 1, "output": 2})),
        rank=1,
        simulated=True,
    ),
)


def asked(number: int) -> RoutingRequest:
    """Every feature by itself somewhere, all at once somewhere, and every kind."""
    features = list(Feature)
    some = frozenset(features) if number % 7 == 6 else {features[number % len(features)]}
    return RoutingRequest(
        kind=KINDS[number % len(KINDS)], model="chat-large", prompt_tokens=500 + number,
        prompt_tokens_bound=900 + number, max_tokens=None if number % 3 == 2 else 400 + number,
        output=OutputMoments(count=100 + number, mean=101.5, mean_square=15_000.0, p95=300.0),
        n=2 + number % 2, features=frozenset(some), residency=list(Residency)[number % 2],
        sticky_target="openai/gpt-4o-mini" if number % 4 else None, salted=number % 5 == 0,
        extent=RequestUnits(0.5, 3, 4, 5_000, 6_000, audio_known=True) if number % 2 else None,
    )  # fmt: skip


def rule(number: int) -> Policy:
    return Policy(
        name=f"policy-{number}", slo=Slo(500.0, 50.0, 0.9, strict=bool(number % 2)),
        kv_headroom_floor=0.125, penalty_pusd=1_000_003, max_cost_pusd=10**10,
        otherwise=list(InfeasibleAction)[number % 3], residency=list(Residency)[(number + 1) % 2],
    )  # fmt: skip


def decided(
    number: int, reason: Reason
) -> tuple[RoutingRequest, Policy, Decision, list[Candidate]]:
    """A decision of the router's own (number % 3 == 2), or one made up to say every reason."""
    reasons = list(Reason)
    fleet = [replace(OWN if place % 2 else API, name=f"{(OWN if place % 2 else API).name}#{place}")
             for place in range(4)]  # fmt: skip
    names = [named.name for named in fleet]
    request = asked(number)
    if number % 2:
        request = replace(
            request, preferred=Preference(frozenset(names[1:3]), reason),
            barred={names[0]: (reasons[-1 - number % len(reasons)], "not in the share")},
        )  # fmt: skip
    policy = rule(number)
    if number % 3 == 2:
        made = decide(request, policy, fleet)
        return request, policy, made._replace(reason=reason), fleet
    verdicts = tuple(
        Verdict(named, place == 1, reasons[(number + place) % len(reasons)], "said",
                density_pusd_per_s=1.5e6 + place, objective_pusd=2.5e6 + place,
                ttft_ms=100.0 + place, tpot_ms=11.0 + place, kv_ratio=0.5 + place / 8,
                load=0.25 + place, miss_probability=0.125 + place,
                engine_seconds=0.75 + place, kv_promise_tokens=77 + place,
                kv_free_tokens=1_234.0 + place)
        for place, named in enumerate(fleet)
    )  # fmt: skip
    order = (verdicts[1],)
    return request, policy, Decision(policy.name, order, verdicts, reason, policy.otherwise), fleet


def packed(number: int, reason: Reason) -> tuple[bytes, bytes]:
    request, policy, made, fleet = decided(number, reason)
    to_bytes = msgspec.msgpack.encode
    short = pack_bounded(DECISION_LIMIT_BYTES, to_bytes, (request, policy, made))
    return short, to_bytes(encode(request, policy, fleet))


def opened(number: int, reason: Reason, **changes: object) -> AttemptOpened:
    at_us = START_US + number * 2 * 60_000_000
    month = window_at("month", "UTC", START_US // 10**6).start_s
    day = window_at("day", "UTC", START_US // 10**6).start_s
    holds = (Hold(HARD, month, HELD_PUSD), *(Hold(f"{scope}@day", day, 0) for scope in SCOPES))
    short, frozen = packed(number, reason)
    fields: dict[str, object] = {
        "attempt_id": f"r{number}.1", "request_id": f"r{number}", "attempt_no": 1,
        "opened_us": at_us, "key_id": "k1", "user_id": "ann", "team_id": "search",
        "org_id": "acme", "kind": KINDS[number % len(KINDS)].value, "stream": bool(number % 2),
        "model": "chat-large", "target": "openai/gpt-4o-mini", "backend": "api", "pool": None,
        "engine": None, "provider": "openai", "upstream_model": "gpt-4o-mini", "simulated": False,
        "policy": "default", "policy_version": "v1", "reason": reason.value,
        "spill_reason": reason.value if number % 4 == 1 else None, "price_version": 1,
        "bound_pusd": HELD_PUSD, "prompt_tokens_estimate": 12 + number,
        "ttft_predicted_us": 120_000, "kv_headroom_ppm": 250_000, "bid_price_pusd_per_s": 77,
        "holds": holds, "tags": (("app", "web"), ("cost", "a=b")), "decision": short,
        "shadow_policy": "watch", "shadow_target": "acme/fee", "shadow_reason": reason.value,
        "inputs": frozen, "line_us": 5,
    }  # fmt: skip
    return AttemptOpened(**{**fields, **changes})


def settled(start: AttemptOpened, tokens: TokenCounts, **changes: object) -> AttemptSettled:
    tier = changes.get("tier")
    cost = None
    if start.price_version is not None:
        cost, _ = tier_cost_pusd(tokens, PRICES[start.price_version - 1], tier)
    fields: dict[str, object] = {
        "attempt_id": start.attempt_id,
        "settled_us": start.opened_us + 1_000_000,
        "status": "finished",
        "http_status": 200,
        "tokens": tokens,
        "basis": "reported",
        "cost_pusd": cost,
        "ttft_us": 120_000,
        "duration_us": 900_000,
        "finish_reason": "stop",
        "slo_met": True,
        "compared": (ComparedCost("acme/fee", 4, 7, 1_100_000), ComparedCost("a/b", 1, 9)),
    }
    return AttemptSettled(**{**fields, **changes})


def of_each_reason() -> Iterator[Record]:
    """A settled attempt per reason: every status, basis and tier in turn."""
    statuses = ("finished", "client_gone", "upstream_error", "timeout", "rejected")
    bases = ("reported", "continuous", "estimated", "bound")
    tiers = (None, "default", "flex", "priority")
    for number, reason in enumerate(Reason):
        start = opened(number, reason)
        tokens = TokenCounts(1_000 + number, 200, 31, 17, 401 + number, 50, 23, 29)
        yield start
        yield settled(
            start, tokens, status=statuses[number % 5], basis=bases[number % 4],
            tier=tiers[number % 4], unknown_tier=tiers[number % 4] == "priority",
            http_status=200 if number % 5 == 0 else 499, error=None if number % 5 else "broke",
            disputed=number == 9,
        )  # fmt: skip


def of_other_prices(first: int) -> Iterator[Record]:
    """Searches, seconds of sound, a fee with a surcharge, none known; own engines, hour by hour."""
    said = (
        (2, "acme/rerank", "rerank", TokenCounts(input=70, searches=3)),
        (3, "acme/whisper", "transcription", TokenCounts(audio_ms=61_234)),
        (4, "acme/fee", "chat", TokenCounts(input=90, output=31)),
        (None, "acme/new", "chat", TokenCounts(input=90, output=31)),
    )
    for number, (version, target, kind, tokens) in enumerate(said, start=first):
        start = opened(
            number, Reason.ONLY, price_version=version, target=target, kind=kind, provider="acme",
            upstream_model=target, holds=(), user_id=None,
        )  # fmt: skip
        yield start
        yield settled(start, tokens, compared=())
    for number in range(first + 10, first + 16):
        start = opened(
            number, Reason.CHEAPEST, backend="own", pool=POOL, engine=f"{POOL}/0", provider=None,
            target=f"pool:{POOL}/0", price_version=None, holds=(), team_id="ads", spill_reason=None,
        )  # fmt: skip
        busy_us = 7_000_000 + number
        cost = provisional_charge_pusd(busy_us, RATE_PUSD, 2)
        yield start
        yield settled(start, TokenCounts(input=50, output=9), engine_us=busy_us, cost_pusd=cost)


def refusals() -> Iterator[RequestRefused]:
    for number, word in enumerate([*(reason.value for reason in Reason), "budget", "rate"]):
        reasons = list(Reason)
        short, _ = packed(number, reasons[number % len(reasons)])
        yield RequestRefused(
            f"x{number}", START_US + number, "k1", "search", "acme", "chat-large", "default", word,
            429, scope=f"{SCOPES[number % len(SCOPES)]}@day", decision=short,
            bound_pusd=HELD_PUSD, room_pusd=5, limit_pusd=2**62, since_us=START_US,
            until_us=START_US + DAY_US,
        )  # fmt: skip


def fill(engine: Engine) -> None:
    budgets = [
        BudgetSpec("team:search", "month", 10**15, hard=True, timezone="UTC"),
        BudgetSpec("user:*", "month", 10**15, hard=False, timezone="Europe/Berlin"),
        *(BudgetSpec(scope, "day", 10**15, hard=False, timezone="UTC") for scope in SCOPES),
    ]
    declare(engine, contracts=(), budgets=budgets, config=("hash", "budgets: []"), at_us=START_US)
    with engine.begin() as connection:
        connection.execute(insert(orm.PriceVersionRow), [
            {"version": price.version, "name": price.name, "since_us": price.effective_from_us,
             "source": "made", "price": msgspec.to_builtins(price), "recorded_us": START_US}
            for price in PRICES
        ])  # fmt: skip
        connection.execute(insert(orm.GpuContractRow), [
            {"pool": POOL, "gpu_type": "H200", "gpus_per_replica": 2, "replicas": 3,
             "billing": "reserved", "pusd_per_hour": RATE_PUSD, "since": date(2026, 6, 1),
             "source": "contract", "recorded_us": START_US}
        ])  # fmt: skip
        connection.execute(insert(orm.EngineSampleRow), [
            {"at_us": START_US + place * 600_000_000, "pool": POOL, "engine": f"{POOL}/0",
             "health": "down" if place % 5 == 4 else "healthy"}
            for place in range(24 * 6)
        ])  # fmt: skip
    with engine.begin() as connection:
        spec = KeySpec("ci", team="search", org="acme", user="ann", tags=(("app", "web"),))
        create_key(connection, spec, pepper=b"p" * 32, now_us=5, new_bytes=lambda size: b"k" * size)
    month = window_at("month", "UTC", START_US // 10**6).start_s
    grow(engine, "h", [GrantNeed(BudgetAccount(HARD, month), 100 * HELD_PUSD, HELD_PUSD)])
    records = [*of_each_reason(), *of_other_prices(100), *refusals()]
    lost = [opened(number, Reason.ONLY) for number in (200, 201)]
    books = LedgerRepository(engine, host="h")
    for journal, some in (("h-1", records), ("h-2", lost)):
        items = [JournalItem(journal, 1, place, b"", record) for place, record in enumerate(some)]
        books.apply(
            items,
            (JournalMove(journal, "h", JournalOffset(), JournalOffset(1, 7)),),
            at_us=START_US,
        )
    books.settle_lost("h-2", at_us=START_US + DAY_US)
    late = settled(lost[0], TokenCounts(input=40, output=4), settled_us=START_US + DAY_US + 9)
    books.import_records([late], journal="h-3", at_us=START_US + DAY_US)
    while close_hours(engine, at_us=START_US + DAY_US + HOUR_US):
        pass
    sealer = Sealer(engine, rows_at_once=30)
    while sealer.seal(at_us=START_US + 2 * DAY_US):
        pass
    while Rollups(engine).follow():
        pass
    registers = AuditLog(engine)
    while registers.follow(at_us=START_US + 2 * DAY_US):
        pass


def write_journal(directory: Path) -> None:
    """One worker's: settled, open and refused records, with every word and count of theirs."""
    journal = JournalWriter(directory, "w0", new_id=lambda: "0123456789abcdef")
    for number, reason in enumerate(Reason):
        start = opened(number + 1_000, reason)
        journal.append(start)
        if number % 3:
            counts = [
                (number + 2) * 100 + place for place in range(len(TokenCounts.__struct_fields__))
            ]
            journal.append_ending(settled(start, TokenCounts(*counts), tier="flex", disputed=True))
    for refusal in refusals():
        journal.append(refusal)
    journal.close()


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "made"
        made.mkdir()
        url = sqlite_url(made / LEDGER)
        migrate(url)
        engine = make_engine(url)
        fill(engine)
        with engine.connect() as connection:
            assert verify(connection).findings == (), verify(connection).findings
        engine.dispose()
        with closing(sqlite3.connect(made / LEDGER, isolation_level=None)) as file:
            file.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            file.execute("VACUUM")
            file.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        write_journal(made / JOURNALS)
        tarred = io.BytesIO()
        with tarfile.open(fileobj=tarred, mode="w") as files:
            for path in (made / LEDGER, *sorted((made / JOURNALS).rglob("*"))):
                if path.is_file():
                    files.add(path, path.relative_to(made))
        BOOKS.write_bytes(lzma.compress(tarred.getvalue(), preset=9))
        shutil.rmtree(made)
        unpacked(made)
        engine = make_engine(url)
        with engine.connect() as connection:
            said = {name: read(connection) for name, read in BOOKS_READERS.items()}
        engine.dispose()
        said["journal"] = journal_records(made)
        SAID.write_bytes(lzma.compress(msgspec.json.encode(said), preset=9))
    sys.stdout.write(f"{BOOKS.stat().st_size} and {SAID.stat().st_size} bytes\n")


if __name__ == "__main__":
    main()
