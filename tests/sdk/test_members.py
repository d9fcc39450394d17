"""Nothing vanishes: every member of every request type of two SDKs, read as the gateway reads it.

A program under each SDK's interpreter lists the members of its types, nested ones too, each with a
body that has it and one that has not (`clients/request_types.py`). What a target would get must
differ between them, else the member must be refused by its name or named as ignored. Of others the
reason stands in `USED`, `HISTORY` or `SAME`, by a pattern of "path place".
"""

import asyncio
import json
import re
import subprocess
from functools import cache
from itertools import starmap
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from deploy import parts
from gateway.batches import batches_api, message_shapes
from gateway.errors import RequestError
from gateway.http.body import decode_members
from gateway.http.member_rules import STRICT
from gateway.kinds import KIND_PATHS
from gateway.kinds.chat import JUDGED_MEMBERS
from gateway.kinds.inference_request import IncomingBody
from gateway.request.dialects import responses
from gateway.request.dialects.translated_paths import SPOKEN
from gateway.request.dialects.translated_response import TranslatedResponse

PROGRAM = __file__.replace("test_members.py", "clients/request_types.py")
BOUNDARY = "of-ours"
FORMS = {"/v1/images/edits", "/v1/audio/transcriptions", "/v1/audio/translations"}
SEEN = (
    "members", "translated", "features", "session", "stream", "n", "max_tokens", "extent", "form",
    "native", "wants_usage", "wants_running_usage", "residency", "searches_limit",
)  # fmt: skip
PARTS = {"openai": "openai-3", "anthropic": "anthropic"}
SDKS = [pytest.param(sdk, marks=pytest.mark.part(part)) for sdk, part in PARTS.items()]
USED = {  # the gateway does it itself, before or beside the request
    r"/v1/responses(#beta|/compact)? (conversation|previous_response_id|truncation)":
        "The conversation that it goes on from is put into the input; its oldest part is cut.",
    r"/v1/responses(#beta)? (background|store)":
        "Answers are stored and made in the background here.",
    r"/v1/responses(#beta)? metadata": "It is stored with the answer and told again.",
    r"/v1/messages(#beta)? (messages\[\]\.content|tools\[\]\.type)":
        "A text alone and a list with it are the same, and so are a tool with its default type.",
    r"/v1/responses(#beta|/compact)? input\[\]\.(content|type|name|namespace)":
        "A text alone and a list with it are the same; a result's call has its name.",
}  # fmt: skip
HISTORY = {  # of the client's own copy of an earlier answer: no model reads it
    r"/v1/responses(#beta|/compact)? input\[\]\.(id|status|phase|caller|async|execution|agent)":
        "Labels of items of an earlier answer.",
    r"/v1/responses(#beta|/compact)? input\[\]\.pending_safety_checks\[\]\..+":
        "Checks of a computer's action that was done.",
    r"/v1/messages.* messages\[\]\.content\[\]\.content\.(file_type|is_file_update|new_.+|num_.+"
    r"|old_.+|retrieved_at|start_line|stop_reason|total_lines)":
        "Figures beside the text of what a tool at Anthropic came to.",
    r"/v1/messages.* messages\[\]\.content\[\]\.(caller|toolset_name|encrypted_content|signature)":
        "Labels and seals of an earlier answer; targets that speak Messages get them.",
}  # fmt: skip
SAME = {  # what comes by itself, or a whole that the answer names
    r"/v1/messages#beta messages\[\]\.content\[\](\.tool_changes\[\])?\.tool\.definition\.type":
        "A tool with its default type, and a search without its day, are the same.",
    r"/v1/messages#beta messages\[\]\.content\[\]\.tool_changes":
        "To add or take a tool that was never declared changes nothing.",
}  # fmt: skip
KNOWN = USED | HISTORY | SAME


@cache
def told_by(sdk: str) -> dict[str, list]:
    """Members by request, of the SDK that is installed for the tests."""
    python = parts.by_name(PARTS[sdk]).find()
    words = [str(python), "-I", PROGRAM, sdk]
    answer = subprocess.run(words, check=False, capture_output=True, timeout=120)
    assert answer.returncode == 0, answer.stderr.decode()[-3000:]
    return json.loads(answer.stdout)["requests"]


def form(body: dict[str, Any]) -> bytes:
    """A body as a form: files under the name of a file, all else as text."""
    lines = []
    for name, value in body.items():
        for item in value if isinstance(value, list) else [value]:
            is_file = isinstance(item, dict) and "file" in item
            word = item if isinstance(item, str) else json.dumps(item)
            head = f'form-data; name="{name}"' + ('; filename="a.png"' if is_file else "")
            lines.append(f"--{BOUNDARY}\r\ncontent-disposition: {head}\r\n\r\n{word}\r\n")
    return "".join([*lines, f"--{BOUNDARY}--\r\n"]).encode()


def read_spoken(path: str, body: dict[str, Any], *, whole: bool) -> Any:
    """A request of another dialect, as chat or whole."""
    quiet = SimpleNamespace(cancel=lambda: None)
    reply = TranslatedResponse(
        SPOKEN[path], asyncio.sleep, request_id="r", clock=lambda: 0.0, task=quiet
    )  # type: ignore[arg-type]
    reply.passes_whole = whole
    members = decode_members(json.dumps(body).encode())
    ignored = STRICT.drop_denied(members, JUDGED_MEMBERS)
    asked = reply.decode_request(members, max_n=8, session=None, wall_s=0)
    return asked.with_ignored(ignored) if ignored else asked


