"""Kinds of content that the built-in detectors find, with their descriptions."""

from collections.abc import Mapping
from typing import Final

from router.content import UNKNOWN

CONTENT_KINDS: Final[Mapping[str, str]] = {
    "card": "numbers of payment cards with a right check digit",
    "iban": "international bank account numbers with right check digits",
    "national_id": "numbers that states give to people, of 18 countries",
    "email": "e-mail addresses",
    "phone": "telephone numbers",
    "ip": "IP addresses, except loopback",
    "secret": "keys and tokens of known formats, and private keys",
    "random_secret": "values that a text names as secret, and long random strings",
    UNKNOWN: "images, audio and files, encodings beyond the bounds, and a detector that failed",
}
