"""Engine tasks: start option, test request and probe for each task that vLLM supports.

An engine has one task, whatever request kinds its pool serves; `task_of` returns it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from backends.engine import silence

TaskName = Literal["generate", "embedding", "rerank", "transcription"]
Question = dict[str, Any]  # keyword arguments of httpx's `post`


@dataclass(frozen=True, slots=True)
class ReadingProbe:
    """Requests that measure how fast an engine reads, for tasks without token-by-token output.

    `question` takes the model's name and a size, in words, or in seconds of sound if `seconds`.
    """

    sizes: tuple[int, ...]
    seconds: bool
    question: Callable[[str, int], Question]


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineTask:
    """Task of an engine.

    `ready` makes the first request from the model's name; its response has the member `told`.
    """

    serves: frozenset[str]  # request kinds
    pooling: bool  # vLLM's runner for models without decoding
    calls_tools: bool
    path: str
    told: str
    ready: Callable[[str], Question]
    probe: ReadingProbe | None  # None: measured by decode steps


def _generate(model: str) -> Question:
    return {"json": {"model": model, "prompt": "ready?", "max_tokens": 1, "logprobs": 1}}


def _embed(model: str, text: str) -> Question:
    return {"json": {"model": model, "input": text}}


def _rank(model: str, query: str, document: str) -> Question:
    return {"json": {"model": model, "query": query, "documents": [document]}}


def _transcription_question(model: str, seconds: float) -> Question:
    sound = ("silence.wav", silence.wav(seconds), "audio/wav")
    return {"data": {"model": model}, "files": {"file": sound}}


def _filler_text(count: int) -> str:
    return "token " * count


_READING_WORDS = (4, 64, 256)
_HEARING_S = (1, 8, 25)  # below the 30 s window of Whisper
TASKS: Final[Mapping[TaskName, EngineTask]] = {
    "generate": EngineTask(
        serves=frozenset({"chat", "completion"}),
        pooling=False,
        calls_tools=True,
        path="/completions",
        told="choices",
        ready=_generate,
        probe=None,
    ),
    "embedding": EngineTask(
        serves=frozenset({"embedding"}),
        pooling=True,
        calls_tools=False,
        path="/embeddings",
        told="data",
        ready=lambda model: _embed(model, "ready?"),
        probe=ReadingProbe(
            _READING_WORDS, False, lambda model, size: _embed(model, _filler_text(size))
        ),
    ),
    "rerank": EngineTask(
        serves=frozenset({"rerank", "score"}),
        pooling=True,
        calls_tools=False,
        path="/rerank",
        told="results",
        ready=lambda model: _rank(model, "ready?", "ready"),
        probe=ReadingProbe(
            _READING_WORDS, False, lambda model, size: _rank(model, "token", _filler_text(size))
        ),
    ),
    "transcription": EngineTask(
        serves=frozenset({"transcription"}),
        pooling=False,
        calls_tools=False,
        path="/audio/transcriptions",
        told="text",
        ready=lambda model: _transcription_question(model, 1.0),
        probe=ReadingProbe(_HEARING_S, True, _transcription_question),
    ),
}


def task_of(serves: Sequence[str]) -> TaskName:
    """Return the task of an engine by the request kinds of its model, "generate" by default."""
    tasks = (name for name, task in TASKS.items() if not task.serves.isdisjoint(serves))
    return next(tasks, "generate")
