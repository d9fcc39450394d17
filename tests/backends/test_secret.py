"""A secret stands in nothing that is made of its holder."""

import copy
import dataclasses
import json
import pickle
import traceback

import msgspec
import pytest

from backends.openai import Credentials
from backends.secret import Secret, strike_out

TEXT = "sk-canary-0123456789"


@dataclasses.dataclass
class Holder:
    key: Secret


@pytest.mark.parametrize(
    "said",
    [
        repr, str, "{}".format, "{:>40}".format, "%s".__mod__, "{0!r}".format, "{0!a}".format,
        lambda item: repr({"k": [item]}), lambda item: repr(Holder(item)),
        lambda item: repr(dataclasses.asdict(Holder(item))), lambda item: repr(Credentials(item)),
        lambda item: repr(copy.deepcopy({"k": item})), lambda item: json.dumps(item, default=str),
        lambda item: json.dumps(item, default=repr),
    ],
)  # fmt: skip
def test_no_form_of_it_says_it(said) -> None:
    assert TEXT not in said(Secret(TEXT))


@pytest.mark.parametrize("write", [pickle.dumps, json.dumps, msgspec.json.encode, vars])
def test_it_is_not_written_down(write) -> None:
    with pytest.raises(TypeError) as raised:
        write(Secret(TEXT))
    assert TEXT not in "".join(traceback.format_exception(raised.value))


def test_it_is_what_it_holds() -> None:
    assert Secret(TEXT).reveal() == TEXT
    assert Secret(TEXT) == Secret(TEXT) != Secret("x")
    assert Secret(TEXT) != TEXT
    assert hash(Secret(TEXT)) == hash(Secret(TEXT))
    assert bool(Secret(TEXT)) and not Secret("")  # noqa: PT018  (two sides of one)


def test_a_text_loses_what_is_secret_and_nothing_else() -> None:
    known = [Secret(TEXT), Secret(TEXT + "-longer"), Secret("a"), Secret("")]
    said = f"a key {TEXT}-longer, and {TEXT}."
    assert strike_out(said, known) == "a key ***, and ***."
    assert strike_out(said, []) == said


def test_a_plain_text_would_be_said() -> None:
    assert TEXT in repr(Holder(TEXT)) and TEXT.encode() in pickle.dumps(TEXT)  # noqa: PT018  (the control)
