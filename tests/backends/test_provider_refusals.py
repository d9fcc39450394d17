"""Names that cannot be called, and needs of others: each with words, none said twice."""

from backends.provider_refusals import KINDS, NEEDS, REFUSED
from backends.providers import LITELLM, PROVIDER_KINDS


def test_a_refusal_says_why_and_what_to_do_instead() -> None:
    for name, reason in REFUSED.items():
        why, colon, instead = reason.partition(": ")
        assert why, name
        assert colon, name
        assert instead, name
    assert not REFUSED.keys() & (KINDS.keys() | NEEDS.keys())


def test_the_adapter_serves_what_its_names_serve() -> None:
    for name, kinds in KINDS.items():
        assert kinds, name
        assert all(PROVIDER_KINDS[LITELLM].can_serve(kind) for kind in kinds), name


def test_a_workers_environment_has_what_a_name_needs() -> None:
    """Without a named key; a package and an address are no variables."""
    for name, needs in NEEDS.items():
        families = PROVIDER_KINDS[LITELLM].variables.of(name)
        stated = [variable for group in needs.variables for variable in group]
        for variable in (*stated, needs.address or ""):
            assert not variable or variable.startswith(families), (name, variable)
