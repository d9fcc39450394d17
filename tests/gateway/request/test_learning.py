"""What an attempt may teach: a table of requests, by what they carry and how they ended."""

from types import SimpleNamespace

import msgspec
import pytest

from gateway.fleet.comparators import Comparator
from gateway.fleet.prefix_index import ENDS
from gateway.fleet.provider_caches import CacheForecast, ProviderCaches
from gateway.http.body import decode_members
from gateway.kinds.chat import read_chat
from gateway.kinds.completion import SPEC as COMPLETION
from gateway.kinds.embedding import SPEC as EMBEDDING
from gateway.kinds.inference_request import IncomingBody
from gateway.kinds.outcome import AttemptOutcome
from gateway.kinds.rerank import SPEC as RERANK
from gateway.request.learning import EstimateLearner, not_text, unreported
from gateway.request.limit_overruns import LimitOverrun
from gateway.request.plan import LearnedEstimates
from ledger.journals.records import TokenCounts
from ledger.prices.rates import Price, PriceTerms, rates_from
from router.cached_share import CachedShare
from router.estimates import OutputLengths
from router.estimator_rules import Objection
from router.prompts import PromptPrefix
from router.target_prompts import PromptOverrun
from router.token_ratio import TEMPLATE_LIMIT, TokenRatio

TOKENS = TokenCounts(input=100, output=11)
PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
SOUND = {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}
FILE = {"type": "file", "file": {"file_id": "f-1"}}
CALLED = {"name": "f", "arguments": '{"type": "image_url"}'}
CALL = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "1", "type": "function", "function": CALLED}],
}


def chat(content="hello", /, *turns, **members):
    body = {"model": "m", "messages": [{"role": "user", "content": content}, *turns], **members}
    return read_chat(decode_members(msgspec.json.encode(body)), max_n=8, session=None)


def read(spec, **body):
    path = next(iter(spec.paths.values()))
    text = msgspec.json.encode({"model": "m", **body})
    return path.reader.read(IncomingBody(text, "application/json", None, 8))


@pytest.mark.parametrize(
    ("asked", "objection"),
    [
        (chat(), None),
        (chat([{"type": "text", "text": "hello"}]), None),
        (chat('a text that says {"type": "image_url"}'), None),
        (chat("hello", CALL, {"role": "tool", "tool_call_id": "1", "content": "x"}), None),
        (chat(tools=[{"type": "function", "function": {"name": "f"}}]), None),
        (chat(metadata={"a": "b"}, store=True, user="u", seed=1), None),
        (read(COMPLETION, prompt="hello"), None),
        (read(COMPLETION, prompt=["hello", "there"]), None),
        (read(EMBEDDING, input=["hello"]), None),
        (read(RERANK, query="q", documents=["a", "b"]), None),
        (chat([PICTURE]), Objection.MEDIA),
        (chat([SOUND]), Objection.MEDIA),
        (chat([FILE]), Objection.MEDIA),
        (chat([{"type": "document", "source": {"data": "AAAA"}}]), Objection.MEDIA),
        (read(RERANK, query="q", documents=[{"image": "AAAA"}]), Objection.MEDIA),
        (read(COMPLETION, prompt=[1, 2, 3]), Objection.KIND),
        (read(EMBEDDING, input=[[1, 2, 3]]), Objection.KIND),
        (chat(tools=[{"type": "web_search"}]), Objection.TOOLS),
        (chat(web_search_options={}), Objection.TOOLS),
        (chat(plugins=[{"id": "web"}]), Objection.TOOLS),
        (chat(file_ids=["f-1"]), Objection.MEMBERS),
        (chat(attachments=[{"file_id": "f-1"}]), Objection.MEMBERS),
    ],
)
def test_text_alone_tells_bytes_per_token(asked, objection) -> None:
    assert not_text(asked, TOKENS) is objection


@pytest.mark.parametrize(
    ("tokens", "objection"),
    [
        (TokenCounts(input=9, audio_input=5), Objection.MEDIA),
        (TokenCounts(audio_ms=900), Objection.KIND),
        (TokenCounts(input=9, searches=1), Objection.KIND),
    ],
)
def test_usage_that_counts_more_than_text_tells_nothing(tokens, objection) -> None:
    assert not_text(chat(), tokens) is objection


@pytest.mark.parametrize(
    ("status", "basis", "disputed", "objection"),
    [
        ("finished", "reported", False, None),
        ("finished", "reported", True, Objection.DISPUTED),
        ("finished", "bound", True, Objection.DISPUTED),
        ("finished", "estimated", False, Objection.UNREPORTED),
        ("client_gone", "continuous", False, Objection.UNREPORTED),
        ("upstream_error", "reported", False, Objection.UNREPORTED),
    ],
)
def test_usage_of_a_whole_answer_alone_counts(status, basis, disputed, objection) -> None:
    record = SimpleNamespace(basis=basis, disputed=disputed)
    assert unreported(AttemptOutcome(status, 200), record) is objection


