"""Maximum observation of a target, in full for the team that saw it, limited for others.

Other teams are held only for as much as two teams saw, so that the client and the provider of one
team cannot move the holds of others. Three cells of a `router.estimate_rows` row store it: the
maximum of two teams, the team with the highest maximum, and that maximum.
"""

from typing import NamedTuple

from router.estimate_rows import number_of


class TeamPeak(NamedTuple):
    """Indexes of a row's three cells, the limit of an observation, and the least value kept."""

    of_two: int
    whose: int
    of_one: int
    limit: float
    least: float

    @property
    def seen_cells(self) -> tuple[int, int]:
        """Return the indexes of the cells with observations."""
        return self.of_two, self.of_one

    def note(self, row: "memoryview[float]", team: str, seen: float) -> None:
        """Record an observation of a team; other teams count as much of it as a second team saw.

        The team with the highest observation is stored. A team that displaces it saw more, so the
        former team's own maximum is then what two teams saw: no team is held for less than its own
        maximum.
        """
        seen, most, number = self._within(seen), self._within(row[self.of_one]), number_of(team)
        if most and row[self.whose] != number:
            row[self.of_two] = max(self._within(row[self.of_two]), min(seen, most))
        if seen and seen >= most:
            row[self.whose], row[self.of_one] = number, seen

    def seen(self, row: "memoryview[float]", team: str) -> float:
        """Return the maximum that counts for a team, clamped to the limit."""
        of_all, most = self._within(row[self.of_two]), self._within(row[self.of_one])
        return most if most > of_all and row[self.whose] == number_of(team) else of_all

    def most(self, row: list[float]) -> float:
        """Return the maximum that counts for any team."""
        return max(self._within(row[self.of_two]), self._within(row[self.of_one]))

    def fade(self, row: list[float], left: float) -> None:
        """Multiply the observations by `left`; values below `least` become 0."""
        for cell in self.seen_cells:
            seen = self._within(row[cell]) * left
            row[cell] = seen if seen >= self.least else 0.0

    def _within(self, seen: float) -> float:
        return min(float(seen), self.limit) if seen > 0.0 else 0.0
