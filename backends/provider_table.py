"""LiteLLM's provider names, and which use OpenAI's chat API: `provider_table.json`.

`deploy/provider_table.py` generates the file from the release of LiteLLM that the file names.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from backends.quirks import Quirks

CHAT: Final = "chat"
_FILE: Final = Path(__file__).with_name("provider_table.json")


class ListedProvider(Quirks, frozen=True, kw_only=True):
    """One provider name. `speaks`: `chat`, or empty if the adapter translates.

    `base_url`: its public address. `keys`: the variables in which LiteLLM looks for its key.
    """

    speaks: str = ""
    base_url: str | None = None
    keys: tuple[str, ...] = ()

    @property
    def quirks(self) -> Quirks:
        return Quirks(**{name: getattr(self, name) for name in Quirks.__struct_fields__})


class ProviderTable(msgspec.Struct, frozen=True):
    """All provider names of one release of LiteLLM."""

    litellm: str
    providers: Mapping[str, ListedProvider]


TABLE: Final = msgspec.json.decode(_FILE.read_bytes(), type=ProviderTable)
LISTED: Final = TABLE.providers
SPEAKS_CHAT: Final[Mapping[str, ListedProvider]] = {
    name: entry for name, entry in LISTED.items() if entry.speaks == CHAT
}
