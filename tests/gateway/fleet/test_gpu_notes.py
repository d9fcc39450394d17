"""Notes about GPUs: read as they were written, and gone once they are forgotten."""

from pathlib import Path

from backends.engine.gpu_status import GpuStatus
from gateway.fleet.gpu_notes import GpuNote, forget_gpus, read_gpu_note, write_gpus


def test_a_note_is_read_as_it_was_written_until_it_is_forgotten(tmp_path: Path) -> None:
    assert read_gpu_note(tmp_path) is None
    forget_gpus(tmp_path)  # nothing there: nothing to do
    note = GpuNote(7, [GpuStatus("0", 1, 2, None, ("thermal",)), GpuStatus("1", None, 2, 3, None)])
    write_gpus(tmp_path, note)
    assert read_gpu_note(tmp_path) == note
    forget_gpus(tmp_path)
    assert read_gpu_note(tmp_path) is None
