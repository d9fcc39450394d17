"""Each verb has a path of its own, and somebody who may call it."""

from gateway.access import ROUTES
from gateway.admin.every import VERBS
from gateway.admin.verb import PREFIX


def test_each_has_a_name_a_path_and_a_line_in_the_table() -> None:
    names = [verb.name for verb in VERBS]
    asked = [f"{verb.method} {PREFIX}{verb.path}" for verb in VERBS]
    assert len({*names}) == len({*asked}) == len(VERBS)
    assert {*asked} <= ROUTES.keys()
    assert all(verb.summary and not verb.summary.endswith(".") for verb in VERBS)


def test_what_changes_something_asks_for_more_than_to_look() -> None:
    """A verb that is only given a question may be a POST, too, for the length of it."""
    asks = {
        "policies_check",
        "policies_diff",
        "policies_simulate",
        "policies_simulate_cancel",
        "prices_diff",
        "invoices_compare",
    }
    for verb in VERBS:
        scope = ROUTES[f"{verb.method} {PREFIX}{verb.path}"]
        if verb.method == "GET" or verb.name in asks:
            assert not scope.endswith(":apply"), verb.name
        else:
            assert scope.endswith(":apply") or scope in ("keys", "keys:all"), verb.name
