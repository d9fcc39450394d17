"""Who sees what, as one table."""

import pytest

from dashboard.viewer import NotAllowed, Viewer, ViewerScope, refuse_unnamed, viewer_of
from ledger.identity.people import DashboardRole, Person

SCOPED = ("search",)


@pytest.mark.parametrize(
    ("role", "teams", "seen"),
    [
        (DashboardRole.VIEWER, None, {ViewerScope.NAMES, ViewerScope.TEAM, ViewerScope.HOUSE}),
        (DashboardRole.FINANCE, None, set(ViewerScope)),
        (DashboardRole.ADMIN, None, set(ViewerScope)),
        (DashboardRole.VIEWER, SCOPED, {ViewerScope.NAMES, ViewerScope.TEAM}),
    ],
)
def test_how_far_each_sees(
    role: DashboardRole, teams: tuple[str, ...] | None, seen: set[ViewerScope]
) -> None:
    viewer = viewer_of(Person("ada", role, teams))
    assert {reach for reach in ViewerScope if viewer.can_see(reach, "search")} == seen
    assert viewer.sees_house == (teams is None)


@pytest.mark.parametrize("team", ["support", "", "SEARCH", None])
def test_another_team_or_all_is_not_ones_own(team: str | None) -> None:
    viewer = Viewer("eve", DashboardRole.VIEWER, SCOPED)
    assert [reach for reach in ViewerScope if viewer.can_see(reach, team)] == [ViewerScope.NAMES]


def test_a_view_of_nobody_shows_nothing() -> None:
    with pytest.raises(NotAllowed):
        refuse_unnamed()
