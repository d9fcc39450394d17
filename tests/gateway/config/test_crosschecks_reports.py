"""Reports that go nowhere, twice, or with a password in the clear are refused by field."""

import pytest

from gateway.config.crosschecks_reports import check_reports
from gateway.config.settings import Settings

MAIL = {"server": "smtp.example.com:587", "sender": "books@example.com"}
WEEKLY = {"name": "weekly", "mail_to": ["fay@example.com"]}


def faults(**document: object) -> list[str]:
    settings = Settings.model_validate(document)
    return [".".join(map(str, fault.place)) for fault in check_reports(settings)]


def test_a_report_that_reaches_somebody_is_fine() -> None:
    assert faults(reports=[WEEKLY, {"name": "daily", "folder": "reports"}], mail=MAIL) == []


@pytest.mark.parametrize(
    ("document", "place"),
    [
        ({"reports": [{"name": "weekly"}]}, "reports.0"),
        ({"reports": [WEEKLY]}, "reports.0.mail_to"),
        ({"reports": [WEEKLY, WEEKLY], "mail": MAIL}, "reports.1.name"),
        ({"reports": [{**WEEKLY, "name": "a/b"}], "mail": MAIL}, "reports.0.name"),
        ({"mail": {**MAIL, "user": "u"}}, "mail.user"),
        ({"mail": {**MAIL, "user": "u", "password_env": "P", "tls": "none"}}, "mail.tls"),
    ],
)
def test_what_cannot_be_is_named(document, place) -> None:
    assert faults(**document) == [place]
