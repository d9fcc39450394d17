"""What can go wrong between us and a model server, translated once, at the border.

    BackendError
    |-- Unreachable        no connection (refused, DNS, TLS, connect deadline)   retryable
    |-- Overloaded         429/503/529: the target refused before working        retryable
    |-- Refused            401/402/403, a spent quota: it refused our account      retryable
    |-- TooLong            the prompt exceeds this target's context              retryable
    |-- ServerError        other 5xx                                              retryable
    |-- Reported         an error in the body of a 200                          retryable
    |-- WrongAddress     404/405: no such path there, our configuration         retryable
    |-- HeadTimeout        no response head in time                               retryable
    |-- Silent             nor anything else of its engine                      retryable
    |-- Overtaken          another host had given that engine's time away          retryable
    |-- IdleTimeout        the body went silent                                   not retryable
    |-- UpstreamBroken     the body ended early or was malformed                  not retryable
    `-- BadAnswer          the head was malformed or over a limit                 retryable

`retryable` says whether another candidate may be tried while no byte has reached the client;
`billable` whether the target may charge for the failed try (its hold then goes to suspense).
Plain 4xx answers are not errors here: they are the target's answer to the client.
"""

from typing import ClassVar

from backends.ratelimit import RateLimit


class BackendError(Exception):
    retryable: ClassVar[bool] = False
    billable: ClassVar[bool] = True
    kind: ClassVar[str] = "backend_error"

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        retry_after_s: float | None = None,
        rate_limit: RateLimit | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after_s = retry_after_s
        self.rate_limit = rate_limit


class Unreachable(BackendError):
    retryable, billable, kind = True, False, "unreachable"


class Overloaded(BackendError):
    retryable, billable, kind = True, False, "overloaded"


class Refused(BackendError):
    retryable, billable, kind = True, False, "refused_credentials"


class TooLong(BackendError):
    retryable, billable, kind = True, False, "too_long"


class ServerError(BackendError):
    retryable, kind = True, "server_error"


class Reported(BackendError):
    retryable, billable, kind = True, False, "reported_error"


class WrongAddress(BackendError):
    retryable, billable, kind = True, False, "wrong_address"


class HeadTimeout(BackendError):
    retryable, kind = True, "head_timeout"


class Silent(BackendError):
    retryable, kind = True, "silent"


class Overtaken(BackendError):
    retryable, billable, kind = True, False, "overtaken"


class IdleTimeout(BackendError):
    kind = "idle_timeout"


class UpstreamBroken(BackendError):
    kind = "upstream_broken"


class BadAnswer(BackendError):
    retryable, kind = True, "bad_answer"
