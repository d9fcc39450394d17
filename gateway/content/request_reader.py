"""Reads all text of a request, what is new of its conversation alone, and masks what is found."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from functools import partial
from time import perf_counter
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from gateway.content.body_texts import (
    LEAST_NUMBER,
    PROMPTS,
    BodyTexts,
    TextRewriter,
)
from gateway.content.long_json import count_quotes, decode_long, let_go
from gateway.content.masking import Placeholders, mask_texts
from gateway.content.prefix_memory import LEAST_BYTES, ReadPrefix, ScannedBeginnings
from gateway.content.seams import REACH, SplitFind, brief_tail, find_across
from gateway.content.secret_formats import LONGEST
from gateway.content.slices import SlicePace, TextPiece, slices_of
from gateway.content.text_scanner import ScanResult, TextFind, TextScanner
from gateway.content.turn_taker import TurnTaker
from gateway.errors import RequestError
from gateway.http.body import Members, decode_members, encode, encode_raw
from gateway.http.forms import FormRequest
from gateway.kinds import KIND_PATHS
from gateway.kinds.inference_request import IncomingBody, InferenceRequest
from router.content import UNKNOWN

_UNSPOKEN: Final = frozenset((
    "model", "stream", "stream_options", "temperature", "top_p", "max_tokens", "n", "seed",
    "max_completion_tokens", "presence_penalty", "frequency_penalty", "logprobs", "top_logprobs",
    "parallel_tool_calls", "service_tier", "store", "priority", "encoding_format", "dimensions",
))  # fmt: skip
_NEAR: Final = 8 * REACH  # of an end of a text: no window has more of a long one
_MOST_CHOICES: Final = 1 << 20  # the request was read once with the real limit


class MemberReading(msgspec.Struct, frozen=True):
    """The content of one member: texts of it that are new, finds in them, and counts of all."""

    texts: list[str]
    finds: list[TextFind]
    splits: list[SplitFind]
    found: dict[str, int]
    unread: int


class RequestReader:
    """One set of detectors with its memory."""

    def __init__(self, scanner: TextScanner) -> None:
        self._scanner = scanner
        self._least_number = 0 if scanner.has_patterns else LEAST_NUMBER
        self._memory = ScannedBeginnings()

    async def read(self, asked: InferenceRequest) -> dict[str, int]:
        """Return how much of each kind a request holds, in all of its parts."""
        found: Counter[str] = Counter()
        rest = BodyTexts(self._least_number)
        for name, raw in _members_of(asked).items():
            if _is_unspoken(name, raw):
                continue
            encoded = bytes(raw)
            if len(encoded) >= LEAST_BYTES and encoded[:1] == b"[":
                found.update(await self._read_remembered(name, encoded))
                continue
            value = await decode_long(encoded, TurnTaker())
            found[UNKNOWN] += _is_tokens(name, value)
            before = rest.strings
            await _add(rest, value, name)
            await _check_all(encoded, rest.strings - before, name)
        if asked.form is not None:
            found[UNKNOWN] += _add_form(rest, asked.form)
        found.update((await self._scan(rest, None)).found)
        found[UNKNOWN] += bool(asked.media_parts or asked.files)
        return {kind: count for kind, count in sorted(found.items()) if count}

    async def read_kept(self, asked: InferenceRequest) -> dict[str, int]:
        """Return the same of what is stored with the answer."""
        made = replace(asked, members=asked.kept or {}, native=None, form=None)
        return await self.read(replace(made, media_parts=0, files=0))

    async def mask(
        self, asked: InferenceRequest, kinds: Collection[str], names: Placeholders
    ) -> InferenceRequest:
        """Return the request with placeholders for what it holds of these kinds.

        Its sizes are those of the masked text. Raises `RequestError` where it cannot be read again.
        """
        names.reserve(_members_of(asked))
        members = await self._mask_members(asked.members, kinds, names)
        native, translated, kept = asked.native, asked.translated, asked.kept
        if native is not None:
            inner = await self._mask_members(native.members, kinds, names)
            native = replace(native, members=inner)
        if translated:
            translated = await self._mask_members(translated, kinds, names)
        if kept:
            kept = await self._mask_members(kept, kinds, names)
        made = replace(asked, members=members, native=native, translated=translated, kept=kept)
        if members is asked.members and native is asked.native and translated is asked.translated:
            return asked if kept is asked.kept else made
        return _resized(made, asked)

    def texts_of(self, asked: InferenceRequest) -> list[str]:
        """Return what a request says, in the order of its members; names of members are no part.

        Another form of it puts some texts together: what stands in one form alone comes last.
        """
        said = _content_of(_members_of(asked))
        if asked.form is not None:
            body = BodyTexts()
            _add_form(body, asked.form)
            said += [body.texts[place] for place in body.content]
        known = set(said)
        for members in _other_forms(asked):
            more = [text for text in _content_of(members) if text not in known]
            said += more
            known.update(more)
        return said

    def with_texts(self, asked: InferenceRequest, texts: Mapping[str, str]) -> InferenceRequest:
        """Return the request with other texts, by those that stand there now."""
        members = _replaced(asked.members, texts)
        native, translated, kept = asked.native, asked.translated, asked.kept
        if native is not None:
            native = replace(native, members=_replaced(native.members, texts))
        if translated:
            translated = _replaced(translated, texts)
        if kept:
            kept = _replaced(kept, texts)
        return _resized(
            replace(asked, members=members, native=native, translated=translated, kept=kept), asked
        )

    async def _read_remembered(self, name: str, raw: bytes) -> dict[str, int]:
        """Read a list from where an earlier request's reading of it ended."""
        known = self._memory.find(raw)
        end, before = (0, None) if known is None else known
        rest = b"[" + raw[end:].lstrip(b" \t\r\n,") if end else raw
        texts = BodyTexts(self._least_number)
        values: Sequence[Any] = await decode_long(rest, TurnTaker())
        if not values and before is not None:
            return {**before.found, UNKNOWN: before.unread}
        await _add(texts, values, name)
        await _check_all(rest, texts.strings, name)
        read = await self._scan(texts, before)
        found, unread = Counter(read.found), read.found.pop(UNKNOWN, 0)
        unread += _is_tokens(name, values)
        if before is not None:
            found.update(before.found)
            unread += before.unread
        found.pop(UNKNOWN, None)
        kept = ReadPrefix(
            dict(found), unread, texts.media,
            _tail(texts.texts, texts.content, "" if before is None else before.tail),
            _tail(texts.texts, texts.spoken, "" if before is None else before.spoken),
            brief_tail(texts.texts, texts.content, "" if before is None else before.brief),
        )  # fmt: skip
        self._memory.keep(raw, kept)
        turns = TurnTaker()
        for large in (values, texts.texts, texts.content, texts.spoken, texts.named, read.finds):
            await let_go(large, turns)
        return {**found, UNKNOWN: unread}

    async def _scan(
        self, body: BodyTexts, before: ReadPrefix | None, *, every: bool = False
    ) -> MemberReading:
        """Scan texts slice by slice, then what stands across their ends.

        `every`: the finds of the reading are all; else those that a seam may be near of.
        """
        found, near = Counter[str](), list[TextFind]()
        unread = body.media
        pace = SlicePace()
        async for result in self._scan_slices(body.texts, pace):
            unread += result.unread
            for find in result.finds:
                found[find.kind] += 1
                if every or _is_near(find, len(body.texts[find.text])):
                    near.append(find)
        texts, orders, brief = body.texts, [body.content], [*body.content]
        if body.spoken != body.content:
            orders.append(body.spoken)
        if before is not None:
            texts = [*texts, before.tail, before.spoken]
            orders = [[len(body.texts), *body.content], [len(body.texts) + 1, *body.spoken]]
            texts, brief = [*texts, before.brief], [len(texts), *brief]
        splits, absorbed = await find_across(
            texts, orders, partial(self._scan_windows, pace), near, body.named, brief
        )
        own = len(body.texts)  # what stands in an earlier turn alone was counted there
        splits = [split for split in splits if any(part.text < own for part in split)]
        found.subtract(find.kind for find in absorbed)
        found.update(split[0].kind for split in splits)
        found[UNKNOWN] += unread
        single = [find for find in near if find not in absorbed] if absorbed else near
        return MemberReading(body.texts, single, splits, dict(found), unread)

    def _scan_group(self, group: Sequence[TextPiece], texts: Sequence[str]) -> ScanResult:
        """Scan a slice; a find that goes on behind it is looked at whole."""
        result = self._scanner.scan([piece.piece for piece in group])
        last = group[-1]
        end = last.start + len(last.piece)
        if end < len(texts[last.text]) and any(
            find.end == len(last.piece) and last.start + find.start < last.last
            for find in result.finds
        ):
            whole = texts[last.text][last.start : end + LONGEST]
            result = self._scanner.scan([whole])
        placed = []
        for kind, number, start, finish, value in result.finds:
            owner = group[number]
            if owner.first <= owner.start + start < owner.last:
                at = owner.start
                placed.append(TextFind(kind, owner.text, at + start, at + finish, value))
        return ScanResult(placed, result.unread)

    async def _scan_slices(
        self, texts: Sequence[str], pace: SlicePace
    ) -> AsyncIterator[ScanResult]:
        """Yield what each slice of texts holds; others have a turn between two."""
        began_s = perf_counter()
        for number, group in enumerate(slices_of(texts, pace)):
            if number:
                await asyncio.sleep(0)
                began_s = perf_counter()
            yield self._scan_group(group, texts)
            pace.record(perf_counter() - began_s)

    async def _scan_windows(self, pace: SlicePace, texts: Sequence[str]) -> ScanResult:
        finds, unread = list[TextFind](), 0
        async for result in self._scan_slices(texts, pace):
            finds += result.finds
            unread += result.unread
        return ScanResult(finds, unread)

    async def _mask_members(
        self, members: Members, kinds: Collection[str], names: Placeholders
    ) -> Members:
        """Return members with what they hold masked; the same object where there is nothing."""
        changed: Members = {}
        for name, raw in members.items():
            if _is_unspoken(name, raw):
                continue
            value = await decode_long(raw, TurnTaker())
            body = BodyTexts(self._least_number)
            await _add(body, value, name)
            read = await self._scan(body, None, every=True)
            masked = await mask_texts(body.texts, read.finds, read.splits, kinds, names)
            if masked:
                rewriter = TextRewriter(masked, self._least_number)
                made = await rewriter.rewrite_in_turns(value, name, TurnTaker())
                changed[name] = encode_raw(made)
        return {**members, **changed} if changed else members


