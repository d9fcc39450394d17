"""The list of pages, and its place when no ledger is named."""

from pathlib import Path

from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

from dashboard import navigation
from dashboard.viewer import Viewer
from ledger.identity.people import DashboardRole

APP = Path(__file__).resolve().parents[2] / "dashboard" / "app.py"


def test_every_module_of_a_page_has_its_place() -> None:
    modules = {path.stem for path in (APP.parent / "page").glob("[!_]*.py")}
    assert {place.module.__name__.rpartition(".")[2] for place in navigation.PLACES} == modules


def test_the_guide_lists_the_pages_of_a_viewer_with_teams() -> None:
    viewer = Viewer("bob", DashboardRole.VIEWER, ("search",))
    titles = [f"*{spec.title}*" for spec in navigation.PLACES
              if viewer.can_see(spec.reach, "search")]  # fmt: skip
    listed = f"{', '.join(titles[:-1])} and {titles[-1]}"
    guide = (APP.parents[1] / "docs" / "how-to" / "dashboard-access.md").read_text(encoding="utf-8")
    wanted = f"A viewer with `teams` gets the pages {listed}, of these teams alone."
    assert wanted in " ".join(guide.split()), f"write in docs/how-to/dashboard-access.md: {wanted}"


def test_without_a_named_ledger_it_says_how_to_name_one(monkeypatch) -> None:
    monkeypatch.delenv("BREAKEVEN_LEDGER_URL", raising=False)
    test = AppTest.from_file(str(APP), default_timeout=60).run()
    assert not test.exception
    assert "No ledger is named" in test.info[0].value


def test_engines_are_of_all_teams_whichever_is_chosen(month, monkeypatch) -> None:
    """With a team chosen, its own tokens stood over the whole bill of the engines."""
    monkeypatch.setenv("BREAKEVEN_LEDGER_URL", month.url)
    monkeypatch.setattr("dashboard.data.reads.rounded_now_us", lambda _: month.now_us)
    drawn = []
    for team in ("All teams", "finance"):
        test = AppTest.from_file(str(APP), default_timeout=60)
        test.query_params["team"] = team
        test._page_hash = calc_hash("engines")
        test.run()
        assert not test.exception
        drawn.append([element.proto.spec for element in test.get("vega_lite_chart")])
        said = " ".join(caption.value for caption in test.caption)
    assert "Of all teams: engines are shared, so their figures are of all teams, not of" in said
    assert drawn[0] == drawn[1] != []
