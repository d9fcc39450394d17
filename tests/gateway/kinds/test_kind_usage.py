"""What an ended ranking or transcript is booked at: as counted, completed, or the most."""

from types import SimpleNamespace

import msgspec
import pytest
from msgspec.structs import replace

from backends.errors import ServerError, UpstreamBroken
from gateway.kinds import KINDS
from gateway.kinds.kind_usage import SentRequest, complete_counts
from gateway.kinds.kind_usage import usage_of as used_by
from gateway.kinds.outcome import AttemptOutcome
from ledger.journals.records import TokenCounts
from ledger.prices.book import Price, PriceTerms, cost_pusd, rates_from
from router.prompts import RequestUnits
from router.request_kinds import RequestKind
from router.types import OutputMoments, RoutingRequest

FREE = rates_from({"input": 0, "output": 0})
TOKENS = rates_from({"input": 2, "output": 8, "audio_input": 3})
SEARCHES, BY_TOKENS = PriceTerms(FREE, search_pusd=1000), PriceTerms(TOKENS)
SECONDS, BOTH = PriceTerms(FREE, second_pusd=500), PriceTerms(TOKENS, second_pusd=500)
SOUND = RequestUnits(longest=0.0, audio_ms=2000, audio_ms_bound=9000, audio_known=True)
GUESS = TokenCounts(audio_input=20, output=5, audio_ms=2000)


def price(terms: PriceTerms) -> Price:
    return Price(1, "a/b", "test", 0, terms)


def attempt(
    terms: PriceTerms | None,
    kind=RequestKind.TRANSCRIPTION,
    *,
    own=False,
    extent=SOUND,
    context=None,
    **sent,
):
    output = OutputMoments(0, 150.0, 45_000.0, 300.0)
    request = RoutingRequest(kind, "m", 40, 160, 77, output, extent=extent)
    members = {name: msgspec.Raw(msgspec.json.encode(value)) for name, value in sent.items()}
    listed = None if terms is None else price(terms)
    sent = SentRequest(members, context)
    return SimpleNamespace(request=request, price=listed, own=own, sent=sent)


def used(made, outcome: AttemptOutcome):
    spec = KINDS[made.request.kind]
    return used_by(
        spec, spec.units, made.request, made.price, outcome, sent=None if made.own else made.sent
    )


def ended(usage=None, status="finished", **more) -> AttemptOutcome:
    return AttemptOutcome(status, 200, usage=usage, usage_final=True, said_bytes=20, **more)


DURATION = {"type": "duration", "seconds": 3}
IMPOSSIBLE = {"type": "duration", "seconds": -1}
COUNTED = {"type": "tokens", "input_tokens": 30, "output_tokens": 4}


@pytest.mark.parametrize(
    ("terms", "usage", "basis", "cost"),
    [
        (SECONDS, DURATION, "reported", 1500),
        (BOTH, DURATION, "reported", 1500),
        (BOTH, COUNTED, "reported", 30 * 3 + 4 * 8),
        (BY_TOKENS, COUNTED, "reported", 30 * 3 + 4 * 8),
        (BY_TOKENS, DURATION, "estimated", 20 * 3 + 5 * 8),  # never nothing
        (SECONDS, COUNTED, "estimated", 1000),
        (SECONDS, None, "estimated", 1000),
        (SECONDS, IMPOSSIBLE, "estimated", 1000),
    ],
)
def test_sound_is_paid_in_what_its_price_lists(terms, usage, basis, cost) -> None:
    tokens, found, disputed = used(attempt(terms), ended(usage))
    assert (found, cost_pusd(tokens, price(terms))) == (basis, cost)
    assert tokens.audio_ms in (2000, 3000)
    assert disputed is (usage == IMPOSSIBLE)


