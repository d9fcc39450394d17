"""Evaluation of candidate models against a baseline, prompt by prompt, with a log.

An interrupted evaluation continues from its log. A subject is an address, or a model directory with
flags. For a directory an engine is started under the guard, like all own engines, and stopped
before the next one starts. The baseline runs first. Its answers and their log-probabilities are
kept in the log, so that candidates can be added later.
"""

import asyncio
import hashlib
import json
import math
import shlex
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import httpx

from backends.engine.environment import CpuOptions, Environment, Flavour
from backends.engine.evalclient import EvalModel, ModelAnswer, NoAnswer, only_model
from backends.engine.evalfigures import PromptComparison, TokenLogprob, compare_forced, compare_free
from backends.engine.evalprompts import Checker, CheckFailed, Prompt
from backends.engine.flags import BadFlags, EngineLaunch
from backends.engine.trial import DRAIN_S, DidNotServe, file_name, make_vllm_trial, serving
from backends.engine.worklog import WorkLog

BASELINE = "baseline"
NAME = "eval"
TIMEOUT_S = 300.0
_READ_WHOLE = 64 << 20  # bytes
_FAULTS = (NoAnswer, CheckFailed, KeyError, ValueError, TypeError, LookupError)


@dataclass(frozen=True, slots=True)
class EvalSubject:
    """Model of an evaluation. `target` is an address (`URL#MODEL`) or a directory.

    `mark` identifies the subject in the log. A directory whose files change becomes another
    subject. `flags` are the engine's.
    """

    name: str
    target: str
    mark: str
    flags: tuple[str, ...] = ()

    @property
    def is_address(self) -> bool:
        return _is_address(self.target)


def subject(words: str, name: str | None = None) -> EvalSubject:
    """Parse `[NAME=]TARGET [flags]`. Raises `ValueError` when the text is not valid."""
    parts = shlex.split(words)
    if not parts:
        raise ValueError("name a model directory, with flags if needed, or an address")
    head, rest = parts[0], tuple(parts[1:])
    label, equals, target = head.partition("=")
    if not equals or "/" in label:
        label, target = "", head
    label = name or label or target.rstrip("/").rpartition("/")[2]
    if _is_address(target):
        if rest:
            raise ValueError(f"{target} is an address: flags apply only to a model directory")
        return EvalSubject(label, target, target)
    folder = Path(target).resolve()
    if not (folder / "config.json").is_file():
        raise ValueError(f"{target} is neither an address nor a model: it has no config.json")
    return EvalSubject(label, str(folder), _digest(folder, rest), rest)


def _digest(folder: Path, flags: tuple[str, ...]) -> str:
    """Return a digest of a directory's files and the flags; large files count by mtime."""
    found = hashlib.sha256(json.dumps([str(folder), flags]).encode())
    for path in sorted(folder.glob("*.*")):
        stat = path.stat()
        found.update(f"{path.name} {stat.st_size} ".encode())
        if stat.st_size <= _READ_WHOLE:
            found.update(path.read_bytes())
        else:
            found.update(str(stat.st_mtime_ns).encode())
    return found.hexdigest()[:16]


def _is_address(target: str) -> bool:
    return target.startswith(("http://", "https://"))


@dataclass(frozen=True, slots=True)
class EvaluationRun:
    prompts: tuple[Prompt, ...]
    tokens: int
    at_once: int
    environment: Environment
    flavour: Flavour
    logs: Path
    checker: Checker | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    start_limit_s: float = 900.0
    cpu: CpuOptions = field(default_factory=CpuOptions)


async def evaluate(
    asked: EvaluationRun,
    sides: tuple[EvalSubject, Sequence[EvalSubject]],
    log: WorkLog,
    say: Callable[[str], None],
) -> dict[str, str]:
    """Evaluate the prompts that the log lacks. Return the last fault of each subject by name.

    `sides` are the baseline and its candidates.
    """
    baseline, candidates = sides
    faults: dict[str, str] = {}
    for candidate in (baseline, *candidates):
        first = _key(baseline)
        if candidate is baseline:
            todo = [prompt for prompt in asked.prompts if f"{first}/{prompt.key}" not in log.done]
        else:
            todo = [
                prompt for prompt in asked.prompts
                if f"{first}/{prompt.key}" in log.done
                and f"{_key(candidate, baseline)}/{prompt.key}" not in log.done
            ]  # fmt: skip
        if not todo:
            continue
        say(f"{candidate.name}: starting")
        try:
            async with _side(asked, candidate) as side:
                step = _baseline_step(side, asked, log, first)
                if candidate is not baseline:
                    step = _comparison_step(side, asked, log, (first, _key(candidate, baseline)))
                fault = await _run_prompts(
                    todo, step, asked.at_once, partial(_report_named, say, candidate.name)
                )
        except (DidNotServe, BadFlags, NoAnswer, OSError) as error:
            fault = str(error)
        if fault:
            faults[candidate.name] = fault[:600]
    return faults


