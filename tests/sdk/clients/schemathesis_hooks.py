"""What schemathesis is told beside the OpenAPI document, loaded by it in its own environment.

The document cannot list a key's models: every other body names one that there is, so that what lies
behind the check of the name is tested, too, with short answers. Five rules cannot be written as
JSON Schema, and bodies that break them are no valid data: they are left out.
"""

import re

import schemathesis

NAME = re.compile(r"[!-~]([ -~]*[!-~])?")
SCORES = ("/v1/score", "/score")
PAIRS = (
    ("text_1", "text_2"),
    ("queries", "documents"),
    ("queries", "items"),
    ("data_1", "data_2"),
)
RANKINGS = ("/v1/rerank", "/v2/rerank", "/rerank")
SPEECH = "/v1/audio/speech"
SOUNDS = ("/v1/audio/transcriptions", "/v1/audio/translations")
FORMATS = {SPEECH: "mp3", **dict.fromkeys(SOUNDS, "json")}
EDITS = "/v1/images/edits"
FORMS = (*SOUNDS, EDITS)
SERVED = {
    "/v1/embeddings": "embed",
    "/v1/images/generations": "draw",
    EDITS: "draw",
    SPEECH: "speak-tokens",
    "/v1/moderations": "omni-moderation-latest",
    **dict.fromkeys(SCORES, "embed"),
    **dict.fromkeys(RANKINGS, "rank"),
    **dict.fromkeys(SOUNDS, "hear"),
}
LIMITS = {
    "/v1/chat/completions": "max_completion_tokens",
    "/v1/completions": "max_tokens",
    "/v1/messages": "max_tokens",
    "/v1/responses": "max_output_tokens",
}
MOST_TOKENS = 64  # the model's context is a limit that is not in the document
FEW_TOKENS = 1
MAX_N = 8


@schemathesis.hook
def map_case(context, case):
    body, path = case.body, case.operation.path
    if not isinstance(body, dict):
        return case
    valid = case.meta is not None and case.meta.generation.mode.is_positive
    if path in FORMS:
        # What has a file in it goes for invalid once a hook has touched it; what is done here to
        # such a body leaves it as valid as it was.
        case.freeze_metadata()
    name = body.get("model")
    if isinstance(name, str) and len(name) % 2 and len(name) <= 256 and NAME.fullmatch(name):
        body["model"] = SERVED.get(path, "chat")
    if path in LIMITS and path != "/v1/messages":
        body.setdefault(LIMITS[path], FEW_TOKENS)
    # A wrong value must not be replaced by a right one.
    if valid and path in RANKINGS:
        _with_texts(body)
    if valid and path in SCORES:
        _with_words(body)
    if valid and path == SPEECH and body.get("voice") is None:
        body["voice"] = "alloy"  # which this target requires
    if valid and path in FORMATS and "response_format" in body:
        body["response_format"] = FORMATS[path]
    return case


def _with_texts(body):
    """This target ranks texts; objects of any other form are for others to judge."""
    documents = body.get("documents")
    for document in documents if isinstance(documents, list) else ():
        if isinstance(document, dict):
            document["text"] = "word"
    if isinstance(body.get("query"), dict):
        body["query"] = "word"


def _with_words(body):
    """The same of a target that scores texts."""
    for name, side in body.items():
        if isinstance(side, dict):
            body[name] = "word"
        elif isinstance(side, list):
            body[name] = ["word" if isinstance(text, dict) else text for text in side]


@schemathesis.hook
def filter_case(context, case):
    body = case.body
    if not isinstance(body, dict):
        return True
    broken = (
        _too_long(body)
        or _too_many(body)
        or _ends_with_the_assistant(case, body)
        or (case.operation.path in SCORES and _has_uneven_sides(body))
        or _names_twice(body)
    )
    return not broken and not _is_wrong_as_text(case)


def _is_wrong_as_text(case):
    """In a form all is text: `[null]` is sent as `null`, `true` as a word, and both are valid.

    Wrong forms that were thought out are the coverage phase's; random ones cannot be told apart.
    """
    meta = case.meta
    negative = meta is not None and meta.generation.mode.is_negative
    return negative and case.operation.path in FORMS and meta.phase.name == "fuzzing"


def _too_long(body) -> bool:
    given = (body.get(name) for name in set(LIMITS.values()))
    return any(isinstance(value, int | float) and MOST_TOKENS < value < 2**31 for value in given)


def _too_many(body) -> bool:
    """`n` x prompts is bounded: a product."""
    prompt, n = body.get("prompt"), body.get("n")
    if not isinstance(prompt, list) or not isinstance(n, int | float) or not 1 <= n <= MAX_N:
        return False
    tokens = bool(prompt) and isinstance(prompt[0], int | float)
    return n * (1 if tokens else len(prompt)) > MAX_N


def _says_something(message) -> bool:
    """Of instructions alone: a turn of the user counts as one, whatever it says."""
    if not isinstance(message, dict) or message.get("role") != "system":
        return True
    content = message.get("content")
    if not isinstance(content, list):
        return bool(content)
    return any(block != {"type": "text", "text": ""} for block in content)


def _has_uneven_sides(body) -> bool:
    """The first side of a score is one text, or as many as the second has."""
    for first, second in PAIRS:
        left, right = body.get(first), body.get(second)
        if isinstance(left, list) and right is not None:
            return len(left) not in (1, len(right) if isinstance(right, list) else 1)
    return False


def _names_twice(body) -> bool:
    """The `custom_id` of a request in a batch is its own."""
    requests = body.get("requests")
    if not isinstance(requests, list):
        return False
    names = [item.get("custom_id") for item in requests if isinstance(item, dict)]
    return len(names) != len({repr(name) for name in names})


def _ends_with_the_assistant(case, body) -> bool:
    """The last item of a list has rules of its own; nor are instructions without a word one."""
    messages = body.get("messages")
    if not case.operation.path.startswith("/v1/messages") or not isinstance(messages, list):
        return False
    if messages and not any(map(_says_something, messages)):
        return True
    last = messages[-1] if messages else None
    return isinstance(last, dict) and last.get("role") == "assistant"