def completed(path: str, body: dict[str, Any]) -> dict[str, Any]:
    """The body with what the gateway asks for, where the types leave it out."""
    made = {"model": "chat", **body}
    if path in SPOKEN and "tool_choice" in body and not body.get("tools"):
        schema = {"input_schema": {"type": "object"}, "name": "word-of-ours"}
        made["tools"] = [schema if "messages" in path else {"type": "function", **schema}]
    if path.startswith("/v1/messages"):
        made = {"max_tokens": 64, **made}
        said = made.get("messages") or []
        ends = said and said[-1].get("role") == "user"
        made["messages"] = said if ends else [*said, {"role": "user", "content": "go"}]
    if path.startswith("/v1/responses"):
        made = {**made, "input": made.get("input") or "go"}
        if isinstance(made["input"], list):
            items = [{"call_id": "call_1", **item} for item in made["input"]]
            made["input"] = [{"role": "user", "content": "go"}, *items]  # some say nothing alone
    return made


def read(request: str, body: dict[str, Any], *, whole: bool = False) -> Any:
    path = request.partition("#")[0]
    body = completed(path, body)
    if path in SPOKEN:
        return read_spoken(path, body, whole=whole)
    if path in FORMS:
        media = f"multipart/form-data; boundary={BOUNDARY}"
        return KIND_PATHS[path].read(IncomingBody(form(body), media, None, max_n=8))
    text = json.dumps(body).encode()
    return KIND_PATHS[path].read(IncomingBody(text, "application/json", None, max_n=8))


class SeenMembers(msgspec.Struct, frozen=True):
    """What came of a body: what a target gets, what is ignored, or the refusal."""

    out: str
    ignored: tuple[str, ...] = ()
    refusal: str | None = None


def observe(request: str, body: dict[str, Any], *, whole: bool = False) -> SeenMembers:
    try:
        asked = read(request, body, whole=whole)
    except RequestError as error:
        return SeenMembers("", refusal=f"{error.param} {error}")
    native = asked.native.ignored if whole and asked.native is not None else ()
    out = [getattr(asked, name) for name in SEEN]
    if whole and asked.native is not None:
        out = [asked.native.members]
    return SeenMembers(
        repr(list(starmap(plain, zip(SEEN, out, strict=False)))), (*asked.ignored, *native)
    )


def plain(name: str, value: Any) -> Any:
    if isinstance(value, dict):
        value = {key: bytes(item) for key, item in value.items()}
    return name, value


def vanishes(request: str, place: str, base: Any, bodies: list[Any], *, whole: bool) -> bool:
    """Whether no form of a member changes anything, and nobody says so."""
    name = place.rpartition(".")[2]
    without = observe(request, base, whole=whole)
    for body in bodies:
        seen = observe(request, body, whole=whole)
        if seen.refusal is not None:
            if without.refusal is None or seen.refusal != without.refusal:
                return False  # it is refused itself
            continue
        if seen.out != without.out or set(seen.ignored) - set(without.ignored):
            return False
    # A block, a tool or an item that is refused or named as a whole is so with all that is in it.
    root = place.partition(".")[0].partition("[")[0]
    roots = (root, "tools.") if re.search(r"\.tools\[\]|\.definition", place) else (root,)
    named = name != place and any(said.startswith(roots) for said in without.ignored)
    return without.refusal is None and not named


def lost(sdk: str, *, whole: bool = False) -> set[str]:
    return {
        f"{request} {place}"
        for request, members in told_by(sdk).items()
        if request.partition("#")[0] in KIND_PATHS.keys() | SPOKEN.keys()
        for place, base, bodies in members
        if vanishes(request, place, base, bodies, whole=whole)
    }


def unknown(found: set[str]) -> list[str]:
    return sorted(
        name for name in found if not any(re.fullmatch(pattern, name) for pattern in KNOWN)
    )


@pytest.mark.parametrize("sdk", SDKS)
def test_no_member_vanishes(sdk: str) -> None:
    found = lost(sdk)
    assert unknown(found) == []
    paths = "/v1/responses" if sdk == "openai" else "/v1/messages"
    for pattern in KNOWN:
        if pattern.startswith(paths):
            assert any(re.fullmatch(pattern, name) for name in found), f"{pattern} names nothing"


@pytest.mark.part("anthropic")
def test_no_member_vanishes_on_its_way_to_a_target_that_speaks_messages() -> None:
    assert lost("anthropic", whole=True) == set()


def test_a_member_that_is_dropped_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(responses, "_left_out", lambda _: set())
    body = {"input": "go"}
    for name in ("max_tool_calls", "access_programs"):
        said = [{**body, name: 3}]
        assert vanishes("/v1/responses", name, body, said, whole=False)
    monkeypatch.undo()
    assert not vanishes("/v1/responses", "max_tool_calls", body, [{**body, "max_tool_calls": 3}],
                        whole=False)  # fmt: skip


def test_a_member_of_a_batch_is_read_or_refused() -> None:
    for read_body, body in (
        (batches_api._read, {"input_file_id": "f", "endpoint": "/v1/responses",
                             "completion_window": "24h"}),
        (message_shapes.read_creation, {"requests": [{"custom_id": "a", "params": {}}]}),
    ):  # fmt: skip
        read_body(json.dumps(body).encode())
        with pytest.raises(RequestError, match="`odd`"):
            read_body(json.dumps({**body, "odd": 1}).encode())
