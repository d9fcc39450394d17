"""What is made of the policies in force is exchanged in one step, or not at all."""

import pytest

from gateway.config.settings import Settings
from gateway.request.active_policies import ActivePolicies

OLD, NEW = Settings(state_dir="old"), Settings(state_dir="new")


def test_all_that_is_held_changes_together() -> None:
    in_force = ActivePolicies(OLD, "1")
    names = in_force.hold(lambda settings, version: (settings.state_dir, version))
    count = in_force.hold(lambda settings, _: len(settings.state_dir))
    assert (names.value, count.value) == (("old", "1"), 3)
    in_force.use(NEW, "2")
    assert names.value == ("new", "2")
    assert in_force.settings is NEW


def test_what_cannot_be_made_leaves_all_as_it_was() -> None:
    in_force = ActivePolicies(OLD, "1")
    held = in_force.hold(lambda settings, version: (settings.state_dir, version))

    def refuse(settings: Settings, _: str) -> None:
        if settings is NEW:
            raise LookupError

    in_force.hold(refuse)
    with pytest.raises(LookupError):
        in_force.use(NEW, "2")
    assert held.value == ("old", "1")
    assert (in_force.settings, in_force.version) == (OLD, "1")