@pytest.mark.parametrize(
    ("part", "objection"),
    [
        (b'{"type":"imag\\u0065_url","image_url":{"url":"data:image/png;base64,AAAA"}}',
         Objection.MEDIA),
        (b'{"\\u0074ype":"video","video":["https://e/1.png"]}', Objection.MEDIA),
        (b'{"type":"vid\\/eo","video":"x"}', Objection.MEDIA),
        (b'{"type":"t\\u0065xt","text":"\\u00e9"}', None),
        (b'{"type":"text","text":"\\"type\\":\\"video\\""}', None),
    ],
)  # fmt: skip
def test_a_parts_kind_in_any_spelling_is_its_kind(part: bytes, objection) -> None:
    asked = chat()
    said = b'[{"role":"user","content":[' + part + b"]}]"
    asked.members["messages"] = msgspec.Raw(said)
    assert not_text(asked, TOKENS) is objection


class Counts:
    def __init__(self) -> None:
        self.seen: list[tuple[str, Objection | None]] = []

    def count_observation(self, estimator: str, objection: Objection | None) -> None:
        self.seen.append((estimator, objection))


@pytest.fixture
def learning():
    counts, learned = Counts(), LearnedEstimates(TokenRatio(), OutputLengths())
    learner = EstimateLearner(learned, counts)

    def teach(asked, prompt: int, *, output: int = 5, disputed: bool = False):
        plan = SimpleNamespace(asked=asked, learning_key=("m", "t"), request=SimpleNamespace(n=1))
        record = SimpleNamespace(
            tokens=TokenCounts(input=prompt, output=output), basis="reported", disputed=disputed,
            settled_us=1_000_000,
        )  # fmt: skip
        return learner.learn(SimpleNamespace(plan=plan), AttemptOutcome("finished", 200), record)

    return SimpleNamespace(teach=teach, ratio=learned.ratio, outputs=learned.outputs, counts=counts)


TEXT = chat("word " * 2000)


@pytest.mark.parametrize(
    ("asked", "prompt", "disputed"),
    [
        (chat([PICTURE]), 8_500, False),  # `picture-poisons-texts`
        (chat(metadata={"a": "b"}), 5_000_000, False),  # `lie-poisons-texts`
        (chat(metadata={"a": "b"}), 5_000_000, True),
        (chat([FILE]), 700, False),
        (chat(web_search_options={}), 60_000, False),
        (chat(unknown={"a": "b"}), 900, False),
    ],
)
def test_the_same_text_has_the_same_hold_before_and_after(
    learning, asked, prompt, disputed
) -> None:
    """Red before: one of these made the hold of every text up to 14 times as large for good."""
    for _ in range(3):
        learning.teach(TEXT, 2500)
    before = learning.ratio.estimate(("m", "t"), TEXT.prompt_bytes)
    for _ in range(4):
        learning.teach(asked, prompt, disputed=disputed)
    assert learning.ratio.estimate(("m", "t"), TEXT.prompt_bytes) == before


def test_lies_within_what_can_be_cost_a_template_at_most(learning) -> None:
    lie = chat()
    for _ in range(100):
        learning.teach(lie, lie.prompt_bytes + TEMPLATE_LIMIT)
    _, bound = learning.ratio.estimate(("m", "t"), TEXT.prompt_bytes)
    assert bound == TEXT.prompt_bytes + TEMPLATE_LIMIT


def test_each_attempt_is_counted_once_with_its_reason(learning) -> None:
    assert learning.teach(chat(), 9) == (9, 5)
    assert learning.teach(chat([PICTURE]), 8_500) == (8_500, 5)
    assert learning.teach(chat(), 9_000) == (9_000, 5)
    assert learning.teach(chat(), 9, disputed=True) is None
    assert learning.counts.seen == [
        ("bytes_per_token", objection)
        for objection in (None, Objection.MEDIA, Objection.TOO_MANY, Objection.DISPUTED)
    ]
    assert learning.outputs.moments(("m", "t"), 9).count == 3


