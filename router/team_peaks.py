"""The most that was seen of a target: held for by the team that saw it, by others as two teams did.

What the client and the provider of one team make up so moves nobody else. Three cells of a row of
`router.estimate_rows` keep it: what two teams saw, whose the most is, and how much that is.
"""

from typing import NamedTuple

from router.estimate_rows import number_of


class TeamPeak(NamedTuple):
    """The places of a row's three cells, the maximum of an observation, and the value for none."""

    of_two: int
    whose: int
    of_one: int
    limit: float
    least: float

    @property
    def seen_cells(self) -> tuple[int, int]:
        """Return the cells of what was seen."""
        return self.of_two, self.of_one

    def note(self, row: "memoryview[float]", team: str, seen: float) -> None:
        """Take note of what a team saw: others are held for as much of it as another saw, too.

        The team that saw the most is kept. Whoever displaces it saw more, so that what it saw
        itself is by then what two saw: no team is held for less than its own most.
        """
        seen, most, number = self._within(seen), self._within(row[self.of_one]), number_of(team)
        if most and row[self.whose] != number:
            row[self.of_two] = max(self._within(row[self.of_two]), min(seen, most))
        if seen and seen >= most:
            row[self.whose], row[self.of_one] = number, seen

    def seen(self, row: "memoryview[float]", team: str) -> float:
        """Return the most that counts for a team, within the limit whatever the cells hold."""
        of_all, most = self._within(row[self.of_two]), self._within(row[self.of_one])
        return most if most > of_all and row[self.whose] == number_of(team) else of_all

    def most(self, row: list[float]) -> float:
        """Return the most that counts for anybody."""
        return max(self._within(row[self.of_two]), self._within(row[self.of_one]))

    def fade(self, row: list[float], left: float) -> None:
        """Leave a share of what was seen; less than the least is forgotten."""
        for cell in self.seen_cells:
            seen = self._within(row[cell]) * left
            row[cell] = seen if seen >= self.least else 0.0

    def _within(self, seen: float) -> float:
        return min(float(seen), self.limit) if seen > 0.0 else 0.0
