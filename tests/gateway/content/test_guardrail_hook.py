"""A guardrail says in time and in form what it found, or has failed."""

import json
from typing import Any

import pytest

from deploy.upstream_server import UpstreamServer
from gateway.config.schema_content import ContentHookSection
from gateway.content.guardrail_hook import GuardrailHook, HookFailure


class Guardrail(UpstreamServer):
    """Answers with `says`, after `asked` has what it got."""

    def __init__(self) -> None:
        super().__init__()
        self.says: Any = {}
        self.status = 200
        self.silent = False
        self.asked: list[Any] = []

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        parts = []
        while (message := await receive())["type"] == "http.request":
            parts.append(message.get("body", b""))
            if not message.get("more_body"):
                break
        self.asked.append(json.loads(b"".join(parts)))
        if self.silent:
            await receive()
            return
        start = {"type": "http.response.start", "status": self.status, "headers": []}
        await send(start)
        body = self.says if isinstance(self.says, bytes) else json.dumps(self.says).encode()
        await send({"type": "http.response.body", "body": body})


@pytest.fixture
def guardrail():
    with Guardrail() as found:
        yield found


@pytest.fixture
async def hook(guardrail):
    section = ContentHookSection(url=f"http://127.0.0.1:{guardrail.port}/x", timeout_ms=400)
    made = GuardrailHook("house", section)
    yield made
    await made.aclose()


async def test_it_gets_the_texts_and_says_what_it_found(hook, guardrail) -> None:
    guardrail.says = {"found": {"person": 2}, "texts": ["x", "y"]}
    answer = await hook.ask(["a", "b"], "r1", "m")
    assert (answer.count, answer.texts) == (2, ["x", "y"])
    assert guardrail.asked == [
        {"stage": "before", "request_id": "r1", "model": "m", "texts": ["a", "b"]}
    ]


@pytest.mark.parametrize(
    ("says", "status"),
    [({}, 500), (b"nonsense", 200), ({"texts": ["one"]}, 200), ({"found": 3}, 200),
     ({"texts": ["x" * 9000, "y"]}, 200)],
)  # fmt: skip
async def test_what_is_no_answer_is_a_failure(hook, guardrail, says, status) -> None:
    guardrail.says, guardrail.status = says, status
    with pytest.raises(HookFailure):
        await hook.ask(["a", "b"], "r1", "m")


async def test_a_slow_one_fails_in_time(hook, guardrail) -> None:
    guardrail.silent = True
    with pytest.raises(HookFailure, match="in time"):
        await hook.ask(["a"], "r1", "m")


async def test_one_that_is_not_there_fails() -> None:
    hook = GuardrailHook("gone", ContentHookSection(url="http://127.0.0.1:1/"))
    with pytest.raises(HookFailure):
        await hook.ask(["a"], "r1", "m")
    await hook.aclose()


class Presidio(Guardrail):
    """Speaks as Presidio's analyzer: a list for each text; an error has status 500."""

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        assert (scope["method"], scope["path"]) == ("POST", "/analyze")
        await super().__call__(scope, receive, send)


@pytest.fixture
async def presidio():
    with Presidio() as analyzer:
        section = ContentHookSection(
            url=f"http://127.0.0.1:{analyzer.port}/analyze", form="presidio", language="de",
            timeout_ms=10_000,
        )  # fmt: skip
        hook = GuardrailHook("people", section)
        yield analyzer, hook
        await hook.aclose()


def person(start: int, end: int, score: float = 0.85) -> dict[str, Any]:
    find = {"entity_type": "PERSON", "start": start, "end": end, "score": score}
    return {**find, "analysis_explanation": None}


async def test_presidio_gets_all_texts_at_once_and_counts_by_entity(presidio) -> None:
    analyzer, hook = presidio
    analyzer.says = [[person(0, 3), person(4, 7, 0.2)], []]
    answer = await hook.ask(["Ada met Bob", "b"], "r1", "m")
    assert (answer.found, answer.texts, answer.count) == ({"person": 1}, None, 1)
    assert analyzer.asked == [
        {"text": ["Ada met Bob", "b"], "language": "de", "score_threshold": 0.5}
    ]
    assert (await hook.ask([], "r2", "m")).count == 0
    assert len(analyzer.asked) == 1, "it refuses an empty list"


@pytest.mark.parametrize(
    ("says", "status"),
    [
        ({"error": "No matching recognizers were found to serve the request."}, 500), ([[]], 200),
        ([[person(0, 99)], []], 200), ([[{"entity_type": "PERSON"}], []], 200), (b"", 200),
        ({"found": {}}, 200),
    ],
)  # fmt: skip
async def test_what_presidio_does_not_tell_in_form_is_a_failure(presidio, says, status) -> None:
    analyzer, hook = presidio
    analyzer.says, analyzer.status = says, status
    with pytest.raises(HookFailure):
        await hook.ask(["Ada", "b"], "r1", "m")
