"""Prefill on another engine: one engine reads a prompt and keeps its KV for another.

The protocol is vLLM's. The prefill request has one output token and `do_remote_decode`; its answer
has `kv_transfer_params`, which are sent with the whole request to the answering engine. A failure
here loses nothing: the answering engine reads the prompt itself. KV that is left over is freed by a
one-token request on any engine that can fetch it.
"""

import asyncio
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from backends.base import Call, Deadlines
from backends.engine.kvtransfer import is_private_host
from backends.errors import (
    BackendError,
    FirstTokenTimeout,
    InvalidResponse,
    ServerError,
    StreamError,
)
from backends.exchange import read_all
from gateway.clock import Clock
from gateway.errors import drop_traceback
from gateway.fleet.fleet import Target
from gateway.fleet.target_stats import TargetStats
from gateway.request.attempt import Attempt
from gateway.request.load_tracker import LoadTracker
from gateway.request.plan import AttemptPlan, RoutingPlan
from gateway.request.prefill_leg import PrefillLeg
from gateway.request.silent_engine import FORECASTS, PATIENCE_S

MEMBER = "kv_transfer_params"
ANSWER_LIMIT_BYTES = 4 * 1024 * 1024
FREE_S = 10.0  # for a request that only fetches
_ASKED: Mapping[str, Any] = {
    "do_remote_decode": True, "do_remote_prefill": False, "remote_engine_id": None,
    "remote_block_ids": None, "remote_host": None, "remote_port": None,
}  # fmt: skip
# Members for the length or form of an answer.
_LENGTHS = ("max_completion_tokens", "min_tokens", "stream_options")
_decode = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_encode = msgspec.json.encode


class _PrefillAnswer(msgspec.Struct):
    """The members of the prefill engine's answer that are used."""

    kv_transfer_params: dict[str, Any] | None = None
    usage: dict[str, Any] | None = None


_answer = msgspec.json.Decoder(_PrefillAnswer).decode


@dataclass(frozen=True, slots=True)
class PromptReader:
    """A reader of prompts on prefill engines.

    `frees` has the running tasks that free KV, so that a worker can wait for them.
    """

    flights: LoadTracker
    experience: TargetStats
    clock: Clock
    frees: set[asyncio.Task[None]]

    def reserve(self, plan: RoutingPlan, step: AttemptPlan, now_s: float) -> PrefillLeg | None:
        """Reserve the KV at the prefill engine, if the decision chose one."""
        forecast = step.verdict.prefill
        if forecast is None:
            return None
        partners = step.frozen.target.partners
        target = next((other for other in partners if other.name == forecast.name), None)
        options = step.verdict.candidate.prefillers
        option = next((each for each in options if each.name == forecast.name), None)
        if target is None or option is None:
            return None
        flight = self.flights.reserve_prompt(
            plan, target.row, option.engine, forecast.kv_promise_tokens, now_s
        )
        total_ms = step.verdict.ttft_ms or 0.0
        answer_s = (total_ms - forecast.ttft_ms) / 1e3 - forecast.transfer_s
        return PrefillLeg(target, option.engine, forecast, flight, now_s, max(0.0, answer_s))

    async def read(self, attempt: Attempt, path: str, body: bytes, deadlines: Deadlines) -> None:
        """Have the prompt read. A failure is recorded, and the request goes on without."""
        leg = attempt.prefill
        assert leg is not None, "the caller looked"
        call = Call(path, prompt_body(body), False, {"x-request-id": attempt.id}, deadlines)
        try:
            try:
                async with asyncio.timeout(PATIENCE_S + FORECASTS * leg.forecast.ttft_ms / 1e3):
                    params, tokens = await self._ask(leg, call)
            except TimeoutError:
                raise FirstTokenTimeout("the engine that reads the prompt says nothing") from None
            leg.finish(self.clock.now_s(), params, tokens)
            self.experience.engine(leg.target.row, ok=True)
        except BackendError as error:
            drop_traceback(error)
            leg.fail(self.clock.now_s())
            suspect = attempt.plan.identity.key_id
            self.experience.engine(leg.target.row, ok=False, suspect=suspect)
        finally:
            leg.sent = call.transmission.possible
            attempt.asked_s = self.clock.now_s()

    async def _ask(self, leg: PrefillLeg, call: Call) -> tuple[Mapping[str, Any], int | None]:
        exchange = await leg.target.backend.open(call)
        try:
            body = await read_all(exchange, ANSWER_LIMIT_BYTES)
        finally:
            await exchange.aclose()
        if exchange.status >= 400:
            raise InvalidResponse("the engine refused to read the prompt", status=exchange.status)
        return transfer_params(body)

    def close(self, attempt: Attempt, *, failed: bool) -> None:
        """End the attempt's prefill: free the KV, or hold it until its lease ends."""
        leg = attempt.prefill
        if leg is None:
            return
        leg.handed = leg.handed and attempt.sent
        if not leg.close(failed=failed) or leg.params is None:
            return
        body = attempt.freeing
        if body is not None:
            task = asyncio.ensure_future(self._free(attempt, leg, body))
            self.frees.add(task)
            task.add_done_callback(self.frees.discard)

    async def _free(self, attempt: Attempt, leg: PrefillLeg, body: tuple[str, bytes]) -> None:
        """Free the KV by having an engine fetch it; if none can, its lease ends."""
        assert leg.params is not None, "nothing is kept without it"
        path, asked = body
        wanted = freeing_body(asked, leg.params)
        mine = attempt.step.frozen.target
        decoders = [each for each in leg.target.partners if each.role == "decode"]
        for target in sorted(decoders, key=lambda each: each.name == mine.name and leg.handed):
            if await self._fetch(target, Call(path, wanted, False, {"x-request-id": attempt.id})):
                leg.release()
                return

    async def _fetch(self, target: Target, call: Call) -> bool:
        try:
            async with asyncio.timeout(FREE_S):
                exchange = await target.backend.open(call)
                try:
                    await read_all(exchange, ANSWER_LIMIT_BYTES)
                finally:
                    await exchange.aclose()
        except (BackendError, TimeoutError):
            return False
        return exchange.status < 400


