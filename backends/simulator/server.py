"""The simulated engine over HTTP: vLLM's routes, errors and metrics, paced by step model.

    python -m backends.simulator.server --profile rtx4090-llama-3.1-8b --model llama --port 0

A client's disconnect stops the engine's work on its request at once. Every answer has the header
`x-simulated`, every model is owned by `breakeven-simulator`. `/_journal` lists the served requests.
The application is plain ASGI; the epoch clock is a parameter.
"""

import argparse
import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import msgspec

from backends.simulator import asgi, transcripts
from backends.simulator.answers import SimulatedAnswer
from backends.simulator.asgi import DisconnectWatch, Receive, Scope, Send
from backends.simulator.dialect import (
    CompletionRequest,
    RefusedError,
    SimulatedChoice,
    SimulatedRules,
    parse,
)
from backends.simulator.generation import (
    Generation,
    GenerationContext,
    GenerationProgress,
    refusal_entry,
)
from backends.simulator.journal import RequestJournal
from backends.simulator.kv_exchange import (
    KvExchange,
    KvLoadError,
    TransferMembers,
    transfer_members,
)
from backends.simulator.meters import Meters
from backends.simulator.pacing import PacedSequence, Pacer
from backends.simulator.profiles import PROFILES
from backends.simulator.routes import ENGINE_ROUTES, CallSite, FlowingReader, Reader, SimulatedRoute
from backends.simulator.running import bind, run
from backends.simulator.shape import EngineShape, KvHandover
from backends.simulator.shapefile import ShapeFileError, profile_of

DEFAULT = "rtx4090-llama-3.1-8b"
OWNER = "breakeven-simulator"
ERRORS = {
    "model": (404, "NotFoundError"),
    "too_long": (400, "BadRequestError"),
    "validation": (400, "Bad Request"),
}
BUSY = (
    "The engine is currently busy and cannot accept new requests. Please try again later or on a"
    " different instance."
)
TEXT = (b"content-type", b"text/plain; version=0.0.4; charset=utf-8")
LINES = (b"content-type", b"application/jsonl")


@dataclass(frozen=True, slots=True)
class EngineSource:
    """Sequences in the paced engine."""

    pacer: Pacer
    kv: KvHandover | None = None

    def start(self, choice: SimulatedChoice, wake: Callable[[], None]) -> GenerationProgress:
        return self.pacer.submit(
            prompt_tokens=choice.prompt_tokens,
            output_tokens=choice.script.tokens,
            hashes=choice.hashes,
            wake=wake,
            kv=self.kv,
        )

    def stop(self, progress: GenerationProgress) -> None:
        self.pacer.abort(cast("PacedSequence", progress))


