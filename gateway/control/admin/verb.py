"""Definition of an operation: HTTP path, input, and function.

`work` may block. It takes the context and the input, and returns the result as a JSON value. A
failure is raised as one of the errors of `gateway.control.admin.refusals`, with the reason.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Generic, TypeVar

import msgspec
from sqlalchemy import Engine

from ledger.identity.keyring import Identity

if TYPE_CHECKING:
    from gateway.config.settings import Settings
    from gateway.control.admin.enginehost import EngineHost

PREFIX = "/v1/organization"
NOTE_LIMIT = 500  # characters
NUMBER_LIMIT = 2**31 - 1  # maximum of ledger numbers
LARGEST = 1024 * 1024  # bytes of a body
Note = Annotated[str, msgspec.Meta(max_length=NOTE_LIMIT, description="why")]
G = TypeVar("G", bound=msgspec.Struct)


class OperationRefused(Exception):
    """A refused operation. `kind` is of `gateway.errors`; `param` is the wrong member.

    `retry_after_s` is the time after which the same operation may be accepted.
    """

    def __init__(
        self,
        words: str,
        *,
        kind: str = "bad_request",
        param: str | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(words)
        self.kind = kind
        self.param = param
        self.retry_after_s = retry_after_s


@dataclass(frozen=True, slots=True)
class OperationContext:
    """Ledger, configuration and caller of an operation.

    `by` is the actor as the ledger records it. `identity` is the caller's key; `None` for the
    command line of the host itself, which may do everything. `opened` opens the ledger when it is
    needed. `engines` opens the state of this host's engines.
    """

    settings: "Settings"
    by: str
    now_us: int
    opened: Callable[[], Engine]
    engines: Callable[[], AbstractContextManager["EngineHost"]]
    identity: Identity | None = None

    @property
    def ledger(self) -> Engine:
        return self.opened()


@dataclass(frozen=True, eq=False)
class AdminOperation(Generic[G]):
    """One operation. `path` is below `/v1/organization`; `name` is its OpenAPI operation id.

    `scope` is required of callers over HTTP. `command` is the equivalent command line; `None` if
    there is only HTTP.
    """

    name: str
    method: str
    path: str
    scope: str
    command: str | None
    summary: str
    given: type[G]
    work: Callable[[OperationContext, G], dict[str, Any]]
    largest: int = LARGEST

    @property
    def in_query(self) -> bool:
        """Return whether the input is in the query; otherwise it is the body."""
        return self.method != "POST"


def verb(
    asked: str,
    scope: str,
    command: str | None,
    summary: str,
    given: type[G],
    largest: int = LARGEST,
) -> Callable[[Callable[[OperationContext, G], dict[str, Any]]], AdminOperation[G]]:
    """Return a decorator that makes an operation; `asked` is like `GET /targets`."""
    method, _, path = asked.partition(" ")
    return lambda work: AdminOperation(
        work.__name__, method, path, scope, command, summary, given, work, largest
    )


class NoInput(msgspec.Struct, forbid_unknown_fields=True):
    """Input of an operation that takes none."""


def list_document(found: list[dict[str, Any]]) -> dict[str, Any]:
    return {"object": "list", "data": found}
