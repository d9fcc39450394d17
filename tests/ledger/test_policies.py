"""Sets of policies: one follows the other, none is lost, two at once are told."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from ledger.database import reading
from ledger.policies import (
    PoliciesMovedError,
    PolicySet,
    newest_number,
    policies_in_force,
    policy_set,
    policy_sets,
    store_policies,
)

FIRST = PolicySet(1, "policies: []", 1_000, "ann", "calmer")
AT_ONCE = 8


def test_the_newest_is_in_force_and_all_stay(engine):
    assert policies_in_force(engine) is None
    second = PolicySet(2, None, 2_000, "ben")
    for item in (FIRST, second):
        store_policies(engine, item)
    assert policies_in_force(engine) == second
    assert policy_sets(engine, 10) == [second, FIRST]
    assert policy_sets(engine, 1) == [second]
    assert policy_set(engine, 1) == FIRST
    assert policy_set(engine, 3) is None
    with reading(engine) as connection:
        assert newest_number(connection) == 2


@pytest.mark.parametrize("number", [0, 1, 3])
def test_a_set_follows_the_one_that_its_author_saw(engine, number):
    store_policies(engine, FIRST)
    with pytest.raises(PoliciesMovedError):
        store_policies(engine, PolicySet(number, "policies: []", 2_000, "ben"))
    assert policies_in_force(engine) == FIRST


def test_of_many_at_once_one_comes_first(engine):
    def attempt(actor: int) -> bool:
        try:
            store_policies(engine, PolicySet(1, "policies: []", 1_000, str(actor)))
        except PoliciesMovedError:
            return False
        return True

    with ThreadPoolExecutor(AT_ONCE) as pool:
        assert sum(pool.map(attempt, range(AT_ONCE))) == 1
