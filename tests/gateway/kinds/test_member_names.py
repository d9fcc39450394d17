"""A name that only case sets apart from one that is judged here is refused; others pass."""

import json

import pytest

from gateway.errors import RequestError
from gateway.http.body import decode_members
from gateway.kinds.chat import read_chat
from gateway.kinds.completion import read_completion
from gateway.kinds.embedding import read_embedding
from gateway.kinds.inference_request import IncomingBody
from gateway.kinds.member_names import refuse_other_spellings
from gateway.kinds.rerank import SPEC

MESSAGES = {"messages": [{"role": "user", "content": "a"}]}


@pytest.mark.parametrize(
    "name",
    [
        "Max_Tokens",
        "N",
        "Messages",
        "MODELS",
        "Api_Key",
        "Enable_Search",
        "MaxOutputTokens",
        "InferenceConfig",
        "max_to\u212aens",
        "\u017ftop",
    ],
)
def test_another_case_is_refused(name) -> None:
    with pytest.raises(RequestError) as caught:
        refuse_other_spellings({"model": 1, name: 2})
    assert caught.value.param == name


@pytest.mark.parametrize("name", ["max_tokens", "topP", "promptTruncateLen", "\u00fcber", "Zeit"])
def test_what_nobody_judges_passes(name) -> None:
    refuse_other_spellings({"model": 1, name: 2})


@pytest.mark.parametrize(
    ("read", "body"),
    [
        (lambda text: read_chat(decode_members(text), max_n=8, session=None), MESSAGES),
        (
            lambda text: read_completion(decode_members(text), max_n=8, session=None),
            {"prompt": "a"},
        ),
        (lambda text: read_embedding(decode_members(text), session=None), {"input": "a"}),
        (
            lambda text: SPEC.paths["/v1/rerank"].reader.read(
                IncomingBody(text, "application/json", None, max_n=8)
            ),
            {"query": "a", "documents": ["b"]},
        ),
    ],
)
def test_every_kind_of_json_asks(read, body) -> None:
    read(json.dumps({"model": "m", **body}).encode())
    with pytest.raises(RequestError, match="`Max_Tokens` must be written `max_tokens`"):
        read(json.dumps({"model": "m", "Max_Tokens": 9, **body}).encode())
