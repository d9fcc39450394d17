"""Each kind of failure says whether its target may charge for it, once something was sent."""

import re

import pytest

from backends import errors
from backends.errors import BackendError

# kind: may be billed
TABLE = {
    "UpstreamUnreachable": True,
    "RequestUnsendable": True,
    "UpstreamOverloaded": False,
    "UpstreamRejected": False,
    "RequestDeclined": False,
    "ContextTooLong": False,
    "ContentFiltered": True,
    "ModelNotServed": False,
    "ServerError": True,
    "StreamError": False,
    "WrongAddress": False,
    "HeadTimeout": True,
    "FirstTokenTimeout": True,
    "DispatchSuperseded": False,
    "IdleTimeout": True,
    "UpstreamBroken": True,
    "InvalidResponse": True,
}


def kinds() -> dict[str, type[BackendError]]:
    return {kind.__name__: kind for kind in BackendError.__subclasses__()}


def test_the_table_is_complete():
    assert kinds().keys() == TABLE.keys()


@pytest.mark.parametrize("name", TABLE)
def test_facts_of_a_kind(name):
    kind = kinds()[name]
    assert kind.charges is TABLE[name]


@pytest.mark.parametrize("sent", [True, False])
@pytest.mark.parametrize("name", TABLE)
def test_nothing_sent_is_nothing_owed(name, sent):
    error = kinds()[name]("no")
    error.sent = sent
    assert error.billable is (sent and TABLE[name])


def test_what_nobody_stated_counts_as_sent():
    unsent = {name for name, kind in kinds().items() if not kind.sent}
    assert unsent == {"UpstreamUnreachable", "RequestUnsendable"}


def test_the_tree_in_the_docstring_is_the_tree_in_the_code():
    drawn = re.findall(r"[|`]-- (\w+) .* (free|billable)$", errors.__doc__, re.MULTILINE)
    expected = {name: kind.charges for name, kind in kinds().items()}
    assert {name: word == "billable" for name, word in drawn} == expected


def test_kinds_have_words_of_their_own():
    words = [kind.kind for kind in kinds().values()]
    assert len(set(words)) == len(words)
    assert BackendError.kind not in words


def test_an_error_carries_what_the_target_said():
    error = errors.UpstreamOverloaded("busy", status=429, retry_after_s=2.5)
    assert (str(error), error.status, error.retry_after_s) == ("busy", 429, 2.5)
    bare = errors.UpstreamUnreachable("refused")
    assert (bare.status, bare.retry_after_s) == (None, None)
