"""A duplicate gets the first one's answer: the same, for nothing, and nobody else can read it."""

import json
import logging
import threading
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import httpx
import pytest
from prometheus_client import CollectorRegistry
from sqlalchemy import text
from sqlalchemy.exc import OperationalError

import gateway
from gateway.config.schema_server import ReplaySection
from gateway.request.idempotency.aes_gcm_cipher import AesGcmCipher
from gateway.request.idempotency.response_replay import (
    HEARD_LIMIT_BYTES,
    ResponseReplayStore,
    StoredResponse,
    mark_replayed,
)
from ledger.idempotency import IdempotencyRecord
from ledger.stored_responses import forget_answers

SECRET = "a secret of this test that nobody guesses"
REPLAY = {"enabled": True, "key_env": "KEPT", "hours": 2, "max_bytes": 20_000}
SETTINGS = {
    "server": {"timeouts": {"drain_s": 1}, "idempotency": {"replay": REPLAY}},
    "environ": {"KEPT": SECRET},
}
HOUR_US = 3_600_000_000
WORD = "marzipan"  # what the stand-in provider repeats is looked for
PATHS = {
    "/v1/chat/completions": {"messages": [{"role": "user", "content": WORD}], "max_tokens": 4},
    "/v1/messages": {"messages": [{"role": "user", "content": WORD}], "max_tokens": 4},
    "/v1/responses": {"input": WORD, "max_output_tokens": 16},
}
CHANGING = {"date", "x-breakeven-cost-usd"}


@pytest.fixture(scope="module")
def sqlite_stack(tmp_path_factory, running):
    with running(tmp_path_factory.mktemp("host"), **dict(SETTINGS)) as stack:
        yield stack


@pytest.fixture(scope="module")
def postgres_stack(tmp_path_factory, running, postgres_server):
    ledger = {"url": postgres_server.url(postgres_server.create("kept_answers"))}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gateway.host.prepare.check_durable", lambda _: None)  # a quick server
        with running(tmp_path_factory.mktemp("host"), ledger=ledger, **dict(SETTINGS)) as stack:
            yield stack


@pytest.fixture(params=["sqlite_stack", "postgres_stack"])
def each(request):
    return request.getfixturevalue(request.param)


@pytest.fixture
def stack(sqlite_stack):
    return sqlite_stack


def ask(stack, once: str, path: str = "/v1/chat/completions", **given) -> httpx.Response:
    """`given`: members of the body; `token`, `within_s`."""
    token, within_s = given.pop("token", None), given.pop("within_s", 60)
    headers = {**stack.headers(token), "idempotency-key": once}
    body = {"model": "api", **PATHS[path], **given}
    return stack.client.post(stack.url + path, json=body, headers=headers, timeout=within_s)


def keeper(stack) -> ResponseReplayStore:
    return stack.app.hot._dispatcher.submissions._kept


def is_again(second: httpx.Response, first: httpx.Response) -> bool:
    """Whether the second is what the first was, byte for byte, and says so."""
    sent = {name: value for name, value in first.headers.items() if name not in CHANGING}
    said = {name: value for name, value in second.headers.items() if name not in CHANGING}
    assert "x-breakeven-cost-usd" not in second.headers
    marked = said.pop("idempotent-replayed", None) == "true" and "idempotent-replayed" not in sent
    return marked and (second.status_code, second.content) == (200, first.content) and said == sent


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("stream", [False, True])
def test_a_duplicate_is_answered_as_the_first_was(each, path, stream):
    once = f"{path} {stream}"
    first = ask(each, once, path, stream=stream)
    assert first.status_code == 200
    calls, rows = len(each.entries("alpha")), len(each.settled(first))
    for _ in range(2):
        assert is_again(ask(each, once, path, stream=stream), first)
    assert (len(each.entries("alpha")), len(each.settled(first)), rows) == (calls, 1, 1)
    other = ask(each, once, path, stream=stream, model="steady")
    assert other.status_code == 422
    assert keeper(each).heard == 0


def test_while_the_first_is_in_work_it_is_told_so(stack):
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(ask, stack, "slow", model="steady", max_tokens=12)
        while stack.app.hot.in_flight == 0:
            time.sleep(0.01)
        time.sleep(0.2)
        second = ask(stack, "slow", model="steady", max_tokens=12)
        assert not first.done()
        assert second.status_code == 409
        assert "in work, or whose answer was not kept" in second.json()["error"]["message"]
        whole = first.result()
        assert is_again(ask(stack, "slow", model="steady", max_tokens=12), whole)


