"""A simulated external API: OpenAI's dialect, seeded latency, rate limit headers, faults.

    python -m backends.simulator.provider --name openai --port 0 --name anthropic --port 0

It has no engine and no `/metrics`: like a real provider, it shows its latency, its limits and its
usage. Any model name is served unless `--model` restricts them. Header, model list and text say
that it is simulated. Files and batches are in `jobs`. `/_journal` and `/_faults` are for tests.
"""

import argparse
import asyncio
import random
import time
import zlib
from collections.abc import MutableMapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from backends.simulator import asgi, jobs, transcripts
from backends.simulator.asgi import Receive, Scope, Send
from backends.simulator.dialect import RefusedError, SimulatedRules, parse
from backends.simulator.faults import Fault, Faults
from backends.simulator.generation import Generation, GenerationContext, Headers, refusal_entry
from backends.simulator.jobs import SimulatedBatches
from backends.simulator.journal import RequestJournal
from backends.simulator.latency import Latency, LatencySource
from backends.simulator.quota import Quota
from backends.simulator.routes import (
    API_ROUTES,
    BATCH_ROUTES,
    CallSite,
    FlowingReader,
    Reader,
    SimulatedRoute,
)
from backends.simulator.running import bind, run
from backends.simulator.server import LINES, OWNER

CONTEXT_TOKENS = 1_000_000
BLOCK_TOKENS = 128  # granularity of the cached tokens that it reports
ERRORS = {"model": (404, "model_not_found"), "too_long": (400, "context_length_exceeded")}
TYPES = {429: "rate_limit_error", 404: "invalid_request_error", 400: "invalid_request_error"}


class SimulatedError(NamedTuple):
    """One error answer."""

    status: int
    message: str
    param: str | None = None
    code: str | None = None


