"""What a transcript may cost: the bound holds for whatever a target may count."""

from backends.engine import silence
from gateway.kinds.inference_request import IncomingBody
from gateway.kinds.transcription import SPEC, read_transcription, read_translation
from ledger.journals.records import TokenCounts
from ledger.prices.book import Price, PriceTerms, cost_pusd, rates_from
from ledger.prices.bundled import bundled_seed
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


def test_a_surcharge_is_in_the_bound() -> None:
    terms = PriceTerms(rates_from({"input": 0, "output": 0}), uplift_ppm=100_001, second_pusd=7)
    price = Price(1, "a/b", "test", 0, terms)
    assert SPEC.units is not None
    limit = SPEC.units.bound_pusd(price, SOUND, 0)
    assert limit >= cost_pusd(TokenCounts(audio_ms=61_000), price) > 61 * 7


def test_sound_is_measured_and_goes_to_its_own_path() -> None:
    form = IncomingBody(FORM % silence.wav(1.0), "multipart/form-data; boundary=x", None, max_n=8)
    heard, translated = read_transcription(form), read_translation(form)
    assert (heard.path, translated.path) == ("/audio/transcriptions", "/audio/translations")
    assert heard.extent is not None
    assert (heard.extent.audio_ms, heard.extent.audio_ms_bound) == (1000, 2000)
    assert heard.extent.audio_known
    assert (heard.max_tokens, heard.stream) == (40, False)


def test_a_length_that_no_file_told_is_no_exact_one() -> None:
    assert SPEC.units is not None
    unknown = RequestUnits(longest=0.0, audio_ms=2000, audio_ms_bound=9000)
    guessed = RoutingRequest(RequestKind.TRANSCRIPTION, "m", 1, 1, 0, OUTPUT, extent=unknown)
    assert (SPEC.units.exact(SOUND), SPEC.units.exact(guessed)) == (True, False)
