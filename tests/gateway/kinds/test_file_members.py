"""Files that stand beside a prompt, or in a text of it by their address."""

import json
from typing import Any

import pytest

from gateway.kinds import KIND_PATHS
from gateway.kinds.inference_request import IncomingBody


def files_of(path: str = "/v1/chat/completions", **members: Any) -> int:
    prompt = "prompt" if path.endswith("/completions") and "chat" not in path else "messages"
    said: Any = "hi" if prompt == "prompt" else [{"role": "user", "content": "hi"}]
    body = json.dumps({"model": "m", prompt: said, **members}).encode()
    return KIND_PATHS[path].read(IncomingBody(body, "", None, max_n=8)).files


@pytest.mark.parametrize(
    ("members", "files"),
    [
        ({}, 0),
        ({"file_ids": ["a", "b"]}, 1),  # one prompt: all of them fill one context
        ({"file_ids": [], "files": None, "image": "", "attachments": {}}, 0),
        ({"images": ["AA"], "video_url": "https://a.example/b.mp4"}, 2),
        ({"user": "file_ids", "metadata": {"files": "x"}}, 0),
    ],
)
def test_members_beside_the_prompt_are_files(members: dict, files: int) -> None:
    """Red before: held at the bytes of their names, and billed by what they hold."""
    assert files_of(**members) == files
    assert files_of("/v1/completions", **members) == files


@pytest.mark.parametrize(
    ("text", "files"),
    [
        ('"fileid://file-fe-x"', 1),
        ('"\\u0066ileid://file-fe-x"', 1),
        ('"f\\u0069le\\u0069d\\u003A//x"', 1),
        ('"file id: x, \\u0066ile, \\u00e9, \\u00"', 0),
        ('"my fileid is 7"', 0),
    ],
)
def test_an_address_within_a_text_is_a_file(text: str, files: int) -> None:
    """DashScope opens what a system message names so, up to ten million tokens of it."""
    body = b'{"model":"m","messages":[{"role":"system","content":%b}]}' % text.encode()
    if text.endswith('\\u00"'):
        body = body.replace(b'\\u00"', b'"')
    read = KIND_PATHS["/v1/chat/completions"].read(IncomingBody(body, "", None, max_n=8))
    assert read.files == files