class SimulatedProvider:
    """The ASGI application of one simulated provider."""

    def __init__(
        self,
        name: str,
        *,
        rng: random.Random,
        journal: RequestJournal,
        quota: Quota,
        models: Sequence[str] = (),
        latency: Latency | None = None,
    ) -> None:
        self.faults = Faults()
        self.continues = False  # with an answer whose client disconnects, as some providers do
        self.jobs = SimulatedBatches(self._answer_batch_line)
        self._name = name
        self._rng = rng
        self._journal = journal
        self._quota = quota
        self._rules = SimulatedRules(tuple(models), CONTEXT_TOKENS, BLOCK_TOKENS, images=True)
        self._latency = latency or Latency()
        self._served = 0
        self._created = int(time.time())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        elif scope["path"] == "/_faults":
            await self._trouble(scope, receive, send)
        elif scope["path"].startswith(jobs.PATHS):
            await self._job(scope, receive, send)
        elif scope["method"] == "GET":
            await self._get(scope["path"], send)
        elif scope["method"] == "POST":
            try:
                body = await asgi.read_body(receive)
                await self._post(body, scope, receive, send)
            except asgi.GoneError:
                return
            except RefusedError as error:
                status, code = ERRORS.get(error.kind, (400, None))
                problem = SimulatedError(status, error.message, error.param, code)
                await self._refuse(scope, send, problem)
        else:
            await asgi.reply_json(send, 405, {"error": {"message": "method not allowed"}})

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        self._source = LatencySource(
            self._latency,
            self._rng,
            asyncio.get_running_loop(),
            block_tokens=BLOCK_TOKENS,
        )
        self._setting = GenerationContext(
            self._source, self._journal, f"{OWNER}-{self._name}", time.time
        )
        await send({"type": "lifespan.startup.complete"})
        await receive()
        self.jobs.close()
        self._journal.close()
        await send({"type": "lifespan.shutdown.complete"})

    async def _get(self, path: str, send: Send) -> None:
        if path == "/v1/models":
            data = [
                {"id": name, "object": "model", "created": self._created, "owned_by": OWNER}
                for name in self._rules.models
            ]
            await asgi.reply_json(send, 200, {"object": "list", "data": data})
        elif path == "/_journal":
            await asgi.reply(send, 200, self._journal.lines(), content_type=LINES)
        else:
            await asgi.reply_json(send, 404, {"error": {"message": "no such route"}})

    async def _trouble(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] == "DELETE":
            self.faults.clear()
            await asgi.reply_json(send, 200, {"queued": 0})
            return
        try:
            answer = self.faults.add(await asgi.read_body(receive))
        except (msgspec.DecodeError, asgi.GoneError) as error:
            await asgi.reply_json(send, 400, {"error": {"message": str(error)}})
        else:
            await asgi.reply_json(send, 200, answer)

    async def _job(self, scope: Scope, receive: Receive, send: Send) -> None:
        fault = self.faults.next() if scope["method"] == "POST" else None
        if fault is not None and fault.fault == "status":
            await self._fail(scope, send, fault)
        else:
            await self.jobs(scope, receive, send)

    async def _answer_batch_line(
        self, path: str, body: bytes, request_id: str
    ) -> tuple[int, bytes]:
        """Answer one line of a batch like any request; queued faults do not apply to it."""
        status, parts = 500, b""

        async def keep(message: MutableMapping[str, Any]) -> None:
            nonlocal status, parts
            status = message.get("status", status)
            parts += message.get("body", b"")

        scope = {"path": path, "headers": [(b"x-request-id", request_id.encode())]}
        try:
            await BATCH_ROUTES[path].serve(
                self, SimulatedRoute(body, scope, asgi.hear_nothing, keep)
            )
        except RefusedError as error:
            kind, code = ERRORS.get(error.kind, (400, None))
            await self._refuse(scope, keep, SimulatedError(kind, error.message, error.param, code))
        return status, parts

    async def _post(self, body: bytes, scope: Scope, receive: Receive, send: Send) -> None:
        fault = self.faults.next()
        if fault is not None and fault.fault == "status":
            await self._fail(scope, send, fault)
            return
        kind = API_ROUTES.get(scope["path"])
        if kind is None:
            await asgi.reply_json(send, 404, {"error": {"message": "no such route"}})
        else:
            await kind.serve(self, SimulatedRoute(body, scope, receive, send, fault))

    async def complete(self, call: SimulatedRoute, *, chat: bool) -> None:
        _, scope, receive, send, fault = call
        ask = parse(call.body, chat=chat, rules=self._rules)
        now_s = asyncio.get_running_loop().time()
        if not self._quota.spend(ask.prompt_tokens, now_s):
            message = f"Rate limit reached for {ask.model}. Please try again later."
            retry = (b"retry-after", str(self._quota.wait_s(now_s)).encode())
            headers = (retry, *self._quota.headers(now_s))
            problem = SimulatedError(429, message, code="rate_limit_exceeded")
            await self._refuse(scope, send, problem, headers)
            return
        self._served += 1
        number = f"{zlib.crc32(self._name.encode()):08x}{self._created:08x}{self._served:08x}"
        generation = Generation(self._setting, ask, id=number, scope=scope)
        self._source.stall_at = None
        cut_after = None
        if fault is not None and fault.fault == "stall":
            self._source.stall_at = fault.after_tokens
        elif fault is not None:
            cut_after = fault.after_tokens
        heard = asgi.hear_nothing if self.continues else receive
        await generation.run(heard, send, headers=self._quota.headers(now_s), cut_after=cut_after)

    def _number(self) -> str:
        self._served += 1
        return f"{self._created:08x}{self._served:08x}"

    async def read(self, call: SimulatedRoute, reader: Reader) -> None:
        site = CallSite(call.scope["path"], api=True, number=self._number)
        request = reader(call.body, self._rules, site)
        ttft_s, _ = self._latency.draw(self._rng)
        await asyncio.sleep(ttft_s)
        await asgi.reply(call.send, 200, request.answer())

    async def transcribe(self, call: SimulatedRoute) -> None:
        """Answer a transcription; like whisper-1, models that count seconds never stream."""
        send, fault = call.send, call.fault
        content_type = asgi.header(call.scope, b"content-type")
        heard = transcripts.parse_form(call.body, content_type, self._rules)
        ttft_s, tpot_s = self._latency.draw(self._rng)
        await asyncio.sleep(ttft_s)
        if not (heard.stream and heard.counts_tokens):
            answer, kind = transcripts.whole_answer(heard)
            await asgi.reply(send, 200, answer, content_type=kind)
            return
        await asgi.start(send, 200, [asgi.EVENTS])
        for place, event in enumerate(transcripts.events(heard)):
            if fault is not None and place >= fault.after_tokens:
                break
            await asgi.more(send, event)
            await asyncio.sleep(tpot_s)
        await asgi.end(send)

    async def flow(self, call: SimulatedRoute, reader: FlowingReader) -> None:
        """Send audio or images in pieces, and break off early if a fault says so."""
        site = CallSite(call.scope["path"], api=True, number=self._number)
        media, parts = reader(call.body, self._rules, site)
        ttft_s, tpot_s = self._latency.draw(self._rng)
        await asyncio.sleep(ttft_s)
        await asgi.start(call.send, 200, [(b"content-type", media.encode())])
        for place, piece in enumerate(parts):
            if call.fault is not None and place >= call.fault.after_tokens:
                return  # its server drops the connection in mid-answer
            await asgi.more(call.send, piece)
            await asyncio.sleep(tpot_s)
        await asgi.end(call.send)

    async def _fail(self, scope: Scope, send: Send, fault: Fault) -> None:
        headers: Headers = ()
        if fault.retry_after_s is not None:
            headers = ((b"retry-after", f"{fault.retry_after_s:g}".encode()),)
        message = "The server had an error while processing your request (injected)."
        await self._refuse(scope, send, SimulatedError(fault.status, message), headers)

    async def _refuse(
        self, scope: Scope, send: Send, problem: SimulatedError, headers: Headers = ()
    ) -> None:
        self._journal.append(refusal_entry(scope, problem.status, time.time()))
        error = {
            "message": problem.message,
            "type": TYPES.get(problem.status, "server_error"),
            "param": problem.param,
            "code": problem.code,
        }
        await asgi.reply_json(send, problem.status, {"error": error}, *headers)


