"""What the writer leaves is read back; where none ran there is nothing."""

from ledger.writing.lag import WriterLag, read_lag, write_lag


def test_the_last_word_is_read(tmp_path):
    assert read_lag(tmp_path) is None
    for backlog in (4096, 0):
        lag = WriterLag(backlog_bytes=backlog, applied_us=7, away=bool(backlog), quarantined=2)
        write_lag(tmp_path, lag)
        assert read_lag(tmp_path) == lag
    assert [path.name for path in tmp_path.iterdir()] == ["ledger.json"]
