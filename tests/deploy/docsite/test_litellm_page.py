"""The page on leaving LiteLLM says what the importer does."""

import pytest

from deploy.docsite.litellm_page import EXAMPLES, TABLES, WORDS, imported, text
from gateway.config.draft import draft_settings
from gateway.config.litellm_notes import ImportLoss, known_notes
from gateway.config.settings_table import rows


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.title)
def test_what_is_called_carried_over_is(example) -> None:
    made = imported(example)
    assert made.document[example.section]
    assert [note for note in made.notes if note.loss is not None] == []
    assert example.section in {row.path.partition(".")[0].removesuffix("[]") for row in rows()}


def test_every_setting_that_the_importer_knows_is_in_a_table() -> None:
    tables = text().partition("### Same: carried over")[2]
    assert [note.place for note in known_notes() if f"`{note.place}`" not in tables] == []
    losses = {note.loss for note in known_notes() if note.loss is not None}
    assert all(f"| `{loss}` |" in tables for loss in losses)
    assert losses <= set(ImportLoss)


def test_the_words_around_the_tables_are_there() -> None:
    words = WORDS.read_text("utf-8")
    assert words.count(TABLES) == 1
    assert TABLES not in text()
    assert draft_settings.__module__  # the page's own file is checked with all other blocks
