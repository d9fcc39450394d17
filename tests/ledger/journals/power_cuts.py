"""What a power cut leaves of journals, held against what callers had been told before it.

`play_power_cuts` runs a worker's journal on a disk whose writes are logged, and reads what each
cut leaves as the next boot does. `told` counts cuts behind which something was told to lack.
"""

import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from bad_disk import BadDisk, DiskImage, NoDisk, PowerCut, PowerCuts, mounted_image

from ledger.journals import reader as journal_reader
from ledger.journals.homes import list_journals
from ledger.journals.reader import JournalOffset, JournalReader
from ledger.journals.records import AttemptSettled

LOAD = Path(__file__).with_name("journal_load.py")
LOAD_S = 60


@dataclass(slots=True)
class PowerCutResult:
    acknowledged: int = 0
    flushes: int = 0
    cuts: int = 0
    lost: int = 0  # attempts that were acknowledged before a cut and are not read behind it
    told: int = 0
    faults: list[str] = field(default_factory=list)

    def add(self, other: "PowerCutResult") -> None:
        """Add the cuts of another part."""
        self.cuts, self.lost = self.cuts + other.cuts, self.lost + other.lost
        self.told += other.told
        self.faults += other.faults


def play_power_cuts(
    folder: Path, *, attempts: int, kind: str = "ext4", options: str = "", share: float = 1.0,
    seed: int = 1, jobs: int = 1, way: str = "kernel",
) -> PowerCutResult:  # fmt: skip
    """Play cuts in `jobs` processes; `way`: how the worker writes (`journal_load`).

    Raise `NoDisk` where this machine has no such disk.
    """
    said = folder / "said"
    with BadDisk(folder, kind=kind, options=options) as disk:
        words = [str(disk.place / "journal"), str(said), str(LOAD_S), str(attempts)]
        words += ["64", way]
        subprocess.run([sys.executable, str(LOAD), *words], check=True)
    play = partial(_play_part, disk.image, kind, said, share, seed, jobs)
    if jobs == 1:
        return play(0)
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        result, *others = pool.map(play, range(jobs))
    for other in others:
        result.add(other)
    return result


def _play_part(
    disk: DiskImage, kind: str, said: Path, share: float, seed: int, parts: int, part: int
) -> PowerCutResult:
    result, acknowledged, cuts = PowerCutResult(), read_said(said, "ack"), PowerCuts(disk, seed)
    result.acknowledged, result.flushes = len(acknowledged), len(cuts.flushes)
    since_s = min(acknowledged.values())
    for cut in cuts.each(share=share, since_s=since_s, parts=parts, part=part):
        wanted = {number for number, at_s in acknowledged.items() if at_s <= cut.until_s}
        judge_cut(cut, kind, wanted, result)
    return result


def judge_cut(cut: PowerCut, kind: str, wanted: set[int], result: PowerCutResult) -> None:
    result.cuts += 1
    try:
        with mounted_image(cut.image, kind) as place:
            there, told = read_after_boot(place / "journal")
    except (OSError, NoDisk) as error:  # of the file system nothing is left
        result.faults.append(f"{cut.name}: {error}")
        there, told = set(), 0
    lost = wanted - there
    result.lost, result.told = result.lost + len(lost), result.told + bool(told)
    if lost:
        result.faults.append(f"{cut.name}: {len(lost)} of {len(wanted)} lost")


def read_after_boot(directory: Path) -> tuple[set[int], int]:
    """Return the numbers of attempts that have settled, and how many findings there are."""
    there, told, reader = set(), 0, JournalReader(directory)
    for journal in list_journals(directory):
        since = JournalOffset()
        while (chunk := reader.read(journal, since)).after != since:
            settles = [each.record for each in chunk.frames]
            there |= {number_of(each) for each in settles if isinstance(each, AttemptSettled)}
            told, since = told + len(chunk.damages), chunk.after
        before = journal_reader.read_boot_id
        journal_reader.read_boot_id = lambda: "the boot behind the cut"
        try:
            told += reader.lost_tail(journal, since) is not None
        finally:
            journal_reader.read_boot_id = before
    return there, told


def number_of(record: AttemptSettled) -> int:
    return int(record.attempt_id[1:].partition(".")[0])


def read_said(said: Path, word: str) -> dict[int, float]:
    """Return when callers were told a word, by the attempt's number."""
    lines = [line.split(" ", 3) for line in said.read_text().splitlines()]
    return {int(number): float(at_s) for what, number, at_s, *_ in lines if what == word}
