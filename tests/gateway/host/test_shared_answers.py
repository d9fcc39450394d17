"""The parent's memory is every worker's: what one answered, the other one answers again."""

from pathlib import Path

import httpx

from gateway.config.settings import parse
from gateway.host.shared_answers import SharedAnswers
from gateway.request.cache.answer_memory import ANSWERS_FD

WORDS = "x-breakeven-cache"


def test_nothing_is_made_while_it_is_off() -> None:
    assert SharedAnswers(parse("models: {}", name="t")).descriptors == ()
    shared = SharedAnswers(parse("response_cache: {enabled: true}", name="t"))
    (descriptor,) = shared.descriptors
    assert shared.variables == {ANSWERS_FD: str(descriptor)}
    assert "memfd:" in str(Path(f"/proc/self/fd/{descriptor}").readlink())  # it has no file


def test_two_workers_know_each_others_answers_and_a_new_host_knows_none(make_host) -> None:
    host = make_host(response_cache={"enabled": True})
    host.start()
    headers = {"authorization": f"Bearer {host.token}"}
    messages = [{"role": "user", "content": "once"}]
    body = {"model": "own", "messages": messages, "temperature": 0, "max_tokens": 3}

    def asked() -> httpx.Response:  # each on a connection of its own
        return host.client.post(f"{host.url}/v1/chat/completions", json=body, headers=headers)

    first, calls = asked(), len(host.upstream())
    assert first.headers[WORDS] == "miss"
    again = [asked() for _ in range(30)]
    assert {answer.headers[WORDS] for answer in again} == {"hit"}
    assert {answer.content for answer in again} == {first.content}
    assert len(host.upstream()) == calls
    host.kill_all()
    host.start()
    assert asked().headers[WORDS] == "miss"  # answers are nowhere but in memory
    assert host.terminate() == 0
