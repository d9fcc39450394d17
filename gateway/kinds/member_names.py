"""Check of members whose names differ from known ones only in case.

Servers in Go read `Max_Tokens` as `max_tokens`: a member that is checked here under one name must
not reach a target under another. A vendor's own members pass in any case.
"""

from collections.abc import Mapping
from typing import Any, Final

from gateway.errors import RequestError
from gateway.http.member_rules import DENIED
from gateway.kinds.hosted_tools import SEARCHES
from gateway.kinds.prompt_bytes import TEXT_MEMBERS
from gateway.kinds.request_checks import REFUSED

_NAMES: Final = frozenset(
    (*DENIED, *TEXT_MEMBERS, *REFUSED, *SEARCHES, "audio", "response_format", "prediction")
)
_JUDGED: Final = {name.casefold(): name for name in sorted(_NAMES)}


def refuse_other_spellings(members: Mapping[str, Any]) -> None:
    """Raise `RequestError` for a name that differs only in case from one that is checked."""
    names = "".join(members)
    if names.isascii() and names.islower():  # almost every request
        return
    for name in members:
        usual = _JUDGED.get(name.casefold(), name)  # Go's comparison: the Kelvin sign equals k
        if usual != name and name not in _NAMES:
            raise RequestError("bad_request", f"`{name}` must be written `{usual}`.", param=name)
