"""The viewer and their rights, checked before every read and never cached.

A `Who` returns the current viewer of a read; it raises `NotAllowed` once that person may see
nothing any more. Each read declares its reach (`ViewerScope`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import NoReturn

from ledger.identity.people import DashboardRole, Person


class NotAllowed(Exception):
    """A read that this viewer may not see; the text is for the viewer."""


class ViewerScope(Enum):
    """Reach of a read."""

    NAMES = "what hardware is called, and prices"  # of no team
    TEAM = "rows of the team that is asked for"
    HOUSE = "figures of everyone together"
    BOOKS = "bills, changes, the checks of the books"


@dataclass(frozen=True, slots=True)
class Viewer:
    """A viewer. `name` is `None` for an open dashboard; `teams` is `None` if all are visible."""

    name: str | None
    role: DashboardRole
    teams: tuple[str, ...] | None = None

    @property
    def sees_house(self) -> bool:
        return self.teams is None

    def can_see(self, reach: ViewerScope, team: str | None) -> bool:
        if reach is ViewerScope.NAMES:
            return True
        if self.teams is not None:
            return reach is ViewerScope.TEAM and team in self.teams
        return reach is not ViewerScope.BOOKS or self.role is not DashboardRole.VIEWER


Who = Callable[[], Viewer]


def viewer_of(person: Person) -> Viewer:
    return Viewer(person.name, person.role, person.teams)


def refuse_unnamed() -> NoReturn:
    """Refuse a view that was created without its viewer."""
    raise NotAllowed("Nobody said for whom this is read.")