def items(
    asked: EvaluationRun, sides: tuple[EvalSubject, EvalSubject], log: WorkLog
) -> tuple[list[PromptComparison], str, int]:
    """Return a candidate's comparisons, their kind, and the number of missing ones.

    The kind is "forced" or "freely". One prompt without a forced comparison makes it "freely" for
    all.
    """
    baseline, candidate = sides
    first, second = _key(baseline), _key(candidate, baseline)
    found = [log.done.get(f"{second}/{prompt.key}") for prompt in asked.prompts]
    heard = [log.done.get(f"{first}/{prompt.key}") for prompt in asked.prompts]
    kept = [finding for finding, other in zip(found, heard, strict=True) if finding and other]
    way = "forced" if kept and all("forced" in kept_value for kept_value in kept) else "freely"
    made = []
    for kept_value in kept:
        item = dict(kept_value[way])
        for name in ("surprise", "scores"):
            if item.get(name) is not None:
                item[name] = tuple(item[name])
        made.append(PromptComparison(**item))
    return made, way, len(asked.prompts) - len(made)


def _report_named(say: Callable[[str], None], name: str, words: str) -> None:
    say(f"{name}: {words}")


def _key(eval_subject: EvalSubject, baseline: EvalSubject | None = None) -> str:
    return (
        f"{BASELINE} {eval_subject.mark}"
        if baseline is None
        else f"{eval_subject.mark} of {baseline.mark}"
    )


@asynccontextmanager
async def _side(asked: EvaluationRun, eval_subject: EvalSubject) -> AsyncIterator[EvalModel]:
    limits = httpx.Limits(max_connections=asked.at_once)
    async with httpx.AsyncClient(trust_env=False, timeout=TIMEOUT_S, limits=limits) as client:
        if eval_subject.is_address:
            url, _, model = eval_subject.target.partition("#")
            url = url.rstrip("/")
            model = model or await only_model(client, url, asked.headers)
            yield EvalModel(client, url, model, asked.tokens, asked.headers)
            return
        launch = EngineLaunch(
            asked.environment,
            Path(eval_subject.target),
            NAME,
            asked.flavour,
            flags=eval_subject.flags,
            drain_s=DRAIN_S,
        )
        log = asked.logs / f"{file_name(eval_subject.name)}.log"
        trial = await make_vllm_trial(launch, log, asked.start_limit_s, asked.cpu)
        async with serving(trial) as server:
            yield EvalModel(client, server.base_url, server.model, asked.tokens)


async def _run_prompts(
    prompts: Sequence[Prompt],
    step: Callable[[Prompt], Awaitable[None]],
    at_once: int,
    say: Callable[[str], None],
) -> str:
    """Run `step` for all prompts, `at_once` concurrently. Return the last fault, or "".

    A failed prompt is left out.
    """
    waiting, fault, done = iter(prompts), "", 0

    async def run_waiting() -> None:
        nonlocal fault, done
        for prompt in waiting:
            try:
                await step(prompt)
            except _FAULTS as error:
                fault = f"{type(error).__name__}: {error}"
            done += 1
            say(f"{done} of {len(prompts)} prompts")

    async with asyncio.TaskGroup() as group:
        for _ in range(at_once):
            group.create_task(run_waiting())
    return fault


def _baseline_step(
    side: EvalModel, asked: EvaluationRun, log: WorkLog, key: str
) -> Callable[[Prompt], Awaitable[None]]:
    """Return the step of the baseline: log its answer, the log-probabilities and the score."""

    async def step(prompt: Prompt) -> None:
        answer = await side.answer(prompt.messages)
        thought = await side.logprobs_of(answer.ids) if answer.ids else None
        score = await asked.checker.score(prompt, answer.text) if asked.checker else None
        entry = {
            "text": answer.text, "told": _pack(answer.told), "ids": answer.ids, "score": score,
            "thought": None if thought is None else _pack(thought),
        }  # fmt: skip
        log.add(f"{key}/{prompt.key}", entry)

    return step


def _comparison_step(
    side: EvalModel, asked: EvaluationRun, log: WorkLog, keys: tuple[str, str]
) -> Callable[[Prompt], Awaitable[None]]:
    """Return the step of a candidate: log both kinds of comparison where possible.

    All prompts must be summed over one kind, and that kind is known only at the end.
    """
    baseline, candidate = keys

    async def step(prompt: Prompt) -> None:
        known = log.done[f"{baseline}/{prompt.key}"]
        answer: ModelAnswer = await side.answer(prompt.messages)
        score = await asked.checker.score(prompt, answer.text) if asked.checker else None
        scores = None if score is None or known["score"] is None else (known["score"], score)
        more = {"scores": scores, "same": answer.text == known["text"]}
        entry = {
            "freely": asdict(replace(compare_free(_unpack(known["told"]), answer.told), **more))
        }
        if known["thought"] is not None and answer.ids:
            if list(answer.ids[0]) != known["ids"][0]:
                raise ValueError("the prompt has other tokens: tokenizer or template differ")
            thought = await side.logprobs_of(known["ids"])
            if thought is not None:
                comparison = compare_forced(_unpack(known["thought"]), thought)
                entry["forced"] = asdict(replace(comparison, **more))
        log.add(f"{candidate}/{prompt.key}", entry | {"text": answer.text})

    return step


def _pack(told: Sequence[TokenLogprob]) -> list[Any]:
    return [
        [line.token, None if math.isnan(line.logprob) else round(line.logprob, 5),
         {token: round(value, 5) for token, value in line.top.items()}]
        for line in told
    ]  # fmt: skip


def _unpack(packed: Sequence[Any]) -> list[TokenLogprob]:
    return [
        TokenLogprob(token, float("nan") if value is None else value, top)
        for token, value, top in packed
    ]
