"""Fills a migrated PostgreSQL ledger with attempts, their comparators, hours and samples, by COPY.

Some weeks of a company: teams, models and targets skewed as in life, a load curve by hour and
weekday, spills, refusals, retries, failures, a few lost and unpriced attempts. From a seed; nothing
of it is meant to pass `verify`: postings and holds are left out, for no page reads them.
"""

import random
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from sqlalchemy import Connection, Engine, insert, text

from ledger.orm import tables as orm
from ledger.spans import DAY_US, HOUR_US

DAYS = 90
TEMPLATES = 20_000
ROWS_AT_ONCE = 100_000
POOLS = {"llama-70b": 2, "llama-8b": 2, "qwen-coder": 1, "embed": 1}  # and their engines
MODELS = (  # name, weight, pool, kind, the API that it spills to
    ("chat-large", 30, "llama-70b", "chat", "openai/gpt-4o-mini"),
    ("chat-small", 25, "llama-8b", "chat", "openai/gpt-4.1-nano"),
    ("code", 15, "qwen-coder", "completion", "mistral/codestral"),
    ("documents", 12, "embed", "embedding", "openai/text-embedding-3-small"),
    ("gpt-4o", 8, None, "chat", "openai/gpt-4o"),
    ("claude", 6, None, "chat", "anthropic/claude-haiku-4-5"),
    ("openai/o4-mini", 3, None, "chat", "openai/o4-mini"),
    ("rerank", 1, None, "rerank", "cohere/rerank-v3.5"),
)
TEAMS = 40
SPILLS = ("ttft", "kv_headroom", "tpot", "unhealthy")
COMPARATORS = ("openai/gpt-4o-mini", "deepinfra/meta-llama/Llama-3.3-70B")
# One weight an hour of the day, from midnight UTC; weekends get a third.
DAY = (1, 1, 1, 1, 1, 2, 4, 8, 14, 18, 19, 18, 16, 18, 19, 18, 16, 12, 8, 6, 4, 3, 2, 1)
_TIMED = ("attempt_id", "request_id", "opened_us", "settled_us")
_CONSTANT = [
    column.name
    for column in orm.AttemptRow.__table__.columns
    if column.name not in {*_TIMED, "seq"}
]


def fill(engine: Engine, attempts: int, *, end_us: int, seed: int = 7) -> None:
    """Everything up to `end_us`; indexes of the large tables are made after their rows."""
    rng = random.Random(seed)
    templates = [_template(rng) for _ in range(TEMPLATES)]
    with engine.begin() as connection:
        remade = _drop_indexes(connection)
    done = 0
    for part in _rows(rng, templates, attempts, end_us):
        with engine.begin() as connection:
            cursor = connection.connection.cursor()
            _copy(cursor, "attempts", [*_TIMED, *_CONSTANT], (row for row, _ in part))
            names = ["attempt_id", *_COMPARED]
            _copy(cursor, "compared", names, (more for _, more in part if more))
        done += len(part)
        _say(f"\r  {done:,} of {attempts:,} attempts")
    _say("\n  indexes ...")
    for statement in remade:
        with engine.begin() as connection:
            connection.execute(text(statement))
    with engine.begin() as connection:
        _own(connection, rng, end_us)
        _samples(connection, end_us)
        _refusals(connection, attempts, end_us)
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("VACUUM (ANALYZE)"))
    _say(" done\n")


