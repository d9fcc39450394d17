"""The page of reasons has every reason."""

from deploy.docsite.reasons_page import text
from router.reasons import REASONS


def test_every_reason_is_on_the_page() -> None:
    shown = text()
    for reason, traits in REASONS.items():
        assert f"| `{reason.value}` | {traits.explained or traits.sentence} |" in shown
        if traits.remedy is not None:
            assert traits.remedy.advice in shown
