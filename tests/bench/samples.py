"""What a bench measured so far, on disk after every scene: an ended run loses one scene at most.

The file also says of which checkout and in which lengths it was measured. A run that goes on with
it measures what is missing, and refuses figures of another checkout.
"""

import json
from pathlib import Path
from typing import Any

Samples = dict[str, dict[str, dict[str, list[float]]]]  # scene -> target -> figure -> rounds


class KeptSamples:
    def __init__(self, path: Path, origin: dict[str, Any], *, resume: bool) -> None:
        """`origin`: what figures of one run have in common. Raises SystemExit if it differs."""
        self.samples: Samples = {}
        self._path = path
        self._origin = origin
        if not resume or not path.exists():
            return
        found = json.loads(path.read_text(encoding="utf-8"))
        for name, value in origin.items():
            if found["origin"].get(name) != value:
                was = found["origin"].get(name)
                raise SystemExit(f"{path.name} was measured with {name} {was}, this is {value}")
        self.samples = found["samples"]

    def rounds(self, scene: str, target: str) -> int:
        """How often it was measured."""
        figures = self.samples.get(scene, {}).get(target, {})
        return max((len(values) for values in figures.values()), default=0)

    def add(self, scene: str, target: str, figures: dict[str, float]) -> None:
        kept = self.samples.setdefault(scene, {}).setdefault(target, {})
        for figure, value in figures.items():
            kept.setdefault(figure, []).append(value)
        self._write()

    def _write(self) -> None:
        """Whole or not at all."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        fresh = self._path.with_suffix(".new")
        document = {"origin": self._origin, "samples": self.samples}
        fresh.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
        fresh.replace(self._path)
