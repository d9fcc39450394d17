"""The ledger counts what vLLM counts: 108 requests of 16 clients, streamed and not, some cut off.

vLLM's own counters are the oracle. Of requests that finish, every token agrees. Of clients that
hang up, the ledger holds the last usage that the engine reported; what the engine did beyond that
before it noticed is its surplus, never negative, and printed. An answer in one piece that is given
up reports nothing: it is charged for engine time, and its prompt is an estimate.
"""

import asyncio
import itertools
import random
from collections.abc import Callable, Iterator

CLIENTS = 16
FINISHING = 72
CUT_OFF = 36  # every second of them leaves
APPLIED_LIMIT_S = 120
WORDS = ("volume", "hour", "budget", "machine", "token", "price", "answer", "team", "batch")
ROWS = "SELECT * FROM attempts WHERE team_id = :team"


def questions(question, seed: int, *, leaving: bool) -> Iterator:
    """Mixed lengths; with `leaving` every second client hangs up, in one of three ways."""
    rng = random.Random(seed)
    for number in itertools.count():
        text = " ".join(rng.choices(WORDS, k=rng.randint(5, 150)))
        asked = question(text, rng.randint(8, 160), stream=number % 3 != 0)
        if leaving and number % 2:
            ways = (
                question(text, 1500, stream=True, leaves_after=rng.randint(1, 20_000)),
                question(text, 1500, stream=False, patience_s=rng.uniform(0.02, 0.6)),
                question(text, 1500, stream=True, patience_s=rng.uniform(0.0, 0.4)),
            )
            asked = ways[number // 2 % 3]
        yield asked


async def ask_all(asking, asked: Iterator, count: int) -> list:
    """`count` questions, `CLIENTS` at a time."""
    left = iter(range(count))

    async def one() -> list:
        return [await asking.ask(next(asked)) for _ in left]

    found = await asyncio.gather(*(one() for _ in range(CLIENTS)))
    return [answer for answers in found for answer in answers]


def measured(gateway, clients, engine, counters, asked: Iterator, count: int, team: str):
    """What the clients, the ledger and the engine say of the same requests."""
    before = counters(engine.base_url)
    asking = clients(gateway.base_url, "tiny", gateway.key(team=team))
    answers = asyncio.run(ask_all(asking, asked, count))
    assert {answer.status for answer in answers if not answer.left} == {200}
    gateway.until(lambda: idle(engine.base_url, counters), APPLIED_LIMIT_S)
    whole = len([answer for answer in answers if not answer.left])

    def settled() -> list[dict]:
        """Who left before an attempt was made has no row; every row there is must be settled."""
        found = gateway.rows(ROWS, team=team)
        finished = [row for row in found if row["status"] == "finished"]
        return found if len(finished) >= whole and all(row["settled_us"] for row in found) else []

    rows = gateway.until(settled, APPLIED_LIMIT_S)
    after = counters(engine.base_url)
    deltas = (
        after["prompt_tokens"] - before["prompt_tokens"],
        after["generation_tokens"] - before["generation_tokens"],
    )
    return answers, rows, deltas


def idle(base_url: str, counters: Callable[[str], dict[str, int]]) -> bool:
    """Nothing is generated any more: aborts have arrived."""
    first, second = counters(base_url), counters(base_url)
    return (
        first["generation_tokens"] == second["generation_tokens"]
        and not second["num_requests_running"]
    )


def booked(rows: list[dict]) -> tuple[int, int]:
    """Prompt and output tokens of these rows."""
    prompt = sum(row["input_tokens"] + row["cached_tokens"] for row in rows)
    return prompt, sum(row["output_tokens"] for row in rows)


def test_every_token_of_finished_requests_agrees(
    tiny_gateway, tiny_engine, clients, question, counters
) -> None:
    asked = questions(question, 1, leaving=False)
    answers, rows, deltas = measured(
        tiny_gateway, clients, tiny_engine, counters, asked, FINISHING, "finishing"
    )
    assert len(rows) == FINISHING
    print(f"{FINISHING} finished requests: ledger {booked(rows)}, vLLM {deltas}")
    assert {(row["status"], row["basis"]) for row in rows} == {("finished", "reported")}
    assert {row["stream"] for row in rows} == {0, 1}
    assert booked(rows) == deltas
    assert min(deltas) > FINISHING
    by_id = {row["request_id"]: row for row in rows}
    for answer in answers:
        seen = (answer.prompt_tokens, answer.output_tokens)
        assert booked([by_id[answer.request_id]]) == seen
    # The negative control: one row less, or one counted twice, and they differ.
    assert booked(rows[1:]) != deltas
    assert booked([*rows, rows[0]]) != deltas


def test_of_those_who_leave_the_last_usage_is_booked(
    tiny_gateway, tiny_engine, clients, question, counters
) -> None:
    asked = questions(question, 2, leaving=True)
    answers, rows, deltas = measured(
        tiny_gateway, clients, tiny_engine, counters, asked, CUT_OFF, "leaving"
    )
    gone = [row for row in rows if row["status"] == "client_gone"]
    finished = [row for row in rows if row["status"] == "finished"]
    counted = booked([row for row in rows if row["basis"] != "estimated"])
    surplus = tuple(engine - ledger for engine, ledger in zip(deltas, counted, strict=True))
    print(
        f"{len(finished)} finished and {len(gone)} left: ledger {booked(rows)}, of it left "
        f"{booked(gone)}; vLLM {deltas}; the engine's surplus {surplus}"
    )
    left = [answer for answer in answers if answer.left]
    assert CUT_OFF // 6 <= len(gone) <= len(left)  # an answer may be whole before its client left
    assert len(gone) + len(finished) == len(rows) <= CUT_OFF
    assert min(surplus) >= 0
    assert {row["basis"] for row in finished} == {"reported"}
    assert {row["basis"] for row in gone} <= {"continuous", "estimated"}
    by_id = {row["request_id"]: row for row in gone}
    for answer in left:
        if answer.request_id in by_id and answer.question.stream:
            prompt, output = booked([by_id[answer.request_id]])
            assert prompt == answer.prompt_tokens or not answer.prompt_tokens
            assert output >= answer.output_tokens
    unseen = [row for row in gone if row["basis"] == "estimated"]
    assert booked([row for row in unseen if row["stream"]]) == (0, 0)
    whole = [row for row in unseen if not row["stream"]]
    assert {row["output_tokens"] for row in whole} <= {0}
    # One whose client was gone before a byte of it left for the engine took nothing of it.
    unsent = [row for row in whole if row["engine_us"] == 0]
    assert {(row["cost_pusd"], row["input_tokens"]) for row in unsent} <= {(0, 0)}
    assert 2 * len(unsent) < len(whole)
    assert all(0 <= row["engine_us"] <= row["duration_us"] for row in whole)
    continuous = [row for row in gone if row["basis"] == "continuous"]
    assert all(row["output_tokens"] > 0 for row in continuous)
    assert continuous
