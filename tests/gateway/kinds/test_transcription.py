"""What a transcript may cost: the bound holds for whatever a target may count."""

import io
import struct
from dataclasses import dataclass, replace
from fractions import Fraction

import av
import pytest

from backends.engine import silence
from gateway.errors import RequestError
from gateway.kinds.inference_request import IncomingBody, InferenceRequest
from gateway.kinds.kind_usage import SentRequest, usage_of
from gateway.kinds.outcome import AttemptOutcome
from gateway.kinds.transcription import SPEC, read_transcription, read_translation
from gateway.sound.decoded_sound import DecodedSound
from gateway.sound.sound_decoder import SoundDecoder
from ledger.journals.records import TokenCounts
from ledger.prices.book import Price, PriceTerms, cost_pusd, rates_from
from ledger.prices.bundled import bundled_seed
from ledger.unit_usage import tokens_of_transcription
from router.prompts import RequestUnits
from router.request_kinds import RequestKind
from router.types import OutputMoments, RoutingRequest

OUTPUT = OutputMoments(0, 150.0, 45_000.0, 300.0)
EXTENT = RequestUnits(longest=0.0, audio_ms=60_000, audio_ms_bound=61_000, audio_known=True)
BOUND = 50 * 61 + 64
SOUND = RoutingRequest(
    RequestKind.TRANSCRIPTION, "m", BOUND // 4, BOUND, 20 * 61, OUTPUT, extent=EXTENT
)
FORM = (
    b'--x\r\ncontent-disposition: form-data; name="model"\r\n\r\nm\r\n'
    b'--x\r\ncontent-disposition: form-data; name="file"; filename="a.wav"\r\n\r\n%s\r\n--x--\r\n'
)


def test_no_bundled_price_charges_more_than_the_bound() -> None:
    units = SPEC.units
    assert units is not None
    uses = [
        TokenCounts(audio_ms=61_000),
        TokenCounts(audio_input=50 * 61, output=1220),
        TokenCounts(input=64, audio_input=50 * 61, output=1220, audio_ms=61_000),
        units.estimate(SOUND, 1220),
        units.most(SOUND),
    ]
    checked = 0
    for version, draft in enumerate(bundled_seed().drafts, 1):
        price = Price(version, draft.name, draft.book, 0, draft.terms)
        limit = units.bound_pusd(price, SOUND, 1220)
        for tokens in uses:
            assert cost_pusd(tokens, price) <= limit, (price.name, tokens)
            checked += bool(price.terms.second_pusd or price.terms.search_pusd)
    assert checked > 250  # the control: prices by seconds are among them


def test_the_least_length_that_is_billed_is_in_bound_and_cost() -> None:
    """Red before: a second at Groq was held as two, and is billed as ten."""
    lasts = RequestUnits(longest=0.0, audio_ms=1000, audio_ms_bound=2000, audio_known=True)
    short = replace(SOUND, extent=lasts, max_tokens=0, prompt_tokens=0, prompt_tokens_bound=0)
    terms, units = PriceTerms(rates_from({"input": 0, "output": 0}), second_pusd=7), SPEC.units
    groq, other = (Price(1, name, "b", 0, terms) for name in ("groq/whisper", "a/b"))
    assert [units.bound_pusd(price, short, 0) for price in (groq, other)] == [70, 14]
    counted = TokenCounts(audio_ms=1000)
    assert [units.cost_pusd(counted, price, short) for price in (groq, other)] == [70, 7]
    by_tokens = Price(1, "groq/x", "b", 0, PriceTerms(rates_from({"input": 1, "output": 1})))
    assert units.cost_pusd(counted, by_tokens, short) == 0


def test_a_surcharge_is_in_the_bound() -> None:
    terms = PriceTerms(rates_from({"input": 0, "output": 0}), uplift_ppm=100_001, second_pusd=7)
    price = Price(1, "a/b", "test", 0, terms)
    assert SPEC.units is not None
    limit = SPEC.units.bound_pusd(price, SOUND, 0)
    assert limit >= cost_pusd(TokenCounts(audio_ms=61_000), price) > 61 * 7


def test_seconds_and_the_tokens_of_what_was_said_are_both_in_the_bound() -> None:
    """Red before: the more of both was held, and Mistral charges the sum."""
    terms = PriceTerms(rates_from({"input": 40, "output": 40_000_000}), second_pusd=16_700_000)
    price, units = Price(1, "mistral/voxtral", "test", 0, terms), SPEC.units
    assert units is not None
    told = {"prompt_audio_seconds": 61, "prompt_tokens": 4, "completion_tokens": 1220}
    cost = cost_pusd(tokens_of_transcription(told), price)
    assert cost > 1220 * 40_000_000
    assert cost <= units.bound_pusd(price, SOUND, 1220)


@dataclass
class Sounds:
    """Stands for the decoder."""

    length: DecodedSound | None

    async def decode(self, sound: bytes) -> DecodedSound | None:
        assert sound
        return self.length

    async def aclose(self) -> None: ...


def form(sound: bytes) -> IncomingBody:
    return IncomingBody(FORM % sound, "multipart/form-data; boundary=x", None, max_n=8)


def priced(asked: InferenceRequest) -> tuple[int, int]:
    """The hold, and what is booked where the target says nothing, at $0.0001 a second."""
    terms = PriceTerms(rates_from({"input": 0, "output": 0}), second_pusd=100_000_000)
    price, units = Price(1, "up/m", "case", 0, terms), SPEC.units
    assert units is not None
    request = replace(SOUND, extent=asked.extent, max_tokens=asked.max_tokens)
    outcome = AttemptOutcome("finished", 200, said_bytes=20)
    used_tokens, _, _ = usage_of(SPEC, units, request, price, outcome, sent=SentRequest({}))
    return units.bound_pusd(price, request, 0), cost_pusd(used_tokens, price)


