"""Check for sections without effect, because `enabled` is off by default."""

from collections.abc import Iterator

from pydantic import BaseModel

from gateway.config.faults import ConfigFault, Place, warning
from gateway.config.schema import Settings

SWITCH = "enabled"
# Sign-in settings also apply to the HTTP API.
_ACTS_ALONE = {("dashboard", "access_file")}


def check_idle_sections(settings: Settings) -> Iterator[ConfigFault]:
    """Warn of settings in a section that is off by default, without `enabled` in the file."""
    yield from _idle_settings(settings, ())


def _idle_settings(section: BaseModel, here: Place) -> Iterator[ConfigFault]:
    written = section.model_fields_set
    if getattr(section, SWITCH, True) is False and SWITCH not in written:
        for name in sorted(written):
            if (*here, name) not in _ACTS_ALONE:
                words = f"has no effect without `{'.'.join(map(str, here))}.{SWITCH}: true`"
                yield warning((*here, name), words, upon=((*here, SWITCH),))
    for name in type(section).model_fields:
        value = getattr(section, name)
        if isinstance(value, BaseModel):
            yield from _idle_settings(value, (*here, name))
