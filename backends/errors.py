"""Errors between the gateway and a model server, each translated once, at the border.

    BackendError
    |-- UpstreamUnreachable        no connection (refused, DNS, TLS, connect deadline)   billable
    |-- RequestUnsendable   our adapter could not make the request of it          billable
    |-- UpstreamOverloaded         429/503/529: the target refused before working        free
    |-- UpstreamRejected            401/402/403, a spent quota: it refused our account    free
    |-- RequestDeclined      a 4xx in the body of a 200: the client's to mend      free
    |-- ContextTooLong            the prompt exceeds this target's context              free
    |-- ContentFiltered      its content filter refused prompt or answer          billable
    |-- ModelNotServed           this target is without that model or adapter        free
    |-- ServerError        other 5xx                                             billable
    |-- StreamError           an error in the body of a 200                         free
    |-- WrongAddress       3xx/404/405: not there, by our configuration          free
    |-- HeadTimeout        no response head in time                              billable
    |-- FirstTokenTimeout             nor anything else of its engine                       billable
    |-- DispatchSuperseded          another host had given that engine's time away        free
    |-- IdleTimeout        the body went silent                                  billable
    |-- UpstreamBroken     the body ended early or was malformed                 billable
    `-- InvalidResponse          the head was malformed or over a limit                billable

While no byte has reached the client, another candidate may be tried after each of them.
`charges` says whether the target may charge for the failed try once a byte of the request had left;
what says in its body how much it made is charged, whatever its kind (`charged_errors`).
Whether one had is a fact that the backend states (`sent`): what failed before that is free, of
whatever kind it is. Both together are `billable` (the try's hold then goes to suspense).
Plain 4xx answers are not errors here: they are the target's answer to the client.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from backends.ratelimit import RateLimitHeaders


class BackendError(Exception):
    """`sent`: whether a byte of the request may have left; what nobody stated counts as sent.

    `usage`: what the answer that failed said of its use, if it counted any output. `hides_output`:
    an answer was made, and nothing that can be read tells how much of it.
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
        """Return whether the target may charge for the failed try."""
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
    """`body` holds the error as the target said it; its text may quote the request."""

    charges, kind = False, "declined"
    body: bytes = b""


class ContextTooLong(BackendError):
    charges, kind = False, "too_long"


class ContentFiltered(BackendError):
    """The try is settled as what it is, an answer or a refusal, before this is raised."""

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
    """`was_full`: the target itself said that it broke off because it was overloaded."""

    kind = "upstream_broken"
    was_full: bool = False


def broken_by(reported: BackendError) -> UpstreamBroken:
    """Return the end of an answer that had begun, by the error that its target reported."""
    broken = UpstreamBroken(str(reported), retry_after_s=reported.retry_after_s)
    broken.was_full = isinstance(reported, UpstreamOverloaded)
    return broken


class InvalidResponse(BackendError):
    kind = "bad_answer"


# Kinds of failure whose cause is the request, and says nothing of the target.
OF_THE_REQUEST = frozenset(
    {RequestDeclined.kind, ContextTooLong.kind, ContentFiltered.kind, ModelNotServed.kind}
)
# A target that stumbles over one request answers so; one that is down or full refuses, is silent
# or says that it is full, whatever it was sent.
MAY_BE_THE_REQUEST = frozenset({
    ServerError.kind, StreamError.kind, UpstreamBroken.kind, InvalidResponse.kind,
    RequestUnsendable.kind,
})  # fmt: skip


def failure_of(status: int) -> type[BackendError]:
    """Return what a failure of a target is, by its HTTP status."""
    if status == 408:  # it worked until its own time was over
        return HeadTimeout
    return UpstreamOverloaded if status in (429, 503, 529) else ServerError