class SimulatedEngineApp:
    """The ASGI application of one simulated engine."""

    def __init__(
        self,
        shape: EngineShape,
        model: str,
        *,
        profile: str,
        journal: RequestJournal,
        max_queued: int | None = None,
        speed: float = 1.0,
    ) -> None:
        self._kv_lease_s: float | None = None
        self.handing: KvExchange | None = None
        self.meters = Meters(model)
        self._shape = shape
        self._model = model
        self._profile = profile
        self._journal = journal
        self._max_queued = max_queued
        self._speed = speed
        self._rules = SimulatedRules((model,), shape.context_tokens, shape.block_tokens)
        self._served = 0
        self._created = int(time.time())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        elif scope["method"] == "GET":
            await self._get(scope["path"], send)
        elif scope["method"] == "POST":
            try:
                body = await asgi.read_body(receive)
                await self._post(body, scope, receive, send)
            except asgi.GoneError:
                return
            except RefusedError as error:
                status, kind = ERRORS[error.kind]
                self._journal.append(refusal_entry(scope, status, time.time()))
                await _error(send, status, kind, error.message, error.param)
        else:
            await asgi.reply_json(send, 405, {"detail": "Method Not Allowed"})

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        """Create the engine on the serving loop at startup."""
        await receive()
        self.pacer = Pacer(self._shape, self.meters, asyncio.get_running_loop(), speed=self._speed)
        if self._kv_lease_s is not None:
            name = f"{self._profile}-{id(self):x}"
            self.handing = KvExchange(self.pacer, name, self._kv_lease_s, self._speed)
        self._setting = GenerationContext(
            EngineSource(self.pacer), self._journal, f"{OWNER}-{self._profile}", time.time
        )
        await send({"type": "lifespan.startup.complete"})
        await receive()
        self._journal.close()
        await send({"type": "lifespan.shutdown.complete"})

    async def _get(self, path: str, send: Send) -> None:
        if path in {"/health", "/ping"}:
            await asgi.reply(send, 200, b"")
        elif path == "/metrics":
            self.pacer.catch_up()
            body = self.meters.exposition(self.pacer.engine)
            await asgi.reply(send, 200, body, content_type=TEXT)
        elif path == "/v1/models":
            await asgi.reply_json(send, 200, {"object": "list", "data": self._cards()})
        elif path == "/version":
            await asgi.reply_json(send, 200, {"version": OWNER, "profile": self._profile})
        elif path == "/_kv" and self.handing is not None:
            told = {"kept": self.handing.kept, "expired": self.handing.expired}
            await asgi.reply_json(send, 200, told)
        elif path == "/_journal":
            await asgi.reply(send, 200, self._journal.lines(), content_type=LINES)
        else:
            await asgi.reply_json(send, 404, {"detail": "Not Found"})

    async def _post(self, body: bytes, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"]
        kind = ENGINE_ROUTES.get(path)
        if kind is not None:
            await kind.serve(self, SimulatedRoute(body, scope, receive, send))
        elif path in {"/_kv/fetch", "/_kv/free"}:
            await self._exchange_kv(path, body, send)
        elif path == "/reset_prefix_cache":
            self.pacer.engine.reset_prefix_cache()
            await asgi.reply(send, 200, b"")
        else:
            await asgi.reply_json(send, 404, {"detail": "Not Found"})

    async def complete(self, call: SimulatedRoute, *, chat: bool) -> None:
        ask = parse(call.body, chat=chat, rules=self._rules)
        unfinished = self.pacer.engine.unfinished + len(ask.choices)
        if self._max_queued is not None and unfinished > self._max_queued:
            self.meters.rejections += 1
            self._journal.append(refusal_entry(call.scope, 503, time.time()))
            await _error(call.send, 503, "Service Unavailable", BUSY, None)
            return
        asked = None if self.handing is None else transfer_members(call.body)
        setting = self._setting
        if asked is not None:
            handed = await self._hand_over(asked, call, ask)
            if handed is None:
                return
            setting = handed
        generation = Generation(setting, ask, id=self._number(), scope=call.scope)
        if await generation.run(call.receive, call.send):
            for choice in ask.choices:
                self.meters.record_ended(choice.script.finish_reason)

    async def _hand_over(
        self, asked: TransferMembers, call: SimulatedRoute, ask: CompletionRequest
    ) -> GenerationContext | None:
        """Fetch the prompt's KV, or have it kept; `None` if answered already or disconnected."""
        handing, server = self.handing, call.scope["server"]
        assert handing is not None  # the caller looked
        if asked.do_remote_decode:
            keeper = KvHandover(is_kept=True)

            def offer(progress: GenerationProgress) -> dict[str, Any]:
                kept = cast("PacedSequence", progress)
                return handing.offer(kept.id, kept.prompt_tokens, server)

            return replace(self._setting, source=EngineSource(self.pacer, keeper), offer=offer)
        if not asked.do_remote_prefill:
            return self._setting
        watch = DisconnectWatch(call.receive)
        try:
            moved = await handing.fetch(asked, watch.left)
        except KvLoadError as error:
            self._journal.append(refusal_entry(call.scope, 500, time.time()))
            opening = self._opening_events(ask) if ask.stream else None
            await _load_failure(call.send, str(error), opening)
            return None
        finally:
            watch.close()
        if moved is None:
            self._journal.append(refusal_entry(call.scope, 499, time.time()))
            return None
        return replace(self._setting, source=EngineSource(self.pacer, moved))

    async def _exchange_kv(self, path: str, body: bytes, send: Send) -> None:
        """Answer another engine that fetches KV or frees it."""
        named = msgspec.json.decode(body)
        found = named.get("request_id") if isinstance(named, dict) else None
        if self.handing is None or not isinstance(found, str):
            await asgi.reply_json(send, 404, {"detail": "Not Found"})
        elif path == "/_kv/fetch":
            tokens = self.handing.look_up(found)
            await asgi.reply_json(send, 404 if tokens is None else 200, {"tokens": tokens})
        else:
            self.pacer.catch_up()
            await asgi.reply_json(send, 200, {"freed": self.handing.free(found)})

    def _number(self) -> str:
        self._served += 1
        return f"{self._created:08x}{self._served:08x}"

    async def read(self, call: SimulatedRoute, reader: Reader) -> None:
        """Answer a parsed request after one prefill's time, without using the engine's cache."""
        site = CallSite(call.scope["path"], api=False, number=self._number)
        request = reader(call.body, self._rules, site)
        await self._prefill(request.tokens)
        await asgi.reply(call.send, 200, request.answer())

    async def flow(self, call: SimulatedRoute, _reader: FlowingReader) -> None:
        """Answer 404: engines generate no audio or images."""
        await asgi.reply_json(call.send, 404, {"detail": "Not Found"})

    async def _prefill(self, tokens: int) -> None:
        step = self._shape.step
        busy_s = step.t0_s + step.step_s(sequences=0, context_tokens=0, prefill_tokens=tokens)
        await asyncio.sleep(busy_s / self._speed)
        self.meters.embedded_tokens += tokens

    async def transcribe(self, call: SimulatedRoute) -> None:
        """Answer a transcription with vLLM's seconds, or as a stream of vLLM's chunks."""
        send, content_type = call.send, asgi.header(call.scope, b"content-type")
        heard = transcripts.parse_form(call.body, content_type, self._rules)
        heard = replace(heard, counts_tokens=False)
        await self._prefill(heard.audio_tokens)
        number = f"trsc-{self._number()}"
        if not heard.stream:
            answer, kind = transcripts.whole_answer(heard)
            await asgi.reply(send, 200, answer, content_type=kind)
            return
        await asgi.start(send, 200, [asgi.EVENTS])
        for chunk in transcripts.chunks(heard, number, self._created):
            await asgi.more(send, chunk)
        await asgi.end(send)

    def hand_kv(self, lease_s: float) -> None:
        """Enable KV transfer; KV that no engine fetches is freed after `lease_s`."""
        self._kv_lease_s = lease_s

    def serve_also(self, adapters: Sequence[str]) -> None:
        """Add names of adapters, which answer as the model does."""
        self._rules = replace(self._rules, models=(*self._rules.models, *adapters))

    def _cards(self) -> list[dict[str, Any]]:
        """Return the model card, and each adapter's as a child of it."""
        return [
            self._card(name, None if name == self._model else self._model)
            for name in self._rules.models
        ]

    def _opening_events(self, ask: CompletionRequest) -> bytes:
        created, fingerprint = int(time.time()), self._setting.fingerprint
        answer = SimulatedAnswer(ask, id=self._number(), created=created, fingerprint=fingerprint)
        return b"".join(map(answer.opening_event, ask.choices))

    def _card(self, name: str, parent: str | None) -> dict[str, Any]:
        return {
            "id": name,
            "object": "model",
            "created": self._created,
            "owned_by": OWNER,
            "root": self._profile,
            "parent": parent,
            "max_model_len": self._shape.context_tokens,
        }


async def _error(send: Send, status: int, kind: str, message: str, param: str | None) -> None:
    error = {"message": message, "type": kind, "param": param, "code": status}
    await asgi.reply_json(send, status, {"error": error})


async def _load_failure(send: Send, message: str, opening: bytes | None) -> None:
    """Fail a request whose KV cannot be loaded as vLLM does: after a stream's role chunk."""
    told = f"KV load failure: {message}"
    if opening is None:
        await _error(send, 500, "InternalServerError", told, None)
        return
    error = {"message": told, "type": "InternalServerError", "param": None, "code": 500}
    await asgi.start(send, 200, [asgi.EVENTS])
    event = b"data: " + msgspec.json.encode({"error": error}) + b"\n\n"
    await asgi.end(send, opening + event + b"data: [DONE]\n\n")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="a simulated engine that answers like vLLM")
    parser.add_argument("--profile", default=DEFAULT, help="a name, or a file of `engine fit`")
    parser.add_argument("--model", help="served model name; default: the profile's name")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8100, help="0: a free one, printed")
    parser.add_argument("--max-num-queued-reqs", type=int, help="more get 503, as in vLLM")
    parser.add_argument("--num-gpu-blocks-override", type=int, help="KV blocks, one is reserved")
    parser.add_argument("--max-model-len", type=int)
    parser.add_argument("--max-num-seqs", type=int)
    parser.add_argument("--max-num-batched-tokens", type=int)
    parser.add_argument("--speed", type=float, default=1.0, help="simulated seconds per second")
    parser.add_argument("--lora-modules", nargs="*", default=[], help="names of adapters")
    parser.add_argument("--kv-lease-s", type=float, help="hand KV to others, and keep it so long")
    parser.add_argument("--journal", type=Path, help="append what was served to this file")
    given = parser.parse_args(arguments)
    try:
        profile = profile_of(given.profile)
    except ShapeFileError as error:
        parser.error(f"--profile: {error}")
    if profile is None:
        parser.error(
            f"--profile: `{given.profile}` is not a file, and none of {', '.join(PROFILES)}"
        )
    overrides = {
        "blocks": given.num_gpu_blocks_override,
        "context_tokens": given.max_model_len,
        "max_num_seqs": given.max_num_seqs,
        "prefill_budget_tokens": given.max_num_batched_tokens,
    }
    changes: dict[str, Any] = {name: value for name, value in overrides.items() if value}
    server = SimulatedEngineApp(
        replace(profile.shape, **changes),
        given.model or profile.name,
        profile=profile.name,
        journal=RequestJournal(given.journal),
        max_queued=given.max_num_queued_reqs,
        speed=given.speed,
    )
    if given.kv_lease_s is not None:
        server.hand_kv(given.kv_lease_s)
    server.serve_also([name.partition("=")[0] for name in given.lora_modules])
    run([(f"engine {profile.name}", server, bind(given.host, given.port))])


if __name__ == "__main__":
    main()
