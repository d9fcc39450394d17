"""Every member of the request types of an SDK, each with a body that has it and one that has not.

Written to run under the SDK's own interpreter with nothing of ours. Prints JSON: by request, a list
of `[place, base, [body, ...]]`. A body is the least that the types allow, with the member in some
of the forms that its type has. A type stands once in each role that a message can have.
"""

import importlib
import json
import sys
import typing

import typing_extensions

REQUESTS = {
    "openai": {
        "/v1/chat/completions": "chat.completion_create_params:CompletionCreateParams",
        "/v1/completions": "completion_create_params:CompletionCreateParams",
        "/v1/embeddings": "embedding_create_params:EmbeddingCreateParams",
        "/v1/moderations": "moderation_create_params:ModerationCreateParams",
        "/v1/images/generations": "image_generate_params:ImageGenerateParams",
        "/v1/images/edits": "image_edit_params:ImageEditParams",
        "/v1/audio/speech": "audio.speech_create_params:SpeechCreateParams",
        "/v1/audio/transcriptions":
            "audio.transcription_create_params:TranscriptionCreateParams",
        "/v1/audio/translations": "audio.translation_create_params:TranslationCreateParams",
        "/v1/responses": "responses.response_create_params:ResponseCreateParams",
        "/v1/responses#beta": "beta.response_create_params:ResponseCreateParams",
        "/v1/responses/compact": "responses.response_compact_params:ResponseCompactParams",
    },
    "anthropic": {
        "/v1/messages": "message_create_params:MessageCreateParams",
        "/v1/messages#beta": "beta.message_create_params:MessageCreateParams",
    },
}  # fmt: skip
FORMS = 6  # of one value that are tried
DEEPEST = 12
WORD = "word-of-ours"
UNIONS = {typing.Union, type(int | str)}
WRAPPERS = {
    typing.Required, typing.NotRequired, typing.Annotated, typing_extensions.Required,
    typing_extensions.NotRequired, typing_extensions.Annotated,
}  # fmt: skip


def is_object(hint):
    return typing_extensions.is_typeddict(hint)


def unwrapped(hint):
    while typing.get_origin(hint) in WRAPPERS:
        hint = typing.get_args(hint)[0]
    return hint


def is_required(hint):
    required = {typing.Required, typing_extensions.Required}
    while typing.get_origin(hint) in WRAPPERS:
        if typing.get_origin(hint) in required:
            return True
        hint = typing.get_args(hint)[0]
    return False


HINTS = {}


def hints(kind):
    if kind not in HINTS:
        HINTS[kind] = typing_extensions.get_type_hints(kind, include_extras=True)
    return HINTS[kind]


def samples(hint, depth=0):
    """Return values of a type; the first is the least."""
    hint = unwrapped(hint)
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if depth > DEEPEST:
        return []
    if origin in UNIONS:
        each = [samples(argument, depth) for argument in arguments]
        first = [values[0] for values in each if values]
        return [*first, *(value for values in each for value in values[1:])]
    if origin is typing.Literal or origin is typing_extensions.Literal:
        return list(arguments)
    if is_object(hint):
        made = least(hint, depth + 1)
        return [] if made is None else [made]
    if (isinstance(origin, type) and issubclass(origin, dict)) or (
        origin is not None and (getattr(origin, "__name__", "") in ("Mapping", "dict"))
    ):
        return [{WORD: value} for value in samples(arguments[-1], depth)[:2]]
    if origin is not None and arguments and getattr(origin, "__name__", "") in (
        "list", "Iterable", "Sequence", "tuple", "SequenceNotStr",
    ):  # fmt: skip
        return [[value] for value in samples(arguments[0], depth)]
    plain = {str: [WORD], int: [3], float: [0.25], bool: [True, False], bytes: [{"file": WORD}]}
    if hint in (object, typing.Any):
        return [{"of": WORD}]
    return plain.get(hint, [])


def least(kind, depth=0):
    """Return an object with what its type requires; None where nobody can make one."""
    made = {}
    for name, hint in hints(kind).items():
        if is_required(hint):
            values = samples(hint, depth)
            if not values:
                return None
            made[name] = values[0]
    return made


def objects(hint, role=None):
    """Yield the objects that a value may hold, each with what puts one into such a value."""
    hint = unwrapped(hint)
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if is_object(hint):
        yield "", hint, lambda value: value
    elif origin in UNIONS:
        for argument in arguments:
            yield from objects(argument)
    elif origin is not None and arguments:
        inside, put = "[]", lambda value: [value]
        if getattr(origin, "__name__", "") in ("dict", "Mapping"):
            inside, put = ".*", lambda value: {WORD: value}
        for end, kind, wrap in objects(arguments[-1 if inside == ".*" else 0]):
            yield inside + end, kind, lambda value, wrap=wrap, put=put: put(wrap(value))


def cases(kind, place, wrap, seen, role=""):
    """Yield (place, body without the member, bodies with it) for each member below a type."""
    if (kind, role) in seen or place.count(".") + place.count("[") > DEEPEST:
        return
    seen.add((kind, role))
    base = least(kind)
    if base is None:
        return
    for name, hint in hints(kind).items():
        known = base.get(name, WORD + WORD)
        values = [value for value in samples(hint) if value not in ({}, [{}], known)]
        without = base
        if is_required(hint) and not values:
            continue
        if values:
            bodies = [wrap({**without, name: value}) for value in values[:FORMS]]
            yield f"{place}{name}", wrap(without), bodies
    roles = typing.get_args(unwrapped(hints(kind)["role"])) if "role" in hints(kind) else ()
    for spoken in roles or (role,):
        said = {**base, "role": spoken} if roles else base
        for name, hint in hints(kind).items():
            for end, inner, put in objects(hint):

                def inside(value, name=name, put=put, said=said):
                    return wrap({**said, name: put(value)})

                yield from cases(inner, f"{place}{name}{end}.", inside, seen, spoken)


def parts(hint):
    hint = unwrapped(hint)
    return typing.get_args(hint) if typing.get_origin(hint) in UNIONS else (hint,)


def main(sdk):
    told = {}
    for request, address in REQUESTS[sdk].items():
        module, _, name = address.partition(":")
        kinds = parts(getattr(importlib.import_module(f"{sdk}.types.{module}"), name))
        seen, found = set(), []
        for kind in kinds:
            found += cases(kind, "", lambda value: value, seen)
        told[request] = found
    version = importlib.import_module(sdk).__version__
    print(json.dumps({"version": version, "requests": told}, default=str))


main(sys.argv[1])