@pytest.mark.parametrize(
    ("seconds", "own", "audio_ms", "disputed"),
    [
        (0.9, False, 2000, True),
        (0.001, False, 2000, True),  # the least that a figure can say
        (1.0, False, 1000, False),  # half may be silence
        (0, False, 2000, False),  # says none
        (0.9, True, 900, False),  # of an own engine nobody else keeps an account
    ],
)
def test_a_sound_is_not_booked_at_less_than_half_its_length(
    seconds, own, audio_ms, disputed
) -> None:
    tokens, _, found = used(attempt(SECONDS, own=own), ended({"seconds": seconds}))
    assert (tokens.audio_ms, found) == (audio_ms, disputed)


@pytest.mark.parametrize(
    ("usage", "said", "lasts_ms", "disputed"),
    [
        ({"input_tokens": 5, "output_tokens": 4}, 20, 2000, False),
        ({"input_tokens": 5, "output_tokens": 4}, 20, 2001, True),
        ({"input_tokens": 5, "output_tokens": 4}, 512, 2000, False),
        ({"input_tokens": 5, "output_tokens": 4}, 513, 2000, True),
        ({"input_tokens": 5, "input_token_details": {"text_tokens": 4}}, 0, 2000, False),
        ({"prompt_tokens": 1, "prompt_audio_seconds": 2}, 20, 2000, False),
        ({"input_tokens": 5, "output_tokens": 4}, 20, None, False),  # of no known length
    ],
)
def test_sound_in_tokens_is_not_booked_at_fewer_than_it_can_have(
    usage, said, lasts_ms, disputed
) -> None:
    lasts = RequestUnits(audio_ms=lasts_ms or 9000, audio_ms_bound=9000, audio_known=bool(lasts_ms))
    outcome = AttemptOutcome("finished", 200, usage=usage, usage_final=True, said_bytes=said)
    tokens, basis, found = used(attempt(BY_TOKENS, extent=lasts), outcome)
    assert found is disputed
    assert (basis == "reported") is not disputed
    assert (tokens.audio_input >= 20) is disputed
    assert not used(attempt(BY_TOKENS, own=True, extent=lasts), outcome)[2]


@pytest.mark.parametrize(
    ("kind", "extent", "usage", "said", "disputed"),
    [
        (RequestKind.SPEECH, {"characters": 300}, {"characters": 1}, 0, True),
        (RequestKind.SPEECH, {"characters": 300}, {"characters": 60}, 0, False),
        (RequestKind.SPEECH, {"characters": 9}, {"input_tokens": 9, "output_tokens": 1},
         400, True),
        (RequestKind.SPEECH, {"characters": 9}, {"input_tokens": 9, "output_tokens": 4},
         400, False),
        (RequestKind.IMAGE_GENERATION, {"pictures": 2, "output_tokens": 800},
         {"input_tokens": 9, "output_tokens": 31, "generated_images": 2}, 0, True),
        (RequestKind.IMAGE_GENERATION, {"pictures": 2, "output_tokens": 800},
         {"input_tokens": 9, "output_tokens": 32, "generated_images": 2}, 0, False),
    ],
)  # fmt: skip
def test_speech_and_pictures_have_no_less_than_anybody_makes(
    kind, extent, usage, said, disputed
) -> None:
    """Red before: one character of 300, or one token of a picture, was booked without a mark."""
    outcome = AttemptOutcome("finished", 200, usage=usage, usage_final=True, said_bytes=said)
    made = attempt(PriceTerms(TOKENS, character_pusd=5), kind, extent=RequestUnits(**extent))
    assert used(made, outcome)[2] is disputed