def _template(rng: random.Random) -> tuple[str, str, int]:
    """The columns of an attempt without times and ids, its comparators, and its duration."""
    name, _, pool, kind, api = rng.choices(MODELS, [item[1] for item in MODELS])[0]
    team = min(TEAMS - 1, int(rng.paretovariate(0.8)) - 1)
    own = pool is not None and rng.random() < 0.88
    failed, gone = rng.random() < 0.01, rng.random() < 0.02
    status = "upstream_error" if failed else "client_gone" if gone else "finished"
    prompt, output = int(rng.lognormvariate(6.5, 1)), int(rng.lognormvariate(5, 0.8))
    output = 0 if kind in {"embedding", "rerank"} else output
    spill = rng.choices(SPILLS, (60, 25, 10, 5))[0] if pool and not own else None
    unpriced = not own and rng.random() < 0.001
    place = rng.randrange(POOLS[pool]) if pool else 0
    cost = prompt * rng.randrange(100_000, 160_000) + output * 600_000
    values: dict[str, Any] = {
        "attempt_no": 2 if rng.random() < 0.01 else 1,
        "key_id": f"k{team}-{rng.randrange(6)}", "user_id": None, "team_id": f"team-{team:02}",
        "org_id": "acme", "kind": kind, "stream": rng.random() < 0.7, "model": name,
        "target": f"pool:{pool}/{place}" if own else api, "backend": "own" if own else "api",
        "pool": pool if own else None, "engine": f"{pool}/{place}" if own else None,
        "provider": None if own else api.partition("/")[0],
        "upstream_model": api.partition("/")[2], "simulated": False, "policy": "default",
        "policy_version": "v1",
        "reason": rng.choices(("cheapest", "sticky", "only"), (80, 15, 5))[0],
        "spill_reason": spill, "price_version": None if own else 1, "bound_pusd": 2 * cost,
        "prompt_tokens_estimate": prompt, "ttft_predicted_us": 90_000 if own else None,
        "tags": '{"app": "web"}', "journal": "w0-0", "status": status,
        "http_status": 502 if failed else 200, "input_tokens": prompt - prompt // 3,
        "cached_tokens": prompt // 3, "cache_write_tokens": 0, "cache_write_1h_tokens": 0,
        "output_tokens": 0 if failed else output, "reasoning_tokens": 0,
        "audio_input_tokens": 0, "audio_output_tokens": 0, "audio_ms": 0, "searches": 0,
        "characters": 0, "pictures": 0, "image_output_tokens": 0,
        "basis": "reported", "cost_pusd": None if unpriced else cost,
        "ttft_us": rng.randrange(20_000, 400_000), "duration_us": 20_000 + output * 11_000,
        "engine_us": output * 900 if own else 0, "finish_reason": "stop",
        "slo_met": None if failed else rng.random() < (0.99 if own else 0.97),
        "flag": "unpriced" if unpriced else "disputed" if rng.random() < 0.0002 else None,
    }  # fmt: skip
    compared = ""
    if pool and not failed:
        values |= {"compared_with": COMPARATORS[0], "compared_pusd": cost * 3}
        lines = [
            f"\t{comparator}\t{position}\t1\t1000000\t{cost * (3 + position)}"
            for position, comparator in enumerate(COMPARATORS)
        ]
        compared = "\n".join(lines)
    return "\t".join(_cell(values.get(item)) for item in _CONSTANT), compared, values["duration_us"]


_COMPARED = ("comparator", "position", "price_version", "ratio_ppm", "cost_pusd")


def _cell(value: Any) -> str:
    return "\\N" if value is None else str(value)


