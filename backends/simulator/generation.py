"""One completion request being served: it starts sequences and sends tokens as they come.

The times of tokens come from a `TokenSource`: the paced engine, or a provider's latency. A
generation always ends in exactly one journal entry, and leaves no sequence running.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from backends.simulator import asgi
from backends.simulator.answers import SimulatedAnswer
from backends.simulator.asgi import DisconnectWatch, Receive, Scope, Send
from backends.simulator.dialect import CompletionRequest, RefusedError, SimulatedChoice
from backends.simulator.journal import RequestEntry, RequestJournal
from backends.simulator.shape import TooLargeError

Headers = tuple[tuple[bytes, bytes], ...]


class GenerationProgress(Protocol):
    """The progress of one sequence; times are of the source's clock."""

    generated: int
    cached_tokens: int
    done: bool
    submitted_s: float
    first_s: float | None


class TokenSource(Protocol):
    """A source of sequences and their tokens; `EngineSource` and `LatencySource` implement it.

    `wake` is called when `generated` or `done` has changed.
    """

    def start(self, choice: SimulatedChoice, wake: Callable[[], None]) -> GenerationProgress: ...

    def stop(self, progress: GenerationProgress) -> None: ...


class CutError(Exception):
    """A deliberate break of the connection by the server: the answer stays unfinished."""


@dataclass(frozen=True, slots=True)
class GenerationContext:
    """The values that all generations of one server share."""

    source: TokenSource
    journal: RequestJournal
    fingerprint: str
    epoch_s: Callable[[], float]
    # Keeps the KV of an ended sequence for another engine, and returns what the answer says of it.
    offer: Callable[[GenerationProgress], dict[str, Any]] | None = None


class Generation:
    def __init__(
        self,
        setting: GenerationContext,
        ask: CompletionRequest,
        *,
        id: str,  # noqa: A002  (as on the wire)
        scope: Scope,
    ) -> None:
        self._setting = setting
        self._ask = ask
        self._scope = scope
        self._started_s = setting.epoch_s()
        self._answer = SimulatedAnswer(
            ask, id=id, created=int(self._started_s), fingerprint=setting.fingerprint
        )
        self._running: list[GenerationProgress] = []
        self._sent = [0] * len(ask.choices)
        self._offered: dict[str, Any] | None = None

    async def run(
        self, receive: Receive, send: Send, *, headers: Headers = (), cut_after: int | None = None
    ) -> bool:
        """Serve to the end. Return false if the client disconnected.

        The connection is broken after `cut_after` tokens.
        """
        watch = DisconnectWatch(receive)
        status = "aborted"
        try:
            self._start(watch)
            if self._ask.stream:
                complete = await self._stream(watch, send, headers, cut_after)
            else:
                complete = await self._whole(watch, send, headers, cut_after)
            status = "finished" if complete else "aborted"
        except CutError:
            status = "broken"
            raise
        except RefusedError:
            status = "refused"
            raise
        finally:
            watch.close()
            for progress in self._running:
                self._setting.source.stop(progress)
            if self._running and self._is_done and status != "finished":
                self._offer()
            self._setting.journal.append(self._entry(status))
        return complete

    def _start(self, watch: DisconnectWatch) -> None:
        try:
            for choice in self._ask.choices:
                self._running.append(self._setting.source.start(choice, watch.wake))
        except TooLargeError as error:
            raise RefusedError("too_long", str(error), "max_tokens") from error

    async def _stream(
        self, watch: DisconnectWatch, send: Send, headers: Headers, cut_after: int | None
    ) -> bool:
        await asgi.start(send, 200, [asgi.EVENTS, *headers])
        while not self._is_done:
            await watch.wait()
            if watch.gone:
                return False
            part = self._fresh()
            if part:
                await asgi.more(send, part)
            if cut_after is not None and sum(self._sent) >= cut_after:
                raise CutError
        await asgi.end(send, self._answer.closing_events(self._cached_tokens))
        return True

    async def _whole(
        self, watch: DisconnectWatch, send: Send, headers: Headers, cut_after: int | None
    ) -> bool:
        while not self._is_done:
            await watch.wait()
            if watch.gone:
                return False
        body = self._answer.whole_body(self._cached_tokens, self._offer())
        if cut_after is not None:
            length = (b"content-length", str(len(body)).encode())
            await asgi.start(send, 200, [asgi.JSON, length, *headers])
            await asgi.more(send, body[: len(body) // 2])
            raise CutError
        self._sent = [choice.script.tokens for choice in self._ask.choices]
        await asgi.reply(send, 200, body, *headers)
        return True

    def _offer(self) -> dict[str, Any] | None:
        """Return the offer of the KV, which is kept for another engine until its lease ends."""
        offer = self._setting.offer
        if offer is None or self._offered is not None:
            return self._offered
        self._offered = offer(self._running[0])
        return self._offered

    @property
    def _is_done(self) -> bool:
        return all(progress.done for progress in self._running)

    @property
    def _cached_tokens(self) -> int:
        """Return the cached prompt tokens, counting the prompt of several choices once."""
        return sum(progress.cached_tokens for progress in self._running[:: self._ask.n])

    def _fresh(self) -> bytes:
        """Return events for what was generated since the last call.

        The first token has its own event, so that a late reader still receives a stream.
        """
        parts: list[bytes] = []
        for place, (choice, progress) in enumerate(
            zip(self._ask.choices, self._running, strict=True)
        ):
            first, generated = self._sent[place], progress.generated
            if generated > first:
                if first == 0:
                    parts.append(self._answer.opening_event(choice))
                    if generated > 1:
                        parts.append(self._answer.tokens(choice, 0, 1))
                        first = 1
                parts.append(self._answer.tokens(choice, first, generated))
                self._sent[place] = generated
        return b"".join(parts)

    def _entry(self, status: str) -> RequestEntry:
        firsts = [p.first_s - p.submitted_s for p in self._running if p.first_s is not None]
        reasons: Sequence[str] = ()
        if status == "finished":
            reasons = [choice.script.finish_reason for choice in self._ask.choices]
        return RequestEntry(
            id=self._answer.id,
            request_id=asgi.header(self._scope, b"x-request-id"),
            path=self._scope["path"],
            model=self._ask.model,
            stream=self._ask.stream,
            status=status,
            http_status=400 if status == "refused" else 200,
            started_s=self._started_s,
            duration_s=self._setting.epoch_s() - self._started_s,
            ttft_s=min(firsts, default=None),
            prompt_tokens=self._ask.prompt_tokens,
            cached_tokens=self._cached_tokens,
            completion_tokens=sum(progress.generated for progress in self._running),
            sent_tokens=sum(self._sent),
            finish_reasons=tuple(reasons),
        )


def refusal_entry(scope: Scope, status: int, epoch_s: float) -> RequestEntry:
    """Return the journal entry of a request that was answered with an error."""
    return RequestEntry(
        id="",
        request_id=asgi.header(scope, b"x-request-id"),
        path=scope["path"],
        model="",
        stream=False,
        status="refused",
        http_status=status,
        started_s=epoch_s,
        duration_s=0.0,
    )