def prompt_body(body: bytes) -> bytes:
    """Return the body for the prefill engine, which only reads the prompt."""
    members: dict[str, Any] = dict(_decode(one_token(body)))
    members[MEMBER] = _ASKED
    return _encode(members)


def one_token(body: bytes) -> bytes:
    """Return the body with an answer of one token, without a stream."""
    members: dict[str, Any] = dict(_decode(body))
    for name in _LENGTHS:
        members.pop(name, None)
    return _encode({**members, "max_tokens": 1, "stream": False})


def with_params(body: bytes, params: Mapping[str, Any]) -> bytes:
    """Return the body with the parameters by which its prompt's KV is fetched."""
    return _encode({**_decode(body), MEMBER: params})


def freeing_body(body: bytes, params: Mapping[str, Any]) -> bytes:
    """Return the body that only fetches the KV, under a random cache salt.

    The KV may have been freed and overwritten in between: an engine's prefix cache must never serve
    it to others as the KV of this prompt.
    """
    members = _decode(with_params(one_token(body), params))
    return _encode({**members, "cache_salt": secrets.token_hex(16)})


def without_params(body: bytes) -> bytes:
    """Return the body without the client's own transfer parameters, which could name any host."""
    if MEMBER.encode() not in body:
        return body
    members = dict(_decode(body))
    members.pop(MEMBER, None)
    return _encode(members)


def transfer_params(body: bytes) -> tuple[Mapping[str, Any], int | None]:
    """Return the KV's transfer parameters and the prompt's tokens. Raises `InvalidResponse`."""
    try:
        answer = _answer(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise InvalidResponse("the engine's answer to a prompt is not an answer") from None
    params = answer.kv_transfer_params
    if not params:
        raise InvalidResponse("the engine kept no KV: is its connector off?")
    host = params.get("remote_host")
    if not isinstance(host, str) or not is_private_host(host):
        raise InvalidResponse("the engine offers its KV on an address that is not private")
    tokens = (answer.usage or {}).get("prompt_tokens")
    return params, tokens if isinstance(tokens, int) and tokens > 0 else None


def fetching_body(attempt: Attempt, body: bytes) -> bytes:
    """Return the body with the prompt's transfer parameters, if any, in place of the client's."""
    body, leg = without_params(body), attempt.prefill
    if leg is None or leg.params is None:
        return body
    leg.handed = True
    return with_params(body, leg.params)


def may_be_the_fetch(attempt: Attempt, error: BackendError) -> bool:
    """Return whether the try may have failed because the prompt's KV could not be fetched."""
    return attempt.prefill is not None and isinstance(error, ServerError | StreamError)