async def test_sound_is_measured_and_goes_to_its_own_path() -> None:
    heard, translated = (
        read(form(silence.wav(1.0))) for read in (read_transcription, read_translation)
    )
    assert (heard.path, translated.path) == ("/audio/transcriptions", "/audio/translations")
    assert SPEC.measure is not None
    heard = await SPEC.measure(heard, Sounds(DecodedSound(1000, 1000)))
    assert heard.extent is not None
    assert (heard.extent.audio_ms, heard.extent.audio_ms_bound) == (1000, 2000)
    assert heard.extent.audio_known
    assert (heard.max_tokens, heard.stream) == (40, False)


async def test_a_sound_that_was_not_decoded_is_held_at_the_most_and_booked_by_its_bytes() -> None:
    unread = read_transcription(form(bytes(75_000)))
    assert SPEC.measure is not None
    late = await SPEC.measure(unread, Sounds(None))
    assert late == unread  # without `measure` the same holds
    hold, booked = priced(late)
    assert hold == 180 * 10**12  # 500 hours: no hard budget below $180 lets it pass
    assert booked == 101 * 10**8


def with_part(disposition: str, value: str = "x") -> IncomingBody:
    part = f"--x\r\ncontent-disposition: form-data; {disposition}\r\n\r\n{value}\r\n"
    text = part.encode() + FORM % b"sound"
    return IncomingBody(text, "multipart/form-data; boundary=x", None, max_n=1)


@pytest.mark.parametrize(
    "disposition",
    ['name="url"', 'name="File_URL"', 'name="file[]"; filename="b.wav"', 'name="file_id"',
     'name="speaker"; filename="b.wav"', 'name="File"; filename="b.wav"', 'name="audio"',
     'name="file[0]"', 'name="Input_Audio[data]"'],
)  # fmt: skip
def test_a_second_sound_is_refused(disposition: str) -> None:
    """Its target could write that one down, whose length nobody measured."""
    with pytest.raises(RequestError, match="the sound is sent in `file`, once") as caught:
        read_transcription(with_part(disposition))
    assert caught.value.row.status == 400


def test_a_member_of_an_object_arrives_as_sdks_send_it() -> None:
    """OpenAI's clients write `chunking_strategy: {type: server_vad}` so into a form."""
    asked = read_transcription(with_part('name="chunking_strategy[type]"', "server_vad"))
    assert asked.form is not None
    assert asked.form.field("chunking_strategy[type]") == "server_vad"
    assert b'name="chunking_strategy[type]"' in asked.form.body_for("theirs")


@pytest.mark.parametrize(
    ("name", "size"),
    [("prompt", 500), ("hotwords", 500), ("known_speaker_references[]", 500), ("language", 0),
     ("temperature", 0)],
)  # fmt: skip
def test_the_text_of_every_field_that_may_be_read_is_held_for(name: str, size: int) -> None:
    asked = read_transcription(with_part(f'name="{name}"', "x" * 500))
    assert asked.prompt_bytes == size


def wav_of_case(head: str) -> bytes:
    return bytes.fromhex(head) + b"\x7f" * 480_000


def flac_of_case() -> bytes:
    """Ten seconds; the head states one sample."""
    target = io.BytesIO()
    with av.open(target, "w", format="flac") as opened:
        stream = opened.add_stream("flac", rate=8000, options={"compression_level": "0"})
        stream.layout, stream.format = "mono", "s16"
        for at in range(0, 80_000, 4000):
            frame = av.AudioFrame(format="s16", layout="mono", samples=4000)
            frame.planes[0].update(bytes(range(250)) * 32)
            frame.sample_rate, frame.pts, frame.time_base = 8000, at, Fraction(1, 8000)
            opened.mux(stream.encode(frame))
        opened.mux(stream.encode(None))
    data = bytearray(target.getvalue())
    (packed,) = struct.unpack_from(">Q", data, 18)
    struct.pack_into(">Q", data, 18, packed >> 36 << 36 | 1)
    return bytes(data)


async def test_heads_that_lie_are_held_and_booked_at_the_decoded_length() -> None:
    """The field's cases: 60 s of mu-law twice, 10 s of FLAC, at $0.0001 a second."""
    bits = (
        "524946463453070057415645666d74201000000007000100401f0000401f00000100f8ff6461746100530700"
    )
    two = (
        "524946463c53070057415645666d74201000000007000100401f0000401f000001000800"
        "666d7420100000000700ffffffffffff401f00000100f8ff6461746100530700"
    )
    cases = {"wav-bits": (wav_of_case(bits), 60), "wav-two-formats": (wav_of_case(two), 60)}
    cases["flac-states-one-millisecond"] = (flac_of_case(), 10)
    decoder = SoundDecoder()
    try:
        for name, (sound, seconds) in cases.items():
            assert SPEC.measure is not None
            asked = await SPEC.measure(read_transcription(form(sound)), decoder)
            hold, booked = priced(asked)
            assert booked == seconds * 10**8, name
            assert hold == booked + 10**8, name
    finally:
        await decoder.aclose()


def test_a_length_that_no_file_told_is_no_exact_one() -> None:
    assert SPEC.units is not None
    unknown = RequestUnits(longest=0.0, audio_ms=2000, audio_ms_bound=9000)
    guessed = RoutingRequest(RequestKind.TRANSCRIPTION, "m", 1, 1, 0, OUTPUT, extent=unknown)
    assert (SPEC.units.exact(SOUND), SPEC.units.exact(guessed)) == (True, False)
