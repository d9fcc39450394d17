"""Questions out of a training corpus: what is held out asks, what was learned calibrates."""

import json
import lzma
import random
from pathlib import Path


def write_prompts(corpus: Path, asked: tuple[Path, int], calibration: tuple[Path, int]) -> None:
    """Two files of JSON lines with `prompt`, of so many different questions each."""
    questions: dict[bool, set[str]] = {True: set(), False: set()}
    with lzma.open(corpus, "rt", encoding="utf-8") as file:
        for line in file:
            if not line.startswith('{"kind": "chat"'):
                continue
            document = json.loads(line)
            if len(document["question"]) < 600 and document["name"] != "small talk":
                questions[document["held_out"]].add(document["question"])
    chosen = random.Random(0)
    for held_out, (path, count) in ((True, asked), (False, calibration)):
        found = sorted(questions[held_out] - questions[not held_out])
        some = chosen.sample(found, min(count, len(found)))
        lines = [json.dumps({"prompt": question}) for question in some]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
