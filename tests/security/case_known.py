"""Goals whose tests stand elsewhere, by name; each with the test that plants its fault."""

from suite import proved

ACCESS = "tests/gateway/control/test_access.py"
PEOPLE = "tests/gateway/control/oidc/test_signin.py"
KEYS = "tests/gateway/control/admin/test_keys.py"
KILLERS = "tests/gateway/faults/test_killers.py"
CAPS = "tests/gateway/kinds/test_request_size.py"
HEADERS = "tests/gateway/faults/test_headers.py"
SIGN_IN = "tests/dashboard/test_signin.py"
LOCK = "tests/deploy/test_lock.py"
SUPPLY = "tests/deploy/test_supply.py"
CONFINED, NETWORK = "tests/deploy/test_chart_confined.py", "tests/deploy/test_chart_network.py"
FILES = ["tests/deploy/test_compose.py", "tests/deploy/test_dockerfile.py"]
GROWTH = "tests/gateway/faults/test_growth.py"

CASES = (
    proved(
        "S1",
        "cells of routes x roles that are not as declared",
        [ACCESS, PEOPLE],
        [
            f"{ACCESS}::test_the_matrix_sees_a_guard_that_is_missing",
            f"{ACCESS}::test_a_route_without_a_line_stops_the_start",
        ],
    ),
    proved(
        "S2",
        "members and ids of others that were taken",
        [KEYS, "tests/gateway/batches/test_files_api.py::test_another_teams_file_is_not_there"],
        [
            f"{KEYS}::test_an_admin_makes_keys_of_any_team",
            f"{KEYS}::test_what_a_team_admin_holds_can_be_handed_on",
        ],
    ),
    proved(
        "E5",
        "requests made to hurt that reach a target",
        [KILLERS, CAPS],
        [
            f"{KILLERS}::test_without_the_denied_list_all_of_it_would_go_through",
            f"{KILLERS}::test_without_a_look_at_addresses_it_would",
            f"{CAPS}::test_without_the_look_all_of_it_would_go_on",
        ],
    ),
    proved(
        "S6",
        "headers of a target that reach a client",
        [HEADERS],
        [f"{HEADERS}::test_without_headers_of_our_own_making_it_would_be"],
    ),
    proved(
        "S12",
        "pages of the dashboard that somebody saw without a role",
        [
            SIGN_IN,
            "tests/dashboard/test_viewer_identity.py",
            "tests/gateway/control/test_people.py",
        ],
        ["tests/dashboard/test_viewer_identity.py::test_a_sign_in_holds_for_hours"],
    ),
    proved(
        "S11",
        "packages without a hash or a lock, connections of the tests to elsewhere",
        [LOCK, SUPPLY, "tests/tidy/test_conftest.py"],
        [
            f"{LOCK}::test_an_address_would_be_found",
            f"{SUPPLY}::test_a_planted_file_is_named",
            f"{SUPPLY}::test_a_package_that_calls_home_when_imported_is_seen",
            "tests/tidy/test_conftest.py::test_the_world_cannot_be_reached",
        ],
    ),
    proved(
        "S14",
        "rules that a manifest breaks: chart, compose, image",
        [CONFINED, NETWORK, *FILES],
        [
            f"{CONFINED}::test_control_each_freedom_is_noticed",
            f"{CONFINED}::test_control_a_secret_as_a_value_is_noticed",
            f"{NETWORK}::test_control_without_policies_everybody_reaches_everybody",
            f"{NETWORK}::test_control_an_engine_that_admits_all_is_noticed",
        ],
    ),
    proved(
        "E7",
        "things that grow under two minutes of load",
        [f"{GROWTH}::test_nothing_grows_but_the_ledger"],
        [f"{GROWTH}::test_a_planted_leak_is_seen"],
    ),
)