@pytest.mark.parametrize(
    ("kind", "extent", "usage", "least"),
    [
        (RequestKind.SPEECH, "spoken", {"input_tokens": 1, "output_tokens": 900},
         {"input": 40, "output": 900, "audio_output": 900, "characters": 200}),
        (RequestKind.SPEECH, "spoken",
         {"input_tokens": 1, "output_tokens": 900, "output_tokens_details": {
             "audio_tokens": 2, "reasoning_tokens": 898}},
         {"input": 40, "output": 903, "audio_output": 5, "reasoning": 898, "characters": 200}),
        (RequestKind.IMAGE_GENERATION, "pictured",
         {"input_tokens": 1, "output_tokens": 2100, "generated_images": 2},
         {"input": 160, "output": 2100, "image_output": 2100, "pictures": 2}),
        (RequestKind.TRANSCRIPTION, "heard", {"input_tokens": 4, "output_tokens": 99},
         {"audio_input": 20, "output": 99, "audio_ms": 2000}),
    ],
)  # fmt: skip
def test_a_count_that_is_too_low_takes_no_other_count_away(kind, extent, usage, least) -> None:
    """Red before: 900 tokens of sound were booked as five, and nothing was claimed."""
    extents = {"spoken": SPOKEN, "pictured": PICTURED, "heard": SOUND}
    texts = {"input": "word " * 300, "prompt": "word " * 300}
    made = attempt(BY_TOKENS, kind, extent=extents[extent], **texts)
    tokens, basis, disputed = used(made, ended(usage))
    assert (tokens, disputed) == (TokenCounts(**least), True)
    assert basis != "reported"


def test_running_usage_of_a_transcript_that_was_given_up_is_not_of_all_of_it() -> None:
    gone = AttemptOutcome("client_gone", 499, usage=COUNTED, said_bytes=20)
    assert used(attempt(BY_TOKENS), gone)[1:] == ("bound", False)
    assert used(attempt(BY_TOKENS), replace(gone, usage_final=True))[1] == "reported"
    broken = replace(gone, status="upstream_error", error=UpstreamBroken.kind)
    assert used(attempt(BY_TOKENS), broken)[1] == "reported"


@pytest.mark.parametrize(
    ("documents", "context", "usage", "disputed"),
    [
        (["d" * 20_000], None, {"total_tokens": 64}, True),  # 64 of the document, the query's one
        (["d" * 20_000], None, {"total_tokens": 65}, False),  # its model may have cut the rest
        (["d" * 2000], 512, {"total_tokens": 16}, True),  # 2,000 bytes have 16 tokens
        (["d" * 2000], 512, {"total_tokens": 17}, False),
        (["d" * 2000], 20, {"total_tokens": 11}, False),  # half of its context is the query's
        ([{"text": "d" * 2000}], 512, {"total_tokens": 9}, False),  # which members are read?
        (["d" * 2000], 512, {"search_units": 1}, False),
    ],
)
def test_a_ranking_is_not_booked_at_fewer_tokens_than_its_texts_can_have(
    documents, context, usage, disputed
) -> None:
    query = "q" * 20
    made = attempt(
        BY_TOKENS, RequestKind.RERANK, extent=RequestUnits(searches=1, searches_bound=3),
        query=query, documents=documents, context=context,
    )  # fmt: skip
    _, basis, found = used(made, ended(usage))
    assert (found, basis == "reported") == (disputed, not disputed and "total_tokens" in usage)


@pytest.mark.parametrize(
    ("terms", "usage", "basis", "cost"),
    [
        (SEARCHES, {"search_units": 2}, "reported", 2000),
        (SEARCHES, {"total_tokens": 50}, "estimated", 1000),
        (BY_TOKENS, {"total_tokens": 50}, "reported", 100),
        (BY_TOKENS, {"search_units": 2}, "estimated", 80),
        (BY_TOKENS, None, "estimated", 80),
    ],
)
def test_a_ranking_is_paid_in_what_its_price_lists(terms, usage, basis, cost) -> None:
    extent = RequestUnits(searches=1, searches_bound=3)
    tokens, found, disputed = used(attempt(terms, RequestKind.RERANK, extent=extent), ended(usage))
    assert (found, cost_pusd(tokens, price(terms))) == (basis, cost)
    assert not disputed