async def _add(body: BodyTexts, value: Any, name: str) -> None:
    """Add the texts of a member, and let others have turns in between."""
    turns = TurnTaker()
    for _ in body.steps(value, name, spoken=name in PROMPTS):
        await turns.rest()


def _is_near(find: TextFind, size: int) -> bool:
    """Return whether a find stands near an end of its text, where a seam may be."""
    return find.start < _NEAR or find.end > size - _NEAR


def _replaced(members: Members, texts: Mapping[str, str]) -> Members:
    changed: Members = {}
    for name, raw in members.items():
        if _is_unspoken(name, raw):
            continue
        value = msgspec.json.decode(raw)
        body = BodyTexts()
        body.add(value, name)
        others = {
            place: texts[text]
            for place in body.content
            if texts.get(text := body.texts[place], text) != text
        }
        if others:
            changed[name] = encode_raw(TextRewriter(others).rewrite(value, name))
    return {**members, **changed}


def _members_of(asked: InferenceRequest) -> Members:
    """Return all members that a target may get: those of a native request hold more than chat's."""
    if asked.native is None:
        return asked.members
    return {**asked.members, **asked.native.members}


def _is_unspoken(name: str, raw: bytes | msgspec.Raw) -> bool:
    """Return whether a member has no text: numbers and booleans. Other values are passed on."""
    if name not in _UNSPOKEN:
        return False
    return name == "model" or bytes(memoryview(raw)[:1]) not in (b'"', b"{", b"[")