def main(arguments: Sequence[str] | None = None) -> None:
    latency = Latency()
    parser = argparse.ArgumentParser(description="simulated external APIs in one process")
    parser.add_argument("--name", action="append", required=True, help="may be repeated")
    parser.add_argument("--port", action="append", type=int, required=True, help="one per name")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--model", action="append", default=[], help="served names; default: any")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--ttft-ms", type=float, default=latency.ttft_s * 1e3, help="median")
    parser.add_argument("--tpot-ms", type=float, default=latency.tpot_s * 1e3, help="median")
    parser.add_argument("--requests-per-minute", type=int, default=10_000)
    parser.add_argument("--tokens-per-minute", type=int, default=20_000_000)
    parser.add_argument("--speed", type=float, default=1.0, help="simulated seconds per second")
    parser.add_argument("--batch-s", type=float, default=2.0, help="before a batch's first line")
    parser.add_argument(
        "--on-disconnect", choices=("stops", "continues"), default="stops",
        help="what becomes of an answer whose client leaves",
    )  # fmt: skip
    parser.add_argument("--journal", type=Path, help="append what was served to FILE.NAME")
    given = parser.parse_args(arguments)
    if len(given.name) != len(given.port):
        parser.error("give one --port for each --name")
    latency = Latency(given.ttft_ms / 1e3 / given.speed, tpot_s=given.tpot_ms / 1e3 / given.speed)
    served = []
    for place, (name, port) in enumerate(zip(given.name, given.port, strict=True)):
        path = None if given.journal is None else given.journal.with_suffix(f".{name}")
        provider = SimulatedProvider(
            name,
            rng=random.Random(given.seed + place),  # noqa: S311 - latencies, not secrets
            journal=RequestJournal(path),
            quota=Quota(given.requests_per_minute, given.tokens_per_minute),
            models=given.model,
            latency=latency,
        )
        provider.continues = given.on_disconnect == "continues"
        provider.jobs.begin_s = given.batch_s / given.speed
        served.append((f"provider {name}", provider, bind(given.host, port)))
    run(served)


if __name__ == "__main__":
    main()
