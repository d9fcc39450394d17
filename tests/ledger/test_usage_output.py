"""Output and its parts: the parts fit, and nothing that is told is lost."""

from hypothesis import given
from hypothesis import strategies as st

from ledger.usage_members import UsageCount as Count
from ledger.usage_output import read_output

few = st.integers(0, 30)
MADE = (
    Count.COMPLETION, Count.THOUGHT, Count.THOUGHT_ANYWHERE, Count.THOUGHT_BESIDE, Count.AUDIO_OUT,
    Count.IMAGE_OUT, Count.TOTAL, Count.CITED,
)  # fmt: skip


@given(st.dictionaries(st.sampled_from(MADE), few), few)
def test_parts_fit_into_the_whole_and_no_figure_is_larger(counts, prompt) -> None:
    odd: list[str] = []
    whole, reasoning, audio, image = read_output(counts, prompt, odd.append)
    assert reasoning + audio + image <= whole
    named = (Count.COMPLETION, Count.THOUGHT, Count.THOUGHT_BESIDE, Count.AUDIO_OUT)
    assert whole >= max(counts.get(name, 0) for name in named)
    if not odd and counts.get(Count.TOTAL) and Count.CITED not in counts:
        beside = counts.get(Count.THOUGHT_ANYWHERE, 0) > counts.get(Count.COMPLETION, 0)
        assert beside or prompt + whole >= counts[Count.TOTAL]


def test_research_thinks_beside_what_it_wrote() -> None:
    counts = {Count.COMPLETION: 20, Count.THOUGHT_ANYWHERE: 5}
    assert read_output(counts, 9, print) == (20, 5, 0, 0)
    assert read_output({**counts, Count.CITED: 0}, 9, print) == (25, 5, 0, 0)
