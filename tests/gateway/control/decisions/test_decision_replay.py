"""Live decisions, made again in a fresh process from what the ledger stored."""

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import msgspec
import pytest
import sqlalchemy

from deploy import warmstart
from gateway.control.decisions.decision_replay import replay_decision
from router.snapshot_codec import encode

LIVE = 90
SCRIPT = """
import json, sys
import sqlalchemy
from gateway.control.decisions.decision_replay import replay_decision

engine = sqlalchemy.create_engine(sys.argv[1])
with engine.connect() as connection:
    rows = connection.execute(sqlalchemy.text("SELECT attempt_id, inputs, decision FROM decisions"))
    made = {one: replay_decision(inputs, blob) for one, inputs, blob in rows if inputs}
print(json.dumps({one: (each.identical, each.decision.first_choice.candidate.name)
                  for one, each in made.items()}))
"""


@pytest.fixture(scope="module")
def recorded(stack, patiently):
    """(attempt id, target, inputs, decision) of many live requests, several at once."""

    def ask(number: int) -> None:
        model = ("chat", "api", "pair")[number % 3]
        words = "word " * (1 + 13 * number % 400)
        messages = [{"role": "user", "content": words}]
        stack.chat(model, max_tokens=1 + number % 5, messages=messages)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(ask, range(LIVE)))
    query = sqlalchemy.text(
        "SELECT a.attempt_id, a.target, d.inputs, d.decision FROM attempts a"
        " JOIN decisions d ON d.attempt_id = a.attempt_id WHERE a.settled_us IS NOT NULL"
    )

    def look():
        with stack.reader.connect() as connection:
            rows = connection.execute(query).all()
        return rows if len(rows) >= LIVE else None

    return patiently(look)


def test_every_decision_comes_out_again_in_a_fresh_process(stack, recorded) -> None:
    done = warmstart.programs().run([f"sqlite:///{stack.state}/ledger.db"], program=SCRIPT)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert len(found) >= LIVE
    assert [key for key, (identical, _) in found.items() if not identical] == []
    first = {row.attempt_id: row.target for row in recorded if row.attempt_id.endswith(".1")}
    assert {key: name for key, (_, name) in found.items() if key in first} == first


def test_one_input_changed_is_not_the_record_any_more(recorded) -> None:
    """The negative control, on each of them: a prompt that is one token longer is seen."""
    for row in recorded[:50]:
        made = replay_decision(row.inputs, row.decision)
        request, policy, candidates = made.inputs
        longer = replace(request, prompt_tokens=request.prompt_tokens + 1)
        changed = msgspec.msgpack.encode(encode(longer, policy, candidates))
        assert not replay_decision(changed, row.decision).identical


def test_another_policy_sends_it_elsewhere(recorded) -> None:
    own = [row for row in recorded if row.target.startswith("pool:")]
    assert own
    for row in own[:20]:
        request, policy, candidates = replay_decision(row.inputs, row.decision).inputs
        none = replace(policy, kv_headroom_floor=1.0)
        frozen = msgspec.msgpack.encode(encode(request, none, candidates))
        made = replay_decision(frozen, row.decision)
        assert not made.identical
        assert not made.decision.first_choice.candidate.internal


def test_what_it_was_made_of_is_told(recorded) -> None:
    row = next(row for row in recorded if row.target.startswith("pool:"))
    made = replay_decision(row.inputs, row.decision)
    told = "\n".join(made.lines())
    for word in ("bid price", "step factor", "safety ttft", "age", "expected", "byte by byte"):
        assert word in told
    document = made.document()
    assert document["identical"] is True
    assert document["candidates"][0]["engine"]["step"]["a_s"] > 0
    assert json.dumps(document)
    for candidate in document["candidates"]:  # the same in every process
        assert candidate["kinds"] == sorted(candidate["kinds"])
        assert candidate["features"] == sorted(candidate["features"])


def test_what_cannot_be_read_is_said() -> None:
    for inputs in (b"", b"\xff", msgspec.msgpack.encode(7), msgspec.msgpack.encode([9, 1, 2, 3])):
        with pytest.raises(ValueError, match="cannot be read"):
            replay_decision(inputs, b"")