def _hours(attempts: int, end_us: int) -> list[tuple[int, int]]:
    """(start, attempts) of every hour, the load curve's share each; together exactly so many."""
    first = (end_us - DAYS * DAY_US) // HOUR_US * HOUR_US
    starts = range(first, end_us, HOUR_US)
    weights = [
        DAY[start // HOUR_US % 24] / (3 if (start // DAY_US + 4) % 7 in {0, 6} else 1)
        for start in starts
    ]
    whole, so_far, given, found = sum(weights), 0.0, 0, []
    for start, weight in zip(starts, weights, strict=True):
        so_far += weight
        until = round(attempts * so_far / whole)
        found.append((start, until - given))
        given = until
    return found


def _rows(
    rng: random.Random, templates: list[tuple[str, str, int]], attempts: int, end_us: int
) -> Iterator[list[tuple[str, str]]]:
    hours = _hours(attempts, end_us)

    def lines() -> Iterator[tuple[str, str]]:
        number, last = 0, hours[-1][0]
        for start, count in hours:
            for constant, compared, took in rng.choices(templates, k=count):
                number += 1
                opened = start + number * 7_919_000 % (end_us - start if start == last else HOUR_US)
                key = f"{start // HOUR_US:06x}{number:026x}"
                row = f"{key}.1\t{key}\t{opened}\t{opened + took}\t{constant}\n"
                yield row, compared and f"{key}.1" + compared.replace("\n", f"\n{key}.1") + "\n"

    source = lines()
    while part := list(islice(source, ROWS_AT_ONCE)):
        yield part


def _copy(cursor: Any, table: str, names: list[str], lines: Iterator[str]) -> None:
    with cursor.copy(f"COPY {table} ({', '.join(names)}) FROM STDIN") as into:
        while some := "".join(islice(lines, 2_000)):
            into.write(some)


def _drop_indexes(connection: Connection) -> list[str]:
    """Of the tables that are copied into; returns the statements that make them again."""
    query = text(
        "SELECT indexname, indexdef, conname IS NOT NULL FROM pg_indexes "
        "LEFT JOIN pg_constraint ON conname = indexname "
        "WHERE tablename IN ('attempts', 'compared') AND schemaname = 'public'"
    )
    found = connection.execute(query).all()
    for name, _, constraint in found:
        if not constraint:
            connection.execute(text(f"DROP INDEX {name}"))
    return [definition for _, definition, constraint in found if not constraint]


def _own(connection: Connection, rng: random.Random, end_us: int) -> None:
    """Contracts, and every hour but the last two closed: teams + idle = bill."""
    first = (end_us - DAYS * DAY_US) // HOUR_US * HOUR_US
    connection.execute(
        insert(orm.GpuContractRow),
        [{"pool": pool, "gpu_type": "H200", "gpus_per_replica": 1, "replicas": engines,
          "billing": "reserved", "pusd_per_hour": 3_500_000_000_000,
          "since": datetime.fromtimestamp(first / 1e6, UTC).date(), "recorded_us": first,
          "source": "contract"}
         for pool, engines in POOLS.items()],
    )  # fmt: skip
    hours, teams = [], []
    for pool, engines in POOLS.items():
        bill = 3_500_000_000_000 * engines
        for hour in range(first, end_us // HOUR_US * HOUR_US - HOUR_US, HOUR_US):
            shares = [rng.randrange(bill // 40) for _ in range(20)]
            hours.append(
                {"pool": pool, "hour_us": hour, "contract_id": 1, "replicas": engines,
                 "bill_pusd": bill, "used_pusd": sum(shares), "idle_pusd": bill - sum(shares),
                 "unavailable_pusd": 0, "busy_us": HOUR_US // 2, "unavailable_us": 0,
                 "closed_us": hour + HOUR_US, "span_us": HOUR_US}
            )  # fmt: skip
            teams += [
                {"pool": pool, "hour_us": hour, "team_id": f"team-{number:02}",
                 "used_pusd": share, "provisional_pusd": share, "engine_us": 1}
                for number, share in enumerate(shares)
            ]  # fmt: skip
    connection.execute(insert(orm.GpuHourRow), hours)
    connection.execute(insert(orm.GpuHourTeamRow), teams)


def _samples(connection: Connection, end_us: int) -> None:
    """Thirty days of them, ten seconds apart."""
    for pool, engines in POOLS.items():
        for number in range(engines):
            connection.execute(
                text(
                    "INSERT INTO engine_samples (at_us, pool, engine, health, running, waiting,"
                    " kv_usage_ppm, output_tokens_total, busy_us, simulated)"
                    " SELECT at_us, :pool, :engine, 'healthy', at_us / 7 % 40, 0,"
                    " at_us / 11 % 900000, (at_us - :first) / 1000, 5000000, false"
                    " FROM generate_series(CAST(:first AS BIGINT), :last, 10000000) AS at_us"
                ),
                {"pool": pool, "engine": f"{pool}/{number}", "first": end_us - 30 * DAY_US,
                 "last": end_us},
            )  # fmt: skip


def _refusals(connection: Connection, attempts: int, end_us: int) -> None:
    """One in a hundred."""
    connection.execute(
        text(
            "INSERT INTO refusals (request_id, refused_us, key_id, team_id, org_id, model, policy,"
            " reason, http_status) SELECT 'x' || n, CAST(:first AS BIGINT) + n * CAST(:step AS"
            " BIGINT), 'k1', 'team-' || n % 20, 'acme', 'chat-large', 'default', 'budget', 429"
            " FROM generate_series(1, :n) AS n"
        ),
        {"n": attempts // 100, "first": end_us - DAYS * DAY_US,
         "step": DAYS * DAY_US // max(1, attempts // 100)},
    )  # fmt: skip


def _say(words: str) -> None:
    sys.stderr.write(words)
    sys.stderr.flush()
