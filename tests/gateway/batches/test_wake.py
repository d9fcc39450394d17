"""A bell is heard once, by everyone who listens, and not what rang before."""

import os

from gateway.batches.wake import WAKE_FILE, Bell, wake


def test_it_is_heard_once_by_each(tmp_path) -> None:
    bells = [Bell(tmp_path), Bell(tmp_path)]
    assert [bell.rang() for bell in bells] == [False, False]
    wake(tmp_path)
    assert [bell.rang() for bell in bells] == [True, True]
    assert [bell.rang() for bell in bells] == [False, False]
    assert not Bell(tmp_path).rang()
    os.utime(tmp_path / WAKE_FILE, ns=(1, 1))
    assert bells[0].rang()
