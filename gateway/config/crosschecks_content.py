"""Checks of policies' content rules: unknown kinds, patterns, guardrails and their order."""

from collections.abc import Iterator
from urllib.parse import urlsplit

from gateway.config.content_kinds import CONTENT_KINDS
from gateway.config.content_patterns import PatternError, compile_patterns
from gateway.config.faults import ConfigFault, Place, suggest, warning
from gateway.config.schema import Settings
from router.content import UNKNOWN


def check_content_kinds(settings: Settings) -> Iterator[ConfigFault]:
    """Yield content kinds that nothing detects, and actions that do not work on answers."""
    known = content_kinds(settings)
    for index, rule in enumerate(settings.policies):
        for kind, action in rule.content.items():
            place: Place = ("policies", index, "content", kind)
            hook = settings.content.hooks.get(kind)
            if kind not in known:
                words = f"no kind of content is named `{kind}`{suggest(kind, known)}"
                yield ConfigFault(place, words, about=("content", "patterns", kind))
            elif kind == UNKNOWN and action == "mask":
                yield ConfigFault(place, "unreadable content cannot be masked: use `keep_inside`")
            elif hook is not None and hook.stage == "after" and action == "keep_inside":
                words = "an answer has already left its target: use `refuse` or `mask`"
                yield ConfigFault(place, words)
        if rule.shadow and rule.content:
            place = ("policies", index, "content")
            yield warning(place, "a shadow rule has no effect: no content is inspected for it")


def check_content_names(settings: Settings) -> Iterator[ConfigFault]:
    taken = dict.fromkeys(CONTENT_KINDS, "a kind that the gateway detects itself")
    for name in settings.content.patterns:
        if name in taken:
            yield ConfigFault(("content", "patterns", name), f"`{name}` is {taken[name]}")
    taken |= dict.fromkeys(settings.content.patterns, "one of `patterns`")
    for name in settings.content.hooks:
        if name in taken:
            yield ConfigFault(("content", "hooks", name), f"`{name}` is {taken[name]}")


def check_content_patterns(settings: Settings) -> Iterator[ConfigFault]:
    for name, pattern in settings.content.patterns.items():
        place: Place = ("content", "patterns", name)
        try:
            compile_patterns([pattern])
        except PatternError as error:
            yield ConfigFault(place, f"is not a supported regular expression: {error}")


def check_content_hooks(settings: Settings) -> Iterator[ConfigFault]:
    for name, hook in settings.content.hooks.items():
        place: Place = ("content", "hooks", name, "url")
        host = urlsplit(hook.url).hostname
        if not host:
            yield ConfigFault(place, "names no host: http://10.0.0.5:9000/classify")
        elif hook.url.startswith("http:") and hook.address_residency == "any":
            words = "texts would leave the network unencrypted: say `https:`, or, if it is inside"
            yield warning(place, f"{words}, `address_residency: internal_only`")


def content_kinds(settings: Settings) -> set[str]:
    """Return all kinds of content that a policy may name."""
    content = settings.content
    return {*CONTENT_KINDS, *content.patterns, *content.hooks}


CONTENT_CHECKS = (
    check_content_kinds,
    check_content_names,
    check_content_patterns,
    check_content_hooks,
)
