"""Before the pages: buttons to sign in, words for who is not let in, who one is."""

import pytest
from streamlit.testing.v1 import AppTest

from dashboard import viewer_identity

PEOPLE = '[people."ada@example.com"]\nrole="viewer"\nteams=["search"]\n'


def script(what: str, argument: object) -> None:
    from dashboard import sign_in  # noqa: PLC0415  (a script of its own in the harness)
    from dashboard.viewer import NotAllowed  # noqa: PLC0415  (a script of its own in the harness)
    from dashboard.viewer_identity import SignInNeeded  # noqa: PLC0415  (a script of its own in the harness)

    if what == "kept":
        with sign_in.guard_page():
            raise SignInNeeded if argument is None else NotAllowed(argument)
    else:
        sign_in.show_viewer(argument)


def run(what: str, argument: object, user: dict | None = None) -> AppTest:
    test = AppTest.from_function(script, kwargs={"what": what, "argument": argument})
    test.user = user or {"is_logged_in": False}
    test.run()
    assert not test.exception
    return test


@pytest.mark.parametrize(
    ("auth", "labels"),
    [
        ('[auth]\nclient_id="c"\n', ["Sign in"]),
        ('[auth]\nclient_id="c"\n[auth.client_kwargs]\nprompt="x"\n', ["Sign in"]),
        (
            "[auth.one]\nclient_id='c'\n[auth.two]\nclient_id='d'\n",
            ["Sign in with one", "Sign in with two"],
        ),
    ],
)
def test_a_button_for_each_provider(monkeypatch, tmp_path, auth: str, labels: list[str]) -> None:
    path = tmp_path / "access.toml"
    path.write_text(auth + PEOPLE)
    monkeypatch.setenv(viewer_identity.FILE_VARIABLE, str(path))
    assert [button.label for button in run("kept", None).button] == labels


def test_who_is_refused_reads_why_and_can_leave() -> None:
    test = run("kept", "Not for you", {"is_logged_in": True})
    assert test.warning[0].value == "Not for you"
    assert [button.label for button in test.button] == ["Sign out"]
    assert not run("kept", "Not for you").button


def test_who_one_is_stands_there() -> None:
    from dashboard.viewer import Viewer  # noqa: PLC0415  (the script's own module)
    from ledger.identity.people import DashboardRole  # noqa: PLC0415  (a script of its own in the harness)

    assert "nobody is asked" in run("who", viewer_identity.AT_THIS_MACHINE).caption[0].value
    test = run(
        "who", Viewer("ada@example.com", DashboardRole.VIEWER, ("search",)), {"is_logged_in": True}
    )
    assert test.get("html")[0].proto.body.count("<b>ada@example.com</b>: viewer of search") == 1
    assert [button.label for button in test.button] == ["Sign out"]
