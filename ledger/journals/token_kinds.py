"""The token kinds: everything that an attempt counts and a price charges for.

`TOKEN_KINDS` is the only list of them; records, columns of attempts, rates, price maps, charges,
exports and checks follow from it. A new kind is one entry here, one field of `TokenCounts`, and one
of `TokenRates` (a price per token, by default `UNLISTED`) or `UnitPrices` (a price per other unit).
A migration adds its column, and `ledger.usage` reads its count. Journals and database store members
by position: append a new kind at the end, and never move one.
"""

from dataclasses import dataclass
from enum import Enum, auto

import msgspec

MS_PER_S = 1000
# No request is larger: prices are checked at load to keep one attempt below 2**63 pico-USD.
TOKENS_LIMIT = 100_000_000
AUDIO_MS_LIMIT = 500 * 3_600_000
SEARCHES_LIMIT = 1_000_000
CHARACTERS_LIMIT = 10_000_000
PICTURES_LIMIT = 1_000
UNLISTED = -1


class Side(Enum):
    """The side on which a kind is counted: the prompt, the output, or neither."""

    PROMPT = auto()
    OUTPUT = auto()
    BESIDE = auto()


@dataclass(frozen=True, slots=True)
class PriceUnit:
    """Unit of a kind's price.

    `counts` is how much `TokenCounts` counts for one unit. `page_name` is the unit of the usage
    pages and `per_page` the number of units in one of those. `mistaken` are larger units with their
    factors: a price that is too high is often stated per one of these.
    """

    name: str  # in the FOCUS export
    singular: str
    page_name: str | None
    mistaken: tuple[tuple[int, str], ...]
    counts: int = 1
    per_page: int = 1


TOKEN = PriceUnit("Tokens", "1M tokens", "tokens", ((1_000, "1K tokens"), (1_000_000, "token")))
SECOND = PriceUnit(
    "Seconds", "second", "hours", ((60, "minute"), (3_600, "hour")), counts=MS_PER_S, per_page=3_600
)
CHARACTER = PriceUnit(
    "Characters",
    "character",
    "characters",
    ((1_000, "1K characters"), (1_000_000, "1M characters")),
)
PICTURE = PriceUnit("Pictures", "picture", "pictures", ((1_000, "1K pictures"),))
SEARCH = PriceUnit("Searches", "search", None, ((1_000, "1K searches"),))


@dataclass(frozen=True, slots=True)
class TokenKind:
    """One kind of token or unit.

    `field` names its count in `TokenCounts`, `price` its amount in `TokenRates` or `UnitPrices`.
    `part_of` is the kind whose count includes this one. `price_as` is the kind whose rate applies
    if a price lists none. `unless` is the kind charged instead if it is both counted and priced.
    `map_terms` and `genai_terms` are the names of its price in LiteLLM's map (for models of
    `map_mode` if the kind is no token) and in genai-prices. A price `by_tier` may differ by tier,
    for example by an image's size and quality.
    """

    field: str
    column: str  # of attempts
    side: Side
    price: str
    charge: str  # in charges and exports
    meter: str  # in the FOCUS export
    map_terms: tuple[str, ...]
    genai_terms: tuple[str, ...] = ()
    map_mode: str | None = None
    part_of: str | None = None
    price_as: str | None = None
    unless: str | None = None
    unit: PriceUnit = TOKEN
    limit: int = TOKENS_LIMIT  # of one request
    is_sound: bool = False  # no request without sound has any
    is_picture: bool = False  # no answer without a picture has any
    by_tier: bool = False

    @property
    def term(self) -> str:
        """Return the name of its price in price files; for token prices, that below the million."""
        return self.price if self.unit is TOKEN else f"usd_per_{self.price.removesuffix('_pusd')}"


class TokenCounts(msgspec.Struct, frozen=True, array_like=True):
    """Tokens by kind. `output` includes `reasoning`, `audio_output` and `image_output`.

    `input` is the prompt without cached, cache write and audio tokens. Units that some request
    kinds charge instead: `audio_ms` of transcribed audio, `searches` of a reranking, `characters`
    of spoken text, `pictures` (generated images).
    """

    input: int = 0
    cached: int = 0
    cache_write: int = 0
    cache_write_1h: int = 0
    output: int = 0
    reasoning: int = 0
    audio_input: int = 0
    audio_output: int = 0
    audio_ms: int = 0
    searches: int = 0
    image_output: int = 0
    characters: int = 0
    pictures: int = 0

    # Written out for speed, since each request reads them; a test compares them with the table.
    @property
    def prompt(self) -> int:
        """Return the prompt's text tokens, cached or not."""
        return self.input + self.cached + self.cache_write + self.cache_write_1h

    @property
    def whole_prompt(self) -> int:
        """Return the prompt's text and audio tokens."""
        return self.input + self.cached + self.cache_write + self.cache_write_1h + self.audio_input

    @property
    def plain_output(self) -> int:
        """Return the output without the kinds that are a part of it."""
        return self.output - self.reasoning - self.audio_output - self.image_output


class TokenRates(msgspec.Struct, frozen=True):
    """Pico-USD per token by kind; every kind has a number (`rates_from` fills the unlisted).

    Stored prices outlive the version that wrote them: the field of a later kind has the default
    `UNLISTED`, and a price without it charges the rate of the kind's `price_as`.
    """

    input: int
    cached: int
    cache_write: int
    cache_write_1h: int
    output: int
    reasoning: int
    audio_input: int
    audio_output: int
    image_output: int = UNLISTED

    def __post_init__(self) -> None:
        for kind in PER_TOKEN[len(PER_TOKEN) - len(self.__struct_defaults__) :]:
            if kind.price_as is not None and getattr(self, kind.price) == UNLISTED:
                msgspec.structs.force_setattr(self, kind.price, getattr(self, kind.price_as))