def test_another_key_cannot_read_it(each):
    first = ask(each, "mine")
    token = each.key("another", team="rivals").token
    theirs = ask(each, "mine", token=token)
    assert theirs.status_code == 200
    assert "idempotent-replayed" not in theirs.headers
    assert theirs.headers["x-request-id"] != first.headers["x-request-id"]
    assert len(each.settled(theirs)) == 1
    assert is_again(ask(each, "mine"), first)
    assert is_again(ask(each, "mine", token=token), theirs)
    assert ask(each, "mine", token="nobody's").status_code == 401


def test_a_restart_forgets_nothing(each):
    first = ask(each, "over a restart", stream=True)
    each.call(restarted(each))
    calls = len(each.entries("alpha"))
    assert is_again(ask(each, "over a restart", stream=True), first)
    assert len(each.entries("alpha")) == calls


def test_an_hour_late_it_is_there_and_two_hours_late_it_is_gone(each, monkeypatch):
    kept = keeper(each)
    now_us, first = kept._wall_us, ask(each, "late")
    monkeypatch.setattr(kept, "_wall_us", lambda: now_us() + HOUR_US)
    assert is_again(ask(each, "late"), first)
    monkeypatch.setattr(kept, "_wall_us", lambda: now_us() + 2 * HOUR_US)
    assert ask(each, "late").status_code == 409
    assert rows(each)
    while forget_answers(each.database, now_us() + 2 * HOUR_US):
        pass
    assert rows(each) == []


@pytest.mark.parametrize("stream", [False, True])
def test_what_is_too_large_is_not_kept(stack, monkeypatch, stream):
    kept = keeper(stack)
    for most, later in ((20_000, 200), (200, 409)):
        bounds = kept._bounds.model_copy(update={"max_bytes": most})
        monkeypatch.setattr(kept, "_bounds", bounds)
        once = f"large {stream} {most}"
        assert 200 < len(ask(stack, once, stream=stream).content) < 20_000
        assert ask(stack, once, stream=stream).status_code == later
    assert kept.heard == 0


def test_failures_are_not_kept(stack):
    stack.fault("alpha", fault="status", status=500, times=1)
    assert ask(stack, "failed").status_code == 502
    stack.forgive("alpha")
    assert ask(stack, "failed").status_code == 409
    stack.fault("alpha", fault="status", status=400, times=1)
    assert ask(stack, "refused").status_code == 400
    stack.forgive("alpha")
    first = ask(stack, "refused")
    assert is_again(ask(stack, "refused"), first)


def test_a_stream_that_breaks_off_is_not_kept(stack):
    stack.fault("alpha", fault="cut", after_tokens=2, times=1)
    first = ask(stack, "cut", stream=True)
    assert (first.status_code, b'"error"' in first.content) == (200, True)
    stack.forgive("alpha")
    assert ask(stack, "cut", stream=True).status_code == 409
    assert keeper(stack).heard == 0


def test_what_a_client_left_is_not_kept(stack, patiently):
    members = {"model": "steady", **PATHS["/v1/chat/completions"], "stream": True}
    headers = {**stack.headers(), "idempotency-key": "gone"}
    url = f"{stack.url}/v1/chat/completions"
    with stack.client.stream("POST", url, json=members, headers=headers) as answer:
        next(answer.iter_raw())
    patiently(lambda: stack.app.hot.in_flight == 0)
    assert ask(stack, "gone", model="steady", stream=True).status_code == 409
    assert keeper(stack).heard == 0


def test_a_secret_that_was_changed_opens_nothing(each, monkeypatch):
    first = ask(each, "rotated")
    with monkeypatch.context() as patch:
        patch.setattr(keeper(each), "_cipher", AesGcmCipher(SECRET[::-1]))
        second = ask(each, "rotated")
        assert (second.status_code, second.json()["error"]["code"]) == (409, "duplicate_request")
    assert is_again(ask(each, "rotated"), first)


def test_what_was_altered_or_moved_does_not_open(each):
    first, other = ask(each, "altered"), ask(each, "moved", max_tokens=5)
    as_it_was = sealed(each, "altered")
    altered = as_it_was[:-1] + bytes([as_it_was[-1] ^ 1])
    for text_ in (altered, b"", as_it_was[:40], sealed(each, "moved")):
        write(each, "altered", text_)
        assert ask(each, "altered").status_code == 409
    write(each, "altered", as_it_was)
    assert is_again(ask(each, "altered"), first)
    assert is_again(ask(each, "moved", max_tokens=5), other)


def test_the_database_does_not_show_it(each):
    first = ask(each, "hidden")
    said = first.json()["choices"][0]["message"]["content"].encode()
    assert said
    assert lies_there(each, b"hidden")  # the name does: the look sees what is there
    for word in (said, WORD.encode(), SECRET.encode()):
        assert not lies_there(each, word)


