"""How an attempt ended: what its usage, charge and record follow from."""

from collections.abc import Mapping
from typing import Any, Self

import msgspec

from gateway.kinds.relay import ByteRelay
from ledger.journals.records import Status


class AttemptOutcome(msgspec.Struct, frozen=True):
    """How an attempt ended; `usage` as the target reported it (None: it did not).

    `billable`: whether the target may charge for it although it reported nothing; `said_bytes`:
    of text in what came of a stream; `shown`: a picture was in it; `answer`: one in one piece,
    measured only if need be. `earlier_usage`: what a stream reported before and took back.
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
        """An attempt that did not finish: the usage that its relay saw last."""
        return cls(
            status,
            http_status,
            usage=None if relay is None else relay.usage,
            usage_final=relay is not None and relay.usage_final,
            error=error,
            billable=billable,
            tier=None if relay is None else relay.tier,
            said_bytes=0 if relay is None else relay.said_bytes,
            shown=relay is not None and relay.shown,
            earlier_usage=() if relay is None else relay.earlier_usage,
        )
