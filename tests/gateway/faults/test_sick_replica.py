"""One of several replicas is sick: found, left alone, its requests answered by the others.

It answers with errors, or takes requests and says nothing while its metrics look as ever. Within
two seconds only those who ask whether it is well go there; nobody is told of it by an error, the
others are used on, and it gets its share again once it is well. The control: without whoever looks
after engines that say nothing, requests go on to vanish there.
"""

import socket
import time
from itertools import pairwise

import pytest

REPLICAS = 3
FOUND_S = 2.0
PER_S = 30.0
TOKENS = 80  # so that a few are always under way at each
SICK_S = 3.0
LONG_S = 60.0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture
def replicas(run_stack, make_proxy, stranger_on, patiently):
    """(host, a proxy before each of its engines)."""
    ports = [free_port() for _ in range(REPLICAS)]
    engines = [stranger_on(port, "llama") for port in ports]
    proxies = [make_proxy(port) for port in ports]

    def behind(found, _ports) -> None:
        engine = found["pools"]["main"]["engine"]
        engine["endpoints"] = [f"http://127.0.0.1:{proxy.port}/v1" for proxy in proxies]

    with run_stack(adjust=behind) as stack:
        patiently(lambda: all(stack.board.published(row)[10] for row in range(REPLICAS)))
        yield stack, proxies
    del engines


def sick(rule, answers, kind: str):
    if kind == "hole":
        return rule(after_bytes=0, ending="hole")
    return rule(answer=answers.whole(b"{}", b"HTTP/1.1 500 Oh\r\n"))


def ask(stack, crowd, seconds: float):
    return crowd.ask(stack.port, PER_S, seconds, stack.token, model="own", max_tokens=TOKENS)


def answered(asked, seconds: float) -> bool:
    return len(asked) == round(PER_S * seconds) and all(request.took_s for request in asked)


def shares(asked) -> dict[str, int]:
    found: dict[str, int] = {}
    for request in asked:
        found[request.backend] = found.get(request.backend, 0) + 1
    return found


def falls_ill(replicas, crowd, rule, answers, patiently, kind: str, sick_s: float) -> None:
    stack, (ill, *_) = replicas
    begun_s, ill.rule = time.monotonic(), sick(rule, answers, kind)
    during = ask(stack, crowd, sick_s)
    patiently(lambda: answered(during, sick_s), sick_s + 20)
    tried = [event.at_s - begun_s for event in ill.seen]
    later = [at_s for at_s in tried if at_s > FOUND_S]
    ill.rule, well_s = rule(), time.monotonic()

    def is_back() -> bool:
        again = ask(stack, crowd, 0.5)
        patiently(lambda: answered(again, 0.5))
        return len(shares(again)) == REPLICAS and min(shares(again).values()) > 1

    patiently(is_back, 60)
    back_s, found = time.monotonic() - well_s, [at_s for at_s in tried if at_s <= FOUND_S]
    slowest = max(item.first_s or item.took_s for item in during)
    print(f"\n{kind}, {sick_s:.0f} s: {len(tried)} of {len(during)} requests went to the sick one,")
    print(f"the last within {max(found):.2f} s but for {len(later)} that asked how it is; slowest")
    print(f"first word {slowest:.2f} s; {shares(during)}; back {back_s:.1f} s after it was well")
    assert {item.status for item in during} == {200}
    assert all(item.whole for item in during)
    assert len(later) <= 1 + (sick_s - FOUND_S) / 1.0
    assert all(second - first > 0.9 for first, second in pairwise(later))
    healthy = sorted(shares(during).values())[1 - REPLICAS :]
    assert min(healthy) > len(during) / REPLICAS / 2, "the others are not shut out"


def vanish(replicas, crowd, rule, answers, patiently, monkeypatch) -> None:
    """The negative control: nobody looks after engines that say nothing."""
    stack, (ill, *_) = replicas
    monkeypatch.setattr(stack.app.hot._dispatcher.silences, "check_engines", lambda: None)
    ill.seen.clear()
    ill.rule = sick(rule, answers, "hole")
    during = ask(stack, crowd, FOUND_S)

    def hung() -> int:
        return sum(item.took_s is None for item in during)

    patiently(lambda: len(during) == PER_S * FOUND_S and hung() == len(ill.seen))
    print(f"without: {hung()} of {len(during)} went to the sick one, and hang")
    assert hung() > 3
    ill._call(ill._end())
    patiently(lambda: not hung())


def test_a_silent_replica_is_found_left_alone_and_taken_back(
    replicas, crowd, rule, answers, patiently, monkeypatch
) -> None:
    falls_ill(replicas, crowd, rule, answers, patiently, "hole", SICK_S)
    vanish(replicas, crowd, rule, answers, patiently, monkeypatch)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["hole", "errors"])
def test_it_is_left_alone_for_as_long_as_it_is_sick(
    replicas, crowd, rule, answers, patiently, kind: str
) -> None:
    falls_ill(replicas, crowd, rule, answers, patiently, kind, LONG_S)