def test_without_sealing_it_would(each, monkeypatch):
    """The negative control."""
    open_text = SimpleNamespace(seal=lambda plain, _: plain, open=lambda plain, _: plain)
    monkeypatch.setattr(keeper(each), "_cipher", open_text)
    said = ask(each, "shown", max_tokens=7).json()["choices"][0]["message"]["content"].encode()
    assert lies_there(each, said)
    write(each, "shown", b"")


def test_nothing_of_it_is_logged(stack, caplog, monkeypatch):
    caplog.set_level(logging.DEBUG)
    first = ask(stack, "logged")
    assert is_again(ask(stack, "logged"), first)
    monkeypatch.setattr("gateway.request.idempotency.response_replay.store_response", away)
    assert ask(stack, "not kept").status_code == 200
    assert "was not stored for replay: cannot reach the ledger" in caplog.text
    said = first.json()["choices"][0]["message"]["content"]
    assert [word for word in (said, WORD, SECRET, "INSERT") if word in caplog.text] == []


def test_an_answer_that_cannot_be_kept_is_sent(each, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr("gateway.request.idempotency.response_replay.store_response", away)
        assert ask(each, "away").status_code == 200
        patch.setattr("gateway.request.idempotency.idempotency_store.KEEP_WAIT_S", 0.1)
        hangs = threading.Event()

        def hang(*_: object, **__: object) -> None:
            hangs.set()
            time.sleep(0.5)

        patch.setattr("gateway.request.idempotency.response_replay.store_response", hang)
        assert ask(each, "hangs").status_code == 200
        assert hangs.wait(60), "its thread may begin after the answer"
    assert ask(each, "away").status_code == 409
    assert ask(each, "hangs").status_code == 409


def test_a_crowd_gets_one_answer_a_key(each, patiently):
    """Whoever is answered at all is answered the same; each key is one call and one row."""
    calls, keys, said = len(each.entries("alpha")), 6, defaultdict(list)
    with ThreadPoolExecutor(16) as pool:
        asking = [(f"crowd {n}", pool.submit(ask, each, f"crowd {n}")) for n in range(keys)] * 8
        asking += [(f"crowd {n}", pool.submit(ask, each, f"crowd {n}")) for n in range(keys)] * 8
    for name, answer in asking:
        said[name].append(answer.result())
    for name, answers in said.items():
        good = [response for response in answers if response.status_code == 200]
        assert {response.status_code for response in answers} <= {200, 409}
        assert (
            len({(response.headers["x-request-id"], response.content) for response in good}) == 1
        ), name
        assert len(each.settled(good[0])) == 1
        assert ask(each, name).content == good[0].content
    assert len(each.entries("alpha")) - calls == keys


def test_without_it_nothing_of_it_is_loaded():
    """Two modules import the library, and each is imported inside of a function."""
    packages = Path(gateway.__file__).parents[1]
    for name in ("gateway", "ledger", "backends", "router"):
        for path in (packages / name).rglob("*.py"):
            lines = path.read_text(encoding="utf-8").splitlines()
            of_it = (
                "from cryptography",
                "import cryptography",
                "from gateway.request.idempotency.aes_gcm_cipher",
                "from gateway.request.store.object_cipher",
            )
            found = [line for line in lines if line.startswith(of_it)]
            assert not found or path.name in ("aes_gcm_cipher.py", "object_cipher.py"), path


def kept_with(**bounds) -> ResponseReplayStore:
    return ResponseReplayStore(AesGcmCipher(SECRET), ReplaySection(**bounds), lambda: 0)


def start(status: int = 200) -> dict:
    return {"type": "http.response.start", "status": status, "headers": [(b"a", b"b")]}


def part(data: bytes, *, more: bool) -> dict:
    return {"type": "http.response.body", "body": data, "more_body": more}


def test_an_answer_is_heard_with_its_last_message():
    kept = kept_with()
    hearing = kept.listen()
    assert hearing.receive_message(start()) is None
    assert hearing.receive_message(part(b"one", more=True)) is None
    assert kept.heard == 3
    answer = hearing.receive_message(part(b"two", more=False))
    assert answer == StoredResponse(200, ((b"a", b"b"),), b"onetwo")
    assert kept.heard == 0
    assert mark_replayed(answer).headers[-1] == (b"idempotent-replayed", b"true")


def test_failures_and_what_is_too_long_are_not_held():
    kept = kept_with(max_bytes=1024)
    failing, long = kept.listen(), kept.listen()
    failing.receive_message(start(503))
    assert failing.receive_message(part(b"x" * 100, more=False)) is None
    long.receive_message(start())
    long.receive_message(part(b"x" * 1024, more=True))
    assert kept.heard == 1024
    assert long.receive_message(part(b"x", more=True)) is None
    assert kept.heard == 0
    assert long.receive_message(part(b"", more=False)) is None


def test_a_worker_does_not_hold_more_than_it_may():
    kept = kept_with(max_bytes=HEARD_LIMIT_BYTES)
    first, second = kept.listen(), kept.listen()
    for hearing in (first, second):
        hearing.receive_message(start())
    first.receive_message(part(b"x" * HEARD_LIMIT_BYTES, more=True))
    assert second.receive_message(part(b"x", more=False)) is None
    assert first.receive_message(part(b"", more=False)) is not None
    assert kept.heard == 0


def test_all_that_is_kept_is_bounded(stack, caplog):
    name, kept = "bounded", kept_with(total_bytes=1 + sum(size for _, size in rows(stack)) + 2048)
    sizes = []
    for number in range(4):
        asking = IdempotencyRecord("k", f"{name} {number}", b"d" * 32, f"req_{number}")
        kept.store(stack.database, asking, StoredResponse(200, (), b"x" * 900), until_us=HOUR_US)
        sizes.append(kept.find(stack.database, asking) is not None)
    assert sizes == [True, True, False, False]
    assert caplog.text.count("answers are not stored for replay") == 1


def test_an_answer_is_not_kept_longer_than_its_key_stands(stack):
    now = [0]
    kept = ResponseReplayStore(AesGcmCipher(SECRET), ReplaySection(hours=2), lambda: now[0])
    asking = IdempotencyRecord("k", "short", b"d" * 32, "req_short")
    kept.store(stack.database, asking, StoredResponse(200, (), b"x"), until_us=HOUR_US)
    now[0] = HOUR_US - 1
    assert kept.find(stack.database, asking) == StoredResponse(200, (), b"x")
    now[0] = HOUR_US
    assert kept.find(stack.database, asking) is None


@pytest.mark.long
def test_two_workers_and_a_killed_host_know_it(make_host, patiently):
    idempotency = {"replay": {"enabled": True, "key_env": "KEPT"}}
    server = {"port": 0, "workers": 2, "timeouts": {"drain_s": 8}, "idempotency": idempotency}
    host = make_host(server=server)
    host.environ["KEPT"] = SECRET
    host.start()
    headers = {"authorization": f"Bearer {host.token}", "idempotency-key": "once"}
    body = {"model": "own", **PATHS["/v1/chat/completions"]}

    def asked() -> httpx.Response:  # each on a connection of its own
        return host.client.post(f"{host.url}/v1/chat/completions", json=body, headers=headers)

    first, calls = asked(), len(host.upstream())
    assert all(is_again(asked(), first) for _ in range(30))
    host.kill_all()
    host.start()
    assert all(is_again(asked(), first) for _ in range(30))
    name = first.headers["x-request-id"]
    patiently(lambda: [row for row in host.rows() if row["request_id"] == name])
    assert calls == len(host.upstream()) - 1  # its start's own question
    assert host.terminate() == 0


# ---------------------------------------------------------------- what the tests do


def away(*_: object, **__: object) -> None:
    raise OperationalError("INSERT", {"sealed": WORD}, OSError("gone"))


async def restarted(stack) -> None:
    server, task = stack._servers.pop()
    server.should_exit = True
    await task
    stack.registry = CollectorRegistry()  # a process of its own would have one
    await stack.start_gateway()


def rows(stack) -> list[tuple[str, int]]:
    with stack.database.connect() as connection:
        found = connection.execute(text("SELECT name, size FROM kept_answers"))
        return [(name, size) for name, size in found]


def sealed(stack, name: str) -> bytes:
    with stack.database.connect() as connection:
        query = text("SELECT sealed FROM kept_answers WHERE name = :name")
        return bytes(connection.execute(query, {"name": name}).scalar_one())


def write(stack, name: str, data: bytes) -> None:
    with stack.database.begin() as connection:
        query = text("UPDATE kept_answers SET sealed = :data WHERE name = :name")
        connection.execute(query, {"name": name, "data": data})


def lies_there(stack, word: bytes) -> bool:
    """In the database's files, or in any column of the table where they are a server's."""
    if stack.database.dialect.name == "sqlite":
        files = stack.state.glob("ledger.db*")
        return any(word in path.read_bytes() for path in files)
    with stack.database.connect() as connection:
        found = connection.execute(text("SELECT * FROM kept_answers")).mappings()
        return any(word in json.dumps(dict(row), default=_latin).encode("latin-1") for row in found)


def _latin(data: bytes) -> str:
    return bytes(data).decode("latin-1")
