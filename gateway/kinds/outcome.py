"""The end of an attempt, from which its usage, charge and record follow."""

from collections.abc import Mapping
from typing import Any, Self

import msgspec
from msgspec.structs import replace

from backends.errors import BackendError, HeadTimeout, IdleTimeout, ServerError
from gateway.kinds.relay import ByteRelay
from ledger.journals.records import Status

CLIENT_LEFT = 499  # the status that proxies log for a client that closed its connection
REFUSED = "refused"  # the target's own 4xx: the client's fault, not the target's
_SILENCES = frozenset({HeadTimeout.kind, IdleTimeout.kind})


class AttemptOutcome(msgspec.Struct, frozen=True):
    """The end of an attempt; `usage` as the target reported it (`None`: it did not).

    `billable`: whether the target may charge for it although it reported nothing; `said_bytes`:
    of text in what came of a stream; `shown`: a picture was in it; `answer`: one in one piece,
    measured only if need be. `earlier_usage`: what a stream reported before and took back;
    `read_on`: its client left, and the answer was read to its end. `most_said_bytes`: of all that
    may be text, where that is more than `said_bytes`; `unnamed_bytes`: of words of a stream in
    members that have no name here; `spoken`: sound was in it. `usage_behind`:
    words came behind the last usage, or it is of some choices alone; `usage_stands`: figures did
    not grow while words came. `unreadable`: an answer was
    made, and nothing tells how much of it.
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
        """Return whether all of the answer came, to a client or to nobody."""
        return self.status == "finished" or self.read_on

    @property
    def is_given_up(self) -> bool:
        """Whether our side ended the attempt before the answer's end; no failure of the target."""
        ours = self.status in ("client_gone", "timeout")
        return ours and self.error is None and not self.read_on

    @property
    def is_told_failure(self) -> bool:
        """Whether the target said that it failed or refused: of the answer nothing was made."""
        return self.error in (ServerError.kind, REFUSED)

    @property
    def is_silent(self) -> bool:
        """Return whether the target said nothing for so long that we gave the attempt up."""
        return self.error in _SILENCES

    def without_client(self) -> Self:
        """Return the same of an answer that came to its end after its client had left."""
        return replace(self, status="client_gone", http_status=CLIENT_LEFT, read_on=True)

    def __repr__(self) -> str:
        return f"Outcome({self.status!r}, {self.http_status})"  # an answer is nobody's to show

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
        """Return an attempt that did not finish: the usage that its relay saw last.

        Of an answer that we gave up before its end that is no last figure: a target that counts
        first, and then thinks unseen, has told of nothing that it made since.
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
        """An attempt that its target broke off, with what the error itself says of its use."""
        cut = cls.cut(relay, status, http_status, error=error.kind, billable=error.billable)
        if error.usage is None:
            return replace(cut, unreadable=True) if error.hides_output else cut
        return replace(cut, usage=error.usage, usage_final=True)
