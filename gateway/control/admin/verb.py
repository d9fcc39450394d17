"""A verb: where it is asked for over HTTP, what it is given, and what it does.

`work` may block; it takes the place that it works on and what it was given, and returns what is
told, as JSON has it. What cannot be done is raised as one of the errors of
`gateway.control.admin.refusals`, whose words say why.
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
NUMBER_LIMIT = 2**31 - 1  # of what the ledger counts
LARGEST = 1024 * 1024  # bytes of a body
Note = Annotated[str, msgspec.Meta(max_length=NOTE_LIMIT, description="why")]
G = TypeVar("G", bound=msgspec.Struct)


class OperationRefused(Exception):
    """A refused operation. `kind`: of `gateway.errors`; `param`: the wrong member.

    `retry_after_s`: seconds after which the same operation may be accepted.
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
    """The ledger, the configuration and the caller of an operation.

    `by`: who acts, as the books will have it. `identity`: whose key asks; None at the command line
    of the host itself, which may do everything. `opened`: the ledger, once it is needed.
    `engines`: what runs on this host.
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
    """`path`: below `/v1/organization`. `name`: the operation's, in the OpenAPI document.

    `scope`: what a caller over HTTP must hold. `command`: the words of the command line that do the
    same on this host; `None` where only HTTP has it.
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
        """Whether what it is given stands in the query; else it is the body."""
        return self.method != "POST"


def verb(
    asked: str,
    scope: str,
    command: str | None,
    summary: str,
    given: type[G],
    largest: int = LARGEST,
) -> Callable[[Callable[[OperationContext, G], dict[str, Any]]], AdminOperation[G]]:
    """Makes a function a verb of its name. `asked`: method and path, as `GET /targets`."""
    method, _, path = asked.partition(" ")
    return lambda work: AdminOperation(
        work.__name__, method, path, scope, command, summary, given, work, largest
    )


class NoInput(msgspec.Struct, forbid_unknown_fields=True):
    """The input of an operation that takes none."""


def list_document(found: list[dict[str, Any]]) -> dict[str, Any]:
    return {"object": "list", "data": found}