def _other_forms(asked: InferenceRequest) -> list[Members]:
    """Return members of other forms, which a target may get in their place or which are stored."""
    is_chat_sent = asked.native is not None and asked.native.refusal is None
    forms = [asked.members] if is_chat_sent else []
    return [*forms, *(form for form in (asked.translated, asked.kept) if form)]


def _content_of(members: Members) -> list[str]:
    """Return the texts of members that may be parts of what is said."""
    body = BodyTexts()
    for name, raw in members.items():
        if not _is_unspoken(name, raw):
            body.add(msgspec.json.decode(raw), name)
    return [body.texts[place] for place in body.content]


async def _check_all(raw: bytes, strings: int, name: str) -> None:
    """Raise `RequestError` where a name stands twice in an object: nobody knows which counts.

    A decoder keeps the last of a name's: what stands under the others would leave unread.
    """
    if await count_quotes(raw, TurnTaker()) != 2 * strings:
        words = f"In an object of `{name}` a name stands twice. Send each once."
        raise RequestError("duplicate_key", words, param=name)


def _is_tokens(name: str, value: Any) -> bool:
    """Return whether a prompt is numbers of tokens, which say nothing without the tokenizer."""
    if name not in PROMPTS or not isinstance(value, list) or not value:
        return False
    first = value[0][0] if isinstance(value[0], list) and value[0] else value[0]
    return isinstance(first, int)


def _add_form(texts: BodyTexts, form: FormRequest) -> int:
    """Add a form's fields; return how many files it has."""
    files = 0
    for name, parts in form.parts.items():
        for part in parts:
            if part.is_file:
                files += 1
            else:
                texts.add(form.text[part.start : part.end].decode(errors="replace"), name)
    return files


def _tail(texts: Sequence[str], places: Sequence[int], before: str) -> str:
    """Return the last characters of texts that may go on in the next turn."""
    tail = ""
    for place in reversed(places):
        tail = texts[place][-REACH:] + tail
        if len(tail) >= REACH:
            return tail[-REACH:]
    return (before + tail)[-REACH:]


def _resized(made: InferenceRequest, asked: InferenceRequest) -> InferenceRequest:
    """Return the masked request with the sizes of its text as its kind reads them.

    What was measured beside (sounds, pictures) stays: the difference of two readings is applied.
    """
    reader = KIND_PATHS.get(f"/v1{asked.path}")
    if reader is None:
        return made
    old, new = (
        reader.read(IncomingBody(encode(members), "application/json", asked.session, _MOST_CHOICES))
        for members in (_copy(asked.members), _copy(made.members))
    )
    return replace(
        made,
        prompt_bytes=max(0, asked.prompt_bytes + new.prompt_bytes - old.prompt_bytes),
        seldom_read_bytes=max(
            0, asked.seldom_read_bytes + new.seldom_read_bytes - old.seldom_read_bytes
        ),
        extent=asked.extent if new.extent == old.extent else new.extent,
    )


def _copy(members: Mapping[str, msgspec.Raw]) -> Members:
    return decode_members(encode(dict(members)))