@pytest.mark.parametrize(
    ("outcome", "basis"),
    [
        (ended(status="client_gone"), "bound"),
        (ended(status="upstream_error", error=UpstreamBroken.kind), "bound"),
        (ended(DURATION, "upstream_error", error=UpstreamBroken.kind), "reported"),
        (ended(DURATION, "upstream_error", error="x", usage_behind=True), "bound"),
        (ended(status="upstream_error", error=ServerError.kind), "estimated"),
        (ended(status="rejected", billable=False), "estimated"),
    ],
)
def test_what_was_given_up_at_an_api_is_booked_at_its_most(outcome, basis) -> None:
    made = attempt(SECONDS)
    tokens, found, _ = used(made, outcome)
    assert found == basis
    if basis == "bound":
        assert tokens == KINDS[RequestKind.TRANSCRIPTION].units.most(made.request)
    elif basis == "reported":
        assert tokens.audio_ms == 3000
    elif not outcome.billable:
        assert tokens == TokenCounts()


@pytest.mark.parametrize(
    ("kind", "extent", "usage", "output"),
    [
        (RequestKind.SPEECH, "spoken", {"input_tokens": 40, "output_tokens": 2}, 100),
        (RequestKind.SPEECH, "spoken", {"input_tokens": 40, "output_tokens": 200}, 200),
        (RequestKind.IMAGE_GENERATION, "pictured",
         {"input_tokens": 40, "output_tokens": 272, "generated_images": 2}, 800),
    ],
)  # fmt: skip
def test_a_figure_that_more_came_behind_is_the_least(kind, extent, usage, output) -> None:
    """Red before: a figure of the first sound or picture was booked as reported."""
    made = attempt(BY_TOKENS, kind, extent={"spoken": SPOKEN, "pictured": PICTURED}[extent])
    outcome = AttemptOutcome("finished", 200, usage=usage, usage_behind=True, said_bytes=400)
    tokens, basis, disputed = used(made, outcome)
    assert (tokens.output, basis, disputed) == (output, "estimated", False)


SPOKEN = RequestUnits(longest=0.0, characters=200, output_tokens=350, output_tokens_bound=10_500)
PICTURED = RequestUnits(longest=0.0, pictures=2, output_tokens=800, output_tokens_bound=2_048)


@pytest.mark.parametrize(
    ("kind", "extent", "stops", "status", "said", "output"),
    [
        (RequestKind.SPEECH, SPOKEN, True, "client_gone", 60, 15),
        (RequestKind.SPEECH, SPOKEN, True, "client_gone", 0, 10_500),
        (RequestKind.SPEECH, SPOKEN, True, "upstream_error", 60, 10_500),
        (RequestKind.SPEECH, SPOKEN, False, "client_gone", 60, 10_500),
        (RequestKind.TRANSCRIPTION, SOUND, True, "client_gone", 60, 15),
        (RequestKind.IMAGE_GENERATION, PICTURED, True, "client_gone", 60, 2_048),
    ],
)
def test_what_flowed_until_its_target_stopped_is_booked_at_what_came(
    kind, extent, stops, status, said, output
) -> None:
    """Red before: a speech that was left cost all that it could have been, 400 times as much."""
    made = attempt(BY_TOKENS, kind, extent=extent)
    made.sent = made.sent._replace(stops=stops)
    outcome = AttemptOutcome(status, 200, said_bytes=said)
    if status == "upstream_error":
        outcome = replace(outcome, error=UpstreamBroken.kind)
    tokens, basis, _ = used(made, outcome)
    assert (tokens.output, basis) == (output, "estimated" if output == 15 else "bound")


