"""One team's uploads never take every place."""

from contextlib import ExitStack

import pytest

from gateway.batches.places import Places
from gateway.errors import RequestError


def taken(places: Places, team: str) -> bool:
    try:
        with places.one(team):
            return True
    except RequestError:
        return False


def test_a_team_has_its_share_and_others_have_the_rest() -> None:
    places = Places(5, 2)
    with ExitStack() as open_:
        for team in ("a", "a", "b", "b"):
            open_.enter_context(places.one(team))
        with pytest.raises(RequestError, match="The team has 2 uploads") as raised, places.one("a"):
            pass
        assert raised.value.kind == "overloaded"
        assert taken(places, "c")
        open_.enter_context(places.one("c"))
        assert not taken(places, "d")
    assert taken(places, "a")
    assert not places._open


def test_a_place_is_free_again_also_after_an_error() -> None:
    places = Places(1, 1)
    with pytest.raises(ValueError), places.one("a"):
        raise ValueError
    assert taken(places, "b")
