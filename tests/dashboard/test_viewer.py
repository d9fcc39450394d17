"""Who sees what, as one table."""

import pytest

from dashboard.viewer import NotAllowed, Reach, Viewer, nobody, viewer_of
from ledger.identity.people import Person, Role

SCOPED = ("search",)


@pytest.mark.parametrize(
    ("role", "teams", "seen"),
    [
        (Role.VIEWER, None, {Reach.NAMES, Reach.TEAM, Reach.HOUSE}),
        (Role.FINANCE, None, set(Reach)),
        (Role.ADMIN, None, set(Reach)),
        (Role.VIEWER, SCOPED, {Reach.NAMES, Reach.TEAM}),
    ],
)
def test_how_far_each_sees(role: Role, teams: tuple[str, ...] | None, seen: set[Reach]) -> None:
    viewer = viewer_of(Person("ada", role, teams))
    assert {reach for reach in Reach if viewer.sees(reach, "search")} == seen
    assert viewer.sees_house == (teams is None)


@pytest.mark.parametrize("team", ["support", "", "SEARCH", None])
def test_another_team_or_all_is_not_ones_own(team: str | None) -> None:
    viewer = Viewer("eve", Role.VIEWER, SCOPED)
    assert [reach for reach in Reach if viewer.sees(reach, team)] == [Reach.NAMES]


def test_a_view_of_nobody_shows_nothing() -> None:
    with pytest.raises(NotAllowed):
        nobody()
