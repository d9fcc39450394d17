"""One entry for each request, however it ends, and nothing left running."""

import asyncio

import pytest

from backends.simulator.dialect import RefusedError, SimulatedRules, parse
from backends.simulator.generation import CutError, Generation, GenerationContext, refusal_entry
from backends.simulator.journal import RequestJournal
from backends.simulator.shape import TooLargeError

SCOPE = {"path": "/v1/chat/completions", "headers": [(b"x-request-id", b"req-1")]}
BODY = b'{"model":"m","messages":[{"role":"user","content":"x"}],"max_tokens":6,"ignore_eos":true'


class Steps:
    """A source that generates a token at each turn of the loop, up to a limit."""

    def __init__(self, limit=10**6):
        self.limit = limit
        self.running = set()

    def start(self, choice, wake):
        progress = Progress(choice.script.tokens, min(choice.script.tokens, self.limit), wake)
        self.running.add(progress)
        return progress

    def stop(self, progress):
        progress.task.cancel()
        self.running.discard(progress)


class Progress:
    def __init__(self, tokens, until, wake):
        self.generated, self.cached_tokens, self.done = 0, 16, False
        self.submitted_s, self.first_s = 0.0, 0.5
        self.task = asyncio.ensure_future(self.go(tokens, until, wake))

    async def go(self, tokens, until, wake):
        while self.generated < until:
            await asyncio.sleep(0)
            self.generated += 1
            self.done = self.generated == tokens
            wake()


class LateReader(Steps):
    """A source whose every token is there before anybody looks."""

    def start(self, choice, wake):
        progress = super().start(choice, wake)
        progress.task.cancel()

        def end():
            progress.generated, progress.done = choice.script.tokens, True
            wake()

        asyncio.get_running_loop().call_later(0.0, end)
        return progress


class RefusingModel:
    def start(self, choice, wake):
        raise TooLargeError("9 tokens do not fit")


def setting(source):
    return GenerationContext(source, RequestJournal(), "fp", lambda: 7.0)


def ask(more=b"}"):
    return parse(BODY + more, chat=True, rules=SimulatedRules((), 1000, 16))


async def run(setting, ask, *, gone=False, **options):
    sent = []
    queue = asyncio.Queue()
    if gone:
        queue.put_nowait({"type": "http.disconnect"})

    async def send(message):
        sent.append(message)

    generation = Generation(setting, ask, id="1", scope=SCOPE)
    return await generation.run(queue.get, send, **options), sent


@pytest.mark.parametrize("more", [b"}", b',"stream":true}', b',"n":2}'])
async def test_a_finished_request(more):
    source = Steps()
    made = setting(source)
    finished, sent = await run(made, ask(more))
    entry = made.journal._entries[-1]
    count = 12 if b'"n":2' in more else 6
    assert finished
    assert entry.status == "finished"
    assert (entry.completion_tokens, entry.sent_tokens) == (count, count)
    assert entry.cached_tokens == 16  # the prompt once, however many choices
    assert entry.request_id == "req-1"
    assert set(entry.finish_reasons) == {"length"}
    assert sent[-1].get("more_body") is None
    assert not source.running


async def test_a_client_that_left():
    source = Steps(limit=3)
    made = setting(source)
    finished, _ = await run(made, ask(b',"stream":true}'), gone=True)
    assert not finished
    assert made.journal._entries[-1].status == "aborted"
    assert not source.running


@pytest.mark.parametrize("more", [b"}", b',"stream":true}'])
async def test_a_cut_answer(more):
    source = Steps()
    made = setting(source)
    with pytest.raises(CutError):
        await run(made, ask(more), cut_after=2)
    assert made.journal._entries[-1].status == "broken"
    assert not source.running


async def test_what_the_source_cannot_hold_is_refused():
    made = setting(RefusingModel())
    with pytest.raises(RefusedError):
        await run(made, ask())
    assert made.journal._entries[-1].status == "refused"


def test_a_refusal_has_no_tokens():
    entry = refusal_entry(SCOPE, 404, 3.0)
    assert (entry.status, entry.http_status, entry.completion_tokens) == ("refused", 404, 0)


async def test_the_first_token_has_an_event_of_its_own_however_late_its_reader_is():
    """Clients that count what a stream brought failed on a loaded machine, now and then."""
    _, sent = await run(setting(LateReader()), ask(b',"stream":true}'))
    body = b"".join(message.get("body", b"") for message in sent)
    assert [body.count(part) for part in (b'"role":"assistant"', b'"content":"')] == [1, 3]
