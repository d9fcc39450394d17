"""Client of an evaluation: gets greedy answers and log-probabilities from one model.

Any OpenAI-compatible address works; log-probabilities are used if the API returns them. vLLM also
returns token ids, and log-probabilities of a text that another model wrote.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import httpx

from backends.engine.bounded import NoPage, fetch_page, models_of
from backends.engine.evalfigures import TokenLogprob

LIKELIEST = 20
ATTEMPTS = 2
T = TypeVar("T")
ANSWER_BYTES = 2**28  # log-probabilities of a long prompt, 20 for each token
_REFUSED = (400, 404, 422)


class NoAnswer(Exception):
    """A model could not be queried, or its response cannot be read; the text gives the reason."""


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """Answer of one model. `told` has one entry for each token of the answer.

    `ids` are the token ids of prompt and answer, `None` if the engine does not return them.
    """

    text: str
    told: tuple[TokenLogprob, ...] = ()
    ids: tuple[tuple[int, ...], tuple[int, ...]] | None = None


@dataclass
class EvalModel:
    """Model at an address. `plain` is the request dialect that the API accepted, 0 to 2.

    0 has vLLM's members, 1 has log-probabilities only, 2 has neither. The value rises when the API
    rejects a request.
    """

    client: httpx.AsyncClient
    base_url: str
    model: str
    tokens: int
    headers: Mapping[str, str] = field(default_factory=dict)
    plain: int = 0

    async def answer(self, messages: Sequence[Mapping[str, Any]]) -> ModelAnswer:
        """Return the greedy answer. Raises `NoAnswer` when the API fails or rejects it."""
        body: dict[str, Any] = {
            "model": self.model, "messages": list(messages), "temperature": 0,
            "max_tokens": self.tokens,
        }  # fmt: skip
        # From vLLM's members to those that any API accepts; starts at the last accepted one.
        dialects: list[dict[str, Any]] = [
            {"logprobs": True, "top_logprobs": LIKELIEST, "return_token_ids": True, "seed": 0},
            {"logprobs": True, "top_logprobs": LIKELIEST},
            {},
        ]
        for place in range(self.plain, len(dialects)):
            status, document = await self._post("/chat/completions", body | dialects[place])
            if status == 200:
                self.plain = place
                return self._read(partial(answer_of, document))
            if status not in _REFUSED:
                break
        raise NoAnswer(f"{self.base_url} returned {status}: {str(document)[:300]}")

    async def logprobs_of(
        self, ids: tuple[Sequence[int], Sequence[int]]
    ) -> tuple[TokenLogprob, ...] | None:
        """Return the log-probabilities of an answer's tokens, or `None` if the API has none.

        `ids` are the token ids of prompt and answer. Raises `NoAnswer` when the request fails.
        """
        prompt, answer = ids
        body = {
            "model": self.model, "prompt": [*prompt, *answer], "max_tokens": 1, "temperature": 0,
            "prompt_logprobs": LIKELIEST,
        }  # fmt: skip
        status, document = await self._post("/completions", body)
        if status in _REFUSED:
            return None
        if status != 200:
            raise NoAnswer(f"{self.base_url} returned {status}: {str(document)[:300]}")

        def read() -> tuple[TokenLogprob, ...] | None:
            found = document["choices"][0].get("prompt_logprobs")
            return None if not found else parse_logprobs(found[len(prompt) :], answer)

        return self._read(read)

    def _read(self, read: Callable[[], T]) -> T:
        """Return `read()`. Raises `NoAnswer` when the response is malformed."""
        try:
            return read()
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            words = f"what it answers cannot be read ({type(error).__name__}: {error})"
            raise NoAnswer(f"{self.base_url}: {words}") from error

    async def _post(self, path: str, body: Mapping[str, Any]) -> tuple[int, dict[str, Any]]:
        said = ""
        for _ in range(ATTEMPTS):
            try:
                page = await fetch_page(
                    self.client, self.base_url + path, body=body, headers=self.headers,
                    limit_bytes=ANSWER_BYTES, seconds=None,
                )  # fmt: skip
                document = page.decode_json()
            except NoPage as error:
                said = str(error)
                continue
            if not isinstance(document, dict):
                said = f"it answers {page.status} with no JSON object"
            elif page.status < 500:
                return page.status, document
            else:
                said = f"{page.status}: {str(document)[:300]}"
        raise NoAnswer(f"{self.base_url}: {said}")


async def only_model(client: httpx.AsyncClient, base_url: str, headers: Mapping[str, str]) -> str:
    """Return the model that an address serves. Raises `NoAnswer` unless it lists exactly one."""
    try:
        names = models_of(await fetch_page(client, f"{base_url}/models", headers=headers))
    except NoPage as error:
        raise NoAnswer(f"{base_url} does not list its models: {error}") from error
    if len(names) != 1:
        raise NoAnswer(f"{base_url} serves {', '.join(names)}: choose one as URL#NAME")
    return names[0]


def answer_of(document: Mapping[str, Any]) -> ModelAnswer:
    choice = document["choices"][0]
    text = str((choice.get("message") or {}).get("content") or "")
    listed = (choice.get("logprobs") or {}).get("content") or ()
    told = tuple(
        TokenLogprob(
            str(entry["token"]), float(entry["logprob"]),
            {str(other["token"]): float(other["logprob"]) for other in entry["top_logprobs"]},
        )
        for entry in listed
    )  # fmt: skip
    if not listed:
        told = tuple(TokenLogprob(word, math.nan, {}) for word in text.split())
    prompt, answer = document.get("prompt_token_ids"), choice.get("token_ids")
    ids = (tuple(prompt), tuple(answer)) if prompt and answer else None
    return ModelAnswer(text, told, ids)


def parse_logprobs(
    listed: Sequence[Mapping[str, Mapping[str, Any]]], answer: Sequence[int]
) -> tuple[TokenLogprob, ...]:
    """Parse vLLM's `prompt_logprobs`: the likeliest tokens by id, and the text's own token.

    The text's own token is present at any rank.
    """
    found = []
    for entry, token in zip(listed, answer, strict=True):
        own = entry[str(token)]
        top = {
            key: float(other["logprob"])
            for key, other in entry.items()
            if other["rank"] <= LIKELIEST
        }
        found.append(TokenLogprob(str(token), float(own["logprob"]), top))
    return tuple(found)
