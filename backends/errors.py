"""Errors between the gateway and a model server, each translated once, by the wire client.

    BackendError
    |-- UpstreamUnreachable no connection (refused, DNS, TLS, connect timeout)  billable
    |-- RequestUnsendable   our adapter could not build the request             billable
    |-- UpstreamOverloaded  429/503/529: refused before any work                free
    |-- UpstreamRejected    401/402/403, spent quota: our account refused       free
    |-- RequestDeclined     a 4xx in the body of a 200: the client's to fix     free
    |-- ContextTooLong      the prompt exceeds this target's context            free
    |-- ContentFiltered     a content filter refused prompt or answer           billable
    |-- ModelNotServed      this target lacks that model or adapter             free
    |-- ServerError         other 5xx                                           billable
    |-- StreamError         an error in the body of a 200                       free
    |-- WrongAddress        3xx/404/405: wrong address in the configuration     free
    |-- HeadTimeout         no response head in time                            billable
    |-- FirstTokenTimeout   no head, and nothing else from its engine           billable
    |-- DispatchSuperseded  another host had reassigned the engine's time       free
    |-- IdleTimeout         no body bytes in time                               billable
    |-- UpstreamBroken      the body ended early or was malformed               billable
    `-- InvalidResponse     the head was malformed or over a limit              billable

While no byte has reached the client, another candidate may be tried after each of them.
`charges` says whether the target may charge for a failed attempt after a byte of the request left;
a failed answer that reports its output is charged, whatever its kind (`charged_errors`).
The backend records whether a byte had left (`sent`): a failure before that is free, whatever its
kind. Both together are `billable` (the hold of the attempt then goes to suspense).
Plain 4xx answers are not errors here: they are the target's answer to the client.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from backends.ratelimit import RateLimitHeaders


class BackendError(Exception):
    """Base of all errors of a target.

    `sent`: whether a byte of the request may have left; true unless the backend stated it. `usage`:
    usage reported by the failed answer, if it counted any output. `hides_output`: an answer was
    generated, but its size cannot be read.
    """

    charges: bool = True
    kind: ClassVar[str] = "backend_error"
    sent: bool = True
    usage: Mapping[str, Any] | None = None
    hides_output: bool = False

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        retry_after_s: float | None = None,
        rate_limit: RateLimitHeaders | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after_s = retry_after_s
        self.rate_limit = rate_limit

    @property
    def billable(self) -> bool:
        """Return whether the target may charge for the failed attempt."""
        return self.charges and self.sent


class UpstreamUnreachable(BackendError):
    kind = "unreachable"
    sent = False  # unless something had left on a connection that died before


class RequestUnsendable(BackendError):
    kind = "unsendable"
    sent = False


class UpstreamOverloaded(BackendError):
    charges, kind = False, "overloaded"


class UpstreamRejected(BackendError):
    charges, kind = False, "refused_credentials"


class RequestDeclined(BackendError):
    """A 4xx error in the body of a 200, for the client to fix.

    `body` holds the error as the target sent it; its text may quote the request.
    """

    charges, kind = False, "declined"
    body: bytes = b""


class ContextTooLong(BackendError):
    charges, kind = False, "too_long"


class ContentFiltered(BackendError):
    """A refusal by the target's content filter. The attempt is settled before this is raised."""

    kind = "filtered"


class ModelNotServed(BackendError):
    charges, kind = False, "unserved"


class ServerError(BackendError):
    kind = "server_error"


class StreamError(BackendError):
    charges, kind = False, "reported_error"


class WrongAddress(BackendError):
    charges, kind = False, "wrong_address"


class HeadTimeout(BackendError):
    kind = "head_timeout"


class FirstTokenTimeout(BackendError):
    kind = "silent"


class DispatchSuperseded(BackendError):
    charges, kind = False, "overtaken"


class IdleTimeout(BackendError):
    kind = "idle_timeout"


class UpstreamBroken(BackendError):
    """An answer that ended early. `was_full`: the target said that it was overloaded."""

    kind = "upstream_broken"
    was_full: bool = False


def broken_by(reported: BackendError) -> UpstreamBroken:
    """Return the early end of an answer that had begun, from the error that its target sent."""
    broken = UpstreamBroken(str(reported), retry_after_s=reported.retry_after_s)
    broken.was_full = isinstance(reported, UpstreamOverloaded)
    return broken


class InvalidResponse(BackendError):
    kind = "bad_answer"


# Errors caused by the request, which say nothing about the target.
OF_THE_REQUEST = frozenset(
    {RequestDeclined.kind, ContextTooLong.kind, ContentFiltered.kind, ModelNotServed.kind}
)
# Answers to a single bad request; a target that is down or full refuses, does not answer
# or reports overload for any request.
MAY_BE_THE_REQUEST = frozenset({
    ServerError.kind, StreamError.kind, UpstreamBroken.kind, InvalidResponse.kind,
    RequestUnsendable.kind,
})  # fmt: skip


def failure_of(status: int) -> type[BackendError]:
    """Return the error class of a failure by its HTTP status."""
    if status == 408:  # it worked until its own time was over
        return HeadTimeout
    return UpstreamOverloaded if status in (429, 503, 529) else ServerError