def test_who_chose_the_name_of_a_limit_raises_no_hold_of_others() -> None:
    """Text beyond it shows that its target does not know the name, and is told the other, too."""
    counts, learned = Counts(), LearnedEstimates(TokenRatio(), OutputLengths())
    learner, beside = EstimateLearner(learned, counts), learned.target_output
    text = LimitOverrun(40, is_text=True)

    def taught(asked, overrun, *, told_twice=False) -> tuple[bool, int]:
        target = SimpleNamespace(name="a/m")
        frozen = SimpleNamespace(target=target, told_twice=told_twice)
        attempt = SimpleNamespace(
            plan=SimpleNamespace(asked=asked, learning_key=("m", "t")),
            step=SimpleNamespace(frozen=frozen),
        )
        learner.learn_overrun(attempt, overrun, 5.0)
        return beside.is_told_twice("a/m"), beside.allowance("a/m", "t")

    assert taught(chat(max_completion_tokens=9), text) == (True, 0)
    assert taught(chat(max_completion_tokens=9), text, told_twice=True) == (True, 80)
    assert taught(chat(max_tokens=9), text._replace(tokens=50)) == (True, 100)
    thoughts = LimitOverrun(60, is_text=False)
    assert taught(chat(max_completion_tokens=9), thoughts) == (True, 120)
    assert counts.seen == [("output_overrun", None)] * 4
    asked = chat(max_tokens=9, enable_thinking=True)
    assert taught(asked, thoughts._replace(tokens=900)) == (True, 120), "of such requests alone"
    assert beside.allowance("a/m", "t", thinks=True) == 1800
    assert beside.allowance("a/m", "other", thinks=True) == 0


def test_a_prompt_beyond_its_bound_is_learned_of_its_target_and_counted() -> None:
    counts, learned = Counts(), LearnedEstimates(TokenRatio(), OutputLengths())
    step = SimpleNamespace(frozen=SimpleNamespace(target=SimpleNamespace(name="p/m")))
    learner = EstimateLearner(learned, counts)
    attempt = SimpleNamespace(step=step, plan=SimpleNamespace(learning_key=("m", "t")))
    learner.learn_prompt_overrun(attempt, PromptOverrun(pictures=3.0), 5.0)
    assert learned.target_prompts.overrun("p/m", "t") == PromptOverrun(pictures=6.0)
    assert learned.target_prompts.overrun("p/m", "other") == PromptOverrun()
    assert learned.target_prompts.overrun("p/n", "t") is None
    assert counts.seen == [("prompt_overrun", None)]


def test_what_targets_make_unseen_is_learned_and_counted() -> None:
    counts, learned = Counts(), LearnedEstimates(TokenRatio(), OutputLengths())
    step = SimpleNamespace(frozen=SimpleNamespace(target=SimpleNamespace(name="p/m")))
    record = SimpleNamespace(
        tokens=TokenCounts(output=300, reasoning=280), ttft_us=2_000_000, duration_us=3_000_000,
        settled_us=1_000_000,
    )  # fmt: skip
    outcome = AttemptOutcome("finished", 200)
    attempt = SimpleNamespace(step=step, plan=SimpleNamespace(learning_key=("m", "t")))
    EstimateLearner(learned, counts).learn_unseen(attempt, outcome, record)
    beside = learned.target_output
    assert (beside.hides("p/m", "t"), beside.hides("p/m", "u")) == (True, False)
    assert beside.tokens_per_s("p/m") == pytest.approx(280 / 2)
    assert counts.seen == [("unseen_output", None)]


@pytest.mark.parametrize(
    ("reported", "first_s", "best", "known"),
    [
        (True, None, "own", 40),
        (False, 3.0, "own", 40),
        (False, None, "own", 0),
        (True, 3.0, None, 0),
    ],
)
def test_a_turn_that_own_engines_may_serve_is_known_to_its_comparators(
    tmp_path, reported, first_s, best, known
) -> None:
    """Not where nothing was read, nor where no own engine could have answered."""
    forecast = CacheForecast(ProviderCaches(tmp_path / "caches"), CachedShare())
    rates = rates_from({"input": 10, "cached": 1, "output": 40})
    compared = Comparator(Price(1, "openai/m", "book", 0, PriceTerms(rates)))
    prefix = PromptPrefix(tuple(range(40)), 0, ENDS[39])
    request = SimpleNamespace(prompt_tokens=ENDS[39] // 4, beginning=prefix)
    plan = SimpleNamespace(comparators=(compared,), request=request, best_own=best)
    tried = SimpleNamespace(plan=plan, first_token_s=first_s, dispatched_s=2.0)
    learned = LearnedEstimates(TokenRatio(), OutputLengths(), cached=forecast)
    counts = SimpleNamespace(count_observation=None)
    EstimateLearner(learned, counts).learn_elsewhere(tried, reported=reported)
    assert forecast.caches.count_known("~openai/m", prefix, 4.0) == known
    assert forecast.caches.count_known("openai/m", prefix, 4.0) == 0, "nobody asked it"
    forecast.caches.close()
