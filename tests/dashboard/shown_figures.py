"""What a page shows, read by its labels: figures of cards, rows of tables."""

import html
import re
from decimal import Decimal
from typing import Any

from streamlit.testing.v1 import AppTest

_UNITS = {"k": 3, "M": 6, "B": 9, "T": 12}
_NUMBER = re.compile(r"(-?)\$?([\d,]+(?:\.\d+)?)\s*([kMBT])?")
_ROW = re.compile(r"<tr><td>(.*?)</td><td[^>]*>(.*?)</td></tr>", re.DOTALL)


def plain(body: str) -> str:
    without = re.sub(r'<span class="be-rows-of">.*?</span>', " ", body)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", without)).split())


class ShownPage:
    """A page as it was drawn. What is asked for by a label that is not there is an empty text."""

    def __init__(self, test: AppTest) -> None:
        self._test = test
        self._cards: dict[str, str] = {}
        for element in test.get("html"):
            body = element.proto.body
            for head in re.findall(r"<h4>(.*?)</h4>", body, re.DOTALL):
                self._cards[plain(head)] = body

    def card(self, title: str) -> str:
        """The HTML of the card whose title begins so."""
        return next((body for name, body in self._cards.items() if name.startswith(title)), "")

    def big(self, title: str) -> str:
        """The large figure of a card."""
        found = re.search(r'<div class="be-(?:big|mid)[^"]*"[^>]*>(.*?)</div>', self.card(title))
        return "" if found is None else plain(found.group(1))

    def row(self, title: str, label: str) -> str:
        """The figure beside a label of a card."""
        rows = [(plain(name), plain(value)) for name, value in _ROW.findall(self.card(title))]
        return next((value for name, value in rows if name.startswith(label)), "")

    def small(self, title: str, pattern: str) -> str:
        """What a pattern with one group finds in the text of a card."""
        found = re.search(pattern, plain(self.card(title)))
        return "" if found is None else str(found.group(1))

    def caption(self, pattern: str) -> str:
        """What a pattern with one group finds in the captions."""
        texts = (each.value.replace("\\", "") for each in self._test.caption)
        return next((match[1] for text in texts if (match := re.search(pattern, text))), "")

    def cell(self, keyed: str, value: str, column: str) -> Any:
        """A cell of the table that has these columns, in the row whose `keyed` begins so."""
        for frame in (element.value for element in self._test.dataframe):
            if keyed in frame.columns and column in frame.columns:
                for record in frame.to_dict("records"):
                    if str(record[keyed]).startswith(value):
                        return record[column]
        return ""


def number_of(text: str) -> tuple[Decimal, Decimal] | None:
    """The first number of a text and half of its last shown place; `None` without a number."""
    found = _NUMBER.search(text)
    if found is None:
        return None
    sign, digits, unit = found.groups()
    value = Decimal(digits.replace(",", ""))
    scale = Decimal(10) ** _UNITS.get(unit or "", 0)
    half = Decimal(5).scaleb(int(value.as_tuple().exponent) - 1)
    return (-value if sign else value) * scale, half * scale
