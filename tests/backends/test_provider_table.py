"""The table is that of the installed LiteLLM, and says the same as a look at it does."""

from importlib.metadata import version

from backends.provider_refusals import KINDS, NEEDS, REFUSED
from backends.provider_table import LISTED, SPEAKS_CHAT, TABLE
from deploy.provider_table import COMMAND


def test_it_is_of_the_installed_release() -> None:
    assert version("litellm") == TABLE.litellm, f"run `{COMMAND}`"


def test_each_name_is_called_or_refused() -> None:
    assert not REFUSED.keys() & LISTED.keys()
    assert KINDS.keys() | NEEDS.keys() <= LISTED.keys() - SPEAKS_CHAT.keys()
    assert len(REFUSED) <= 20
    assert len(SPEAKS_CHAT) > 90


def test_no_name_is_sent_to_openai_unasked() -> None:
    """LiteLLM's SDK takes OpenAI's address for a name that has none."""
    assumed = [name for name, entry in LISTED.items() if "api.openai.com" in (entry.base_url or "")]
    assert assumed == ["openai"]


def test_an_answer_has_its_cap_everywhere() -> None:
    for name, entry in SPEAKS_CHAT.items():
        assert not {"max_tokens", "max_completion_tokens"} & set(entry.leaves_out), name