class UnitPrices(msgspec.Struct, frozen=True, kw_only=True):
    """Pico-USD per unit of the kinds that are not tokens; 0 means that there is no charge."""

    second_pusd: int = 0
    search_pusd: int = 0
    character_pusd: int = 0
    picture_pusd: int = 0


TOKEN_KINDS: tuple[TokenKind, ...] = (
    TokenKind(
        "input",
        "input_tokens",
        Side.PROMPT,
        price="input",
        charge="input",
        meter="Input Tokens",
        map_terms=("input_cost_per_token",),
        genai_terms=("input_mtok",),
    ),
    TokenKind(
        "cached",
        "cached_tokens",
        Side.PROMPT,
        price="cached",
        charge="cached",
        meter="Cached Input Tokens",
        map_terms=("cache_read_input_token_cost",),
        genai_terms=("cache_read_mtok",),
        price_as="input",
    ),
    TokenKind(
        "cache_write",
        "cache_write_tokens",
        Side.PROMPT,
        price="cache_write",
        charge="cache_write",
        meter="Cache Write Tokens",
        map_terms=("cache_creation_input_token_cost",),
        genai_terms=("cache_write_mtok", "cache_write_5m_mtok"),
        price_as="input",
    ),
    TokenKind(
        "cache_write_1h",
        "cache_write_1h_tokens",
        Side.PROMPT,
        price="cache_write_1h",
        charge="cache_write_1h",
        meter="One Hour Cache Write Tokens",
        map_terms=("cache_creation_input_token_cost_above_1hr",),
        genai_terms=("cache_write_1h_mtok",),
        price_as="cache_write",
    ),
    TokenKind(
        "output",
        "output_tokens",
        Side.OUTPUT,
        price="output",
        charge="output",
        meter="Output Tokens",
        map_terms=("output_cost_per_token",),
        genai_terms=("output_mtok",),
    ),
    TokenKind(
        "reasoning",
        "reasoning_tokens",
        Side.OUTPUT,
        price="reasoning",
        charge="reasoning",
        meter="Reasoning Tokens",
        map_terms=("output_cost_per_reasoning_token",),
        genai_terms=("output_reasoning_mtok",),
        price_as="output",
        part_of="output",
    ),
    TokenKind(
        "audio_input",
        "audio_input_tokens",
        Side.PROMPT,
        price="audio_input",
        charge="audio_input",
        meter="Audio Input Tokens",
        map_terms=("input_cost_per_audio_token",),
        genai_terms=("input_audio_mtok",),
        price_as="input",
        is_sound=True,
    ),
    TokenKind(
        "audio_output",
        "audio_output_tokens",
        Side.OUTPUT,
        price="audio_output",
        charge="audio_output",
        meter="Audio Output Tokens",
        map_terms=("output_cost_per_audio_token",),
        genai_terms=("output_audio_mtok",),
        price_as="output",
        part_of="output",
        is_sound=True,
    ),
    TokenKind(
        "audio_ms",
        "audio_ms",
        Side.BESIDE,
        price="second_pusd",
        charge="seconds",
        meter="Seconds of Audio",
        map_mode="audio_transcription",
        map_terms=("input_cost_per_second", "output_cost_per_second"),
        unit=SECOND,
        limit=AUDIO_MS_LIMIT,
        unless="audio_input",
        is_sound=True,
    ),
    TokenKind(
        "searches",
        "searches",
        Side.BESIDE,
        price="search_pusd",
        charge="searches",
        meter="Searches",
        map_mode="rerank",
        map_terms=("input_cost_per_query",),
        unit=SEARCH,
        limit=SEARCHES_LIMIT,
    ),
    TokenKind(
        "image_output",
        "image_output_tokens",
        Side.OUTPUT,
        price="image_output",
        charge="image_output",
        meter="Image Output Tokens",
        map_terms=("output_cost_per_image_token",),
        genai_terms=("output_image_mtok",),
        price_as="output",
        part_of="output",
        is_picture=True,
    ),
    TokenKind(
        "characters",
        "characters",
        Side.BESIDE,
        price="character_pusd",
        charge="characters",
        meter="Characters Spoken",
        map_mode="audio_speech",
        map_terms=("input_cost_per_character",),
        unit=CHARACTER,
        limit=CHARACTERS_LIMIT,
        unless="audio_output",
        is_sound=True,
    ),
    TokenKind(
        "pictures",
        "pictures",
        Side.BESIDE,
        price="picture_pusd",
        charge="pictures",
        meter="Pictures",
        map_mode="image_generation",
        map_terms=("output_cost_per_image",),
        unit=PICTURE,
        limit=PICTURES_LIMIT,
        unless="image_output",
        is_picture=True,
        by_tier=True,
    ),
)
# The kinds priced by the token, the other kinds, and the attempt column of each count.
PER_TOKEN = tuple(kind for kind in TOKEN_KINDS if kind.unit is TOKEN)
PER_UNIT = tuple(kind for kind in TOKEN_KINDS if kind.unit is not TOKEN)
PROMPT_KINDS = tuple(kind for kind in PER_TOKEN if kind.side is Side.PROMPT)
OUTPUT_KINDS = tuple(kind for kind in PER_TOKEN if kind.side is Side.OUTPUT)
TOKEN_COLUMNS: dict[str, str] = {kind.field: kind.column for kind in TOKEN_KINDS}
