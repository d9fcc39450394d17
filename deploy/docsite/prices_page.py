"""The page `reference/price-terms.md`: charges of a price and their terms in files."""

from collections.abc import Iterator
from inspect import cleandoc
from textwrap import dedent
from typing import Final

from deploy.docsite.markdown import code, head, table
from ledger.journals.token_kinds import TOKEN, TOKEN_KINDS, Side, TokenKind
from ledger.prices import files, negotiated

_SIDES: Final = {
    Side.PROMPT: "the prompt",
    Side.OUTPUT: "the output",
    Side.BESIDE: "beside both",
}

PRICE_FILE: Final = (
    "YAML, named under `prices` in the configuration, or imported with "
    "`breakeven prices import --from FILE.yaml`."
)


def term_of(kind: TokenKind) -> str:
    """Return the place in a price file that states the price of a token kind."""
    return f"usd_per_million.{kind.term}" if kind.unit is TOKEN else kind.term


def text() -> str:
    """Return the text of the page."""
    before, example = _split(files.__doc__ or "")
    words, columns = _split(negotiated.__doc__ or "")
    del before, words
    return "\n\n".join([
        head(
            "Price terms",
            "A price charges for the kinds of tokens and units below. Amounts are kept as whole "
            "pico-dollars; a price that is not known is unknown, never 0. A kind that a price does "
            "not list costs what the column *priced as* says; without such a kind it is free of "
            "charge only where the price says so.",
        ),
        table(
            ("kind", "unit", "counted in", "part of", "priced as", "term of a price file",
             "column of attempts", "FOCUS meter", "LiteLLM's map"),
            _rows(),
        ),
        "## A price file",
        PRICE_FILE,
        f"<!-- block: prices -->\n```yaml\n{example}\n```",
        "## A table of negotiated prices",
        "CSV from a spreadsheet: `breakeven prices import --from contract.csv`. Its columns:",
        f"```text\n{columns}\n```",
        "Imports, approvals and budgets: [the ledger's page](../../ledger/README.md#prices).",
    ]) + "\n"  # fmt: skip


def _rows() -> Iterator[tuple[str, ...]]:
    for kind in TOKEN_KINDS:
        yield (
            code(kind.field), kind.unit.singular, _SIDES[kind.side], code(kind.part_of or ""),
            code(kind.price_as or ""), code(term_of(kind)), code(kind.column), kind.meter,
            ", ".join(code(term) for term in kind.map_terms),
        )  # fmt: skip


def _split(docstring: str) -> tuple[str, str]:
    """Return the prose and the indented part of a docstring."""
    lines = cleandoc(docstring).splitlines()
    block = [line for line in lines if line.startswith("    ")]
    return "\n".join(line for line in lines if not line.startswith("    ")), dedent(
        "\n".join(block)
    )