@pytest.mark.parametrize("usage", [None, {"input_tokens": 40, "total_tokens": 40}])
@pytest.mark.parametrize(
    ("kind", "extent", "read"),
    [
        (RequestKind.IMAGE_GENERATION, PICTURED, {"input": 40}),
        (RequestKind.IMAGE_EDIT, PICTURED, {"input": 40}),
        (RequestKind.SPEECH, SPOKEN, {"input": 40, "characters": 200}),
    ],
)
def test_a_failure_that_its_target_told_made_no_picture_and_no_sound(
    kind, extent, read, usage
) -> None:
    """Red before: a 500 was booked as whole pictures, at the dearest form that was open."""
    outcome = AttemptOutcome("upstream_error", 500, usage=usage, error=ServerError.kind)
    made = attempt(BY_TOKENS, kind, extent=extent)
    tokens, _, disputed = used(made, outcome)
    known = read if usage is None else {"input": 40}
    assert (tokens, disputed) == (TokenCounts(**known), False)
    shown = replace(outcome, shown=True, usage=None)
    assert used(made, shown)[0].output == KINDS[kind].units.estimate(made.request, 0).output


@pytest.mark.parametrize(
    ("name", "usage", "lasts_ms", "basis"),
    [
        ("groq/whisper", DURATION, 10_000, "reported"),
        ("groq/whisper", {"type": "duration", "seconds": 12}, 12_000, "reported"),
        ("groq/whisper", None, 10_000, "estimated"),
        ("groqish/whisper", DURATION, 3000, "reported"),
    ],
)
def test_a_short_sound_is_booked_as_the_length_that_its_provider_bills(
    name, usage, lasts_ms, basis
) -> None:
    """Red before: Groq bills ten seconds at least, and three were booked."""
    made = attempt(SECONDS)
    made.price = msgspec.structs.replace(made.price, name=name)
    assert used(made, ended(usage)) == (TokenCounts(
        audio_ms=lasts_ms, audio_input=0 if usage else 20, output=0 if usage else 5
    ), basis, False)  # fmt: skip
    assert used(made, ended(status="rejected", billable=False))[0] == TokenCounts()
    made.own = True
    assert used(made, ended(DURATION))[0].audio_ms == 3000


def test_a_file_that_does_not_tell_its_length_is_booked_at_its_most() -> None:
    unknown = RequestUnits(longest=0.0, audio_ms=2000, audio_ms_bound=9000)
    tokens, basis, _ = used(attempt(SECONDS, extent=unknown), ended())
    assert (tokens.audio_ms, basis) == (9000, "bound")


def test_an_own_engine_is_charged_for_what_it_did_only() -> None:
    told = used(attempt(None, own=True), ended(DURATION))
    assert told == (TokenCounts(audio_ms=3000), "reported", False)
    assert used(attempt(None, own=True), ended(status="client_gone"))[0] == TokenCounts()
    assert used(attempt(None, own=True), ended())[0].audio_ms == 2000


def test_what_is_counted_is_never_replaced() -> None:
    counted = TokenCounts(input=1, audio_input=2, output=3, audio_ms=4, searches=5)
    for terms in (SEARCHES, BY_TOKENS, SECONDS, BOTH):
        assert complete_counts(counted, price(terms), GUESS) == counted
    spoken = TokenCounts(input=1, characters=6)
    by_character = price(PriceTerms(rates_from({"input": 1, "output": 1}), character_pusd=9))
    assert complete_counts(spoken, by_character, TokenCounts(characters=70)) == spoken
    assert complete_counts(TokenCounts(), by_character, spoken).characters == 6


def test_what_a_ranking_model_made_is_read() -> None:
    """Red before: a judge's output was neither booked nor claimed, and no flag said so."""
    usage = {"prompt_tokens": 30, "completion_tokens": 4, "total_tokens": 34}
    extent = RequestUnits(searches=1, searches_bound=3)
    tokens, basis, _ = used(attempt(BY_TOKENS, RequestKind.RERANK, extent=extent), ended(usage))
    assert (tokens.input, tokens.output, basis) == (30, 4, "reported")
