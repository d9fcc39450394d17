"""Check of reports: names used twice, and missing destinations.

A pure check like those of `gateway.config.crosschecks`, which lists it. A report without a
destination would be noticed only when it is needed.
"""

from collections.abc import Iterator

from gateway.config.faults import ConfigFault
from gateway.config.schema import Settings


def check_reports(settings: Settings) -> Iterator[ConfigFault]:
    seen: set[str] = set()
    for index, report in enumerate(settings.reports):
        place = ("reports", index)
        if report.name in seen:
            words = f"`{report.name}` is the name of another report: choose another name"
            yield ConfigFault((*place, "name"), words)
        seen.add(report.name)
        if "/" in report.name or report.name.startswith("."):
            words = "a report's name is part of file names: leave out `/` and a dot at its start"
            yield ConfigFault((*place, "name"), words)
        if report.folder is None and report.webhook_env is None and not report.mail_to:
            yield ConfigFault(place, "has no destination: set `folder`, `webhook_env` or `mail_to`")
        yield from _unmailed(settings, report.mail_to, place)
    yield from _unmailed(settings, settings.alerts.mail_to, ("alerts",))
    if settings.mail.user is not None and settings.mail.password_env is None:
        words = "has no password: set `mail.password_env`"
        yield ConfigFault(("mail", "user"), words)
    if settings.mail.user is not None and settings.mail.tls == "none":
        words = (
            "the password would be sent without encryption: set `mail.tls` to `starttls` or `tls`"
        )
        yield ConfigFault(("mail", "tls"), words)


def _unmailed(
    settings: Settings, mail_to: tuple[str, ...], place: tuple[str | int, ...]
) -> Iterator[ConfigFault]:
    if mail_to and (settings.mail.server is None or settings.mail.sender is None):
        words = "needs a mail server: set `mail.server` and `mail.sender`"
        yield ConfigFault((*place, "mail_to"), words)
