"""What can go wrong between us and a model server, translated once, at the border.

    BackendError
    |-- UpstreamUnreachable        no connection (refused, DNS, TLS, connect deadline)   free
    |-- UpstreamOverloaded         429/503/529: the target refused before working        free
    |-- UpstreamRejected            401/402/403, a spent quota: it refused our account    free
    |-- ContextTooLong            the prompt exceeds this target's context              free
    |-- ModelNotServed           this engine is without that adapter at present      free
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
`billable` says whether the target may charge for the failed try (its hold then goes to suspense).
Plain 4xx answers are not errors here: they are the target's answer to the client.
"""

from typing import ClassVar

from backends.ratelimit import RateLimitHeaders


class BackendError(Exception):
    billable: ClassVar[bool] = True
    kind: ClassVar[str] = "backend_error"

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


class UpstreamUnreachable(BackendError):
    billable, kind = False, "unreachable"


class UpstreamOverloaded(BackendError):
    billable, kind = False, "overloaded"


class UpstreamRejected(BackendError):
    billable, kind = False, "refused_credentials"


class ContextTooLong(BackendError):
    billable, kind = False, "too_long"


class ModelNotServed(BackendError):
    billable, kind = False, "unserved"


class ServerError(BackendError):
    kind = "server_error"


class StreamError(BackendError):
    billable, kind = False, "reported_error"


class WrongAddress(BackendError):
    billable, kind = False, "wrong_address"


class HeadTimeout(BackendError):
    kind = "head_timeout"


class FirstTokenTimeout(BackendError):
    kind = "silent"


class DispatchSuperseded(BackendError):
    billable, kind = False, "overtaken"


class IdleTimeout(BackendError):
    kind = "idle_timeout"


class UpstreamBroken(BackendError):
    kind = "upstream_broken"


class InvalidResponse(BackendError):
    kind = "bad_answer"
