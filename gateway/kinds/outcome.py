"""Outcome of an attempt, from which its usage, charge and record follow."""

from collections.abc import Mapping
from typing import Any, Self

import msgspec
from msgspec.structs import replace

from backends.errors import BackendError, HeadTimeout, IdleTimeout, ServerError
from gateway.kinds.relay import ByteRelay
from ledger.journals.records import Status

CLIENT_LEFT = 499  # the status that proxies log for a client that closed its connection
REFUSED = "refused"  # the target's own 4xx: the client's fault
_SILENCES = frozenset({HeadTimeout.kind, IdleTimeout.kind})


class AttemptOutcome(msgspec.Struct, frozen=True):
    """The outcome of an attempt; `usage` is as the target reported it, `None` for no report.

    `billable`: the target may charge although it reported nothing. `said_bytes` is the text of a
    stream, `most_said_bytes` with everything that may be text, `unnamed_bytes` that in unknown
    members. `shown`, `spoken`: a picture, or sound, came. `answer` is an answer in one piece,
    measured only if needed. `earlier_usage`: figures that a stream reported and replaced.
    `usage_behind`: text came after the last usage, or it lacks choices. `usage_stands`: figures did
    not grow with the text. `read_on`: read to the end after the client disconnected. `unreadable`:
    output of unknown size was made.
    """

    status: Status
    http_status: int
    usage: Mapping[str, Any] | None = None
    usage_final: bool = False
    finish_reason: str | None = None
    error: str | None = None
    billable: bool = True
    tier: str | None = None  # the service tier that the answer named
    said_bytes: int = 0
    shown: bool = False
    answer: bytes | None = None
    earlier_usage: tuple[Mapping[str, Any], ...] = ()
    read_on: bool = False
    most_said_bytes: int = 0
    spoken: bool = False
    usage_behind: bool = False
    unreadable: bool = False
    unnamed_bytes: int = 0
    usage_stands: bool = False

    @property
    def is_whole(self) -> bool:
        """Return whether the whole answer was received, with or without its client."""
        return self.status == "finished" or self.read_on

    @property
    def is_given_up(self) -> bool:
        """Return whether the gateway ended the attempt before the answer's end.

        The target is not at fault then.
        """
        ours = self.status in ("client_gone", "timeout")
        return ours and self.error is None and not self.read_on

    @property
    def is_told_failure(self) -> bool:
        """Return whether the target reported a failure or refusal, and so generated no answer."""
        return self.error in (ServerError.kind, REFUSED)

    @property
    def is_silent(self) -> bool:
        """Return whether the attempt ended because the target sent nothing for too long."""
        return self.error in _SILENCES

    def without_client(self) -> Self:
        """Return the outcome of an answer that was complete after its client had left."""
        return replace(self, status="client_gone", http_status=CLIENT_LEFT, read_on=True)

    def __repr__(self) -> str:
        return f"Outcome({self.status!r}, {self.http_status})"  # an answer must not be in logs

    @classmethod
    def cut(
        cls,
        relay: ByteRelay | None,
        status: Status,
        http_status: int,
        *,
        error: str | None = None,
        billable: bool = True,
    ) -> Self:
        """Return the outcome of an unfinished attempt, with its relay's last usage.

        If the gateway gave the answer up, that usage is not final: a target that reports first and
        then thinks unseen has not reported what it made since.
        """
        final = relay is not None and relay.usage_final
        if relay is not None and (error is None or error in _SILENCES):
            final = final and relay.is_ended
        return cls(
            status,
            http_status,
            usage=None if relay is None else relay.usage,
            usage_final=final,
            error=error,
            billable=billable,
            tier=None if relay is None else relay.tier,
            said_bytes=0 if relay is None else relay.said_bytes,
            shown=relay is not None and relay.shown,
            earlier_usage=() if relay is None else relay.earlier_usage,
            most_said_bytes=0 if relay is None else relay.most_said_bytes,
            spoken=relay is not None and relay.spoken,
            usage_behind=relay is not None and relay.usage_behind,
            unnamed_bytes=0 if relay is None else relay.unnamed_bytes,
            usage_stands=relay is not None and relay.usage_stands,
        )

    @classmethod
    def failed(
        cls, relay: ByteRelay | None, error: BackendError, status: Status, http_status: int
    ) -> Self:
        """Return the outcome of an attempt that its target broke off, with the error's usage."""
        cut = cls.cut(relay, status, http_status, error=error.kind, billable=error.billable)
        if error.usage is None:
            return replace(cut, unreadable=True) if error.hides_output else cut
        return replace(cut, usage=error.usage, usage_final=True)
