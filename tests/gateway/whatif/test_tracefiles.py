"""Published forms and our own are read as they are; what is wrong is told by line and column."""

import gzip
from pathlib import Path

import pytest

from gateway.whatif.tracefiles import WEEK_US, TraceError, read_trace

TRACES = Path(__file__).resolve().parents[4] / "shared" / "traces"
FORMS = {
    "ours": "timestamp_s,input_tokens,output_tokens,model,team,max_tokens,"
    "prefix_block_hashes_512tok\n3.5,700,20,chat,search,100,7 8\n2.5,600,10,,,,\n",
    "Azure": "TIMESTAMP,ContextTokens,GeneratedTokens\n"
    "2023-11-16 18:15:47.6805900,700,20\n2023-11-16 18:15:46.6805900,600,10\n",
    "BurstGPT": "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
    "6,GPT-4,700,20,720,API log\n5,ChatGPT,600,10,610,API log\n5,ChatGPT,40,0,40,API log\n",
    "Mooncake": '{"timestamp": 2000, "input_length": 700, "output_length": 20, "hash_ids": [7, 8]}'
    '\n\n{"timestamp": 1000, "input_length": 600, "output_length": 10, "hash_ids": []}\n',
    "ledger": "opened_at,model,team_id,input_tokens,output_tokens\n"
    "2026-11-02T00:00:01.000000Z,chat,search,700,20\n"
    "2026-11-02T00:00:00.000000Z,chat,search,600,10\n",
}


@pytest.fixture
def written(tmp_path):
    def write(text: str, name: str = "trace.csv") -> Path:
        path = tmp_path / name
        if name.endswith(".gz"):
            path.write_bytes(gzip.compress(text.encode()))
        else:
            path.write_text(text)
        return path

    return write


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["trace", "trace.gz"])
def test_each_form_is_known_by_its_columns(written, form, name) -> None:
    found = read_trace(written(FORMS[form], name))
    assert found.form == form
    assert [
        (arrival.at_s, arrival.prompt_tokens, arrival.output_tokens) for arrival in found.arrivals
    ] == [
        (0.0, 600, 10),
        (pytest.approx(1.0), 700, 20),
    ]
    assert found.left_out == (form == "BurstGPT")
    assert found.arrivals[1].prefix == ((7, 8) if form in ("ours", "Mooncake") else ())
    assert len(read_trace(written(FORMS[form], name), most=1).arrivals) == 1


def test_names_and_limits_of_our_own(written) -> None:
    first, second = read_trace(written(FORMS["ours"])).arrivals
    assert (first.model, first.tenant, first.max_tokens) == ("", "", None)
    assert (second.model, second.tenant, second.max_tokens) == ("chat", "search", 100)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        ("timestamp_s,input_tokens,output_tokens\n", "no request"),
        ("a,b\n1,2\n", "give it the columns `timestamp_s`, `input_tokens` and `output_tokens`"),
        ("timestamp_s,input_tokens,tokens\n1,2,3\n", "a trace as ours has also `output_tokens`"),
        ("timestamp_s,input_tokens,output_tokens\n1,9,9\nx,9,9\n", ":3: `timestamp_s` is 'x'"),
        ("timestamp_s,input_tokens,output_tokens\nnan,9,9\n", ":2: `timestamp_s` is 'nan'"),
        ("timestamp_s,input_tokens,output_tokens\n1,9.5,9\n", ":2: `input_tokens` is '9.5'"),
        ("timestamp_s,input_tokens,output_tokens\n1,9,-1\n", ":2: `output_tokens` is '-1'"),
        ("timestamp_s,input_tokens,output_tokens\n1,9,0\n", "none of its 1 rows"),
        ("TIMESTAMP,ContextTokens,GeneratedTokens\nnoon,1,2\n", "not an ISO time"),
        ('{"timestamp_s": 1}\n', "has also `input_tokens`, `output_tokens`"),
        ('{"timestamp_s": 1,\n', ":1: not JSON"),
        ('{"timestamp": 1, "input_length": 5, "output_length": 5, "hash_ids": "x"}\n', "hash_ids"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(written, text, said) -> None:
    with pytest.raises(TraceError) as raised:
        read_trace(written(text))
    assert said in str(raised.value)
    assert "trace.csv" in str(raised.value)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("2026-11-01 00:00:00 UTC", "2026-11-01 00:00:01.500 UTC"),
        ("2026-11-01T01:00:00+0100", "2026-10-31 19:00:01.5000000-05:00"),
        ("2026-11-01", "2026-11-01t00:00:01.500000000z"),
    ],
)
def test_times_are_instants_however_they_are_written(written, first, second) -> None:
    text = f"TIMESTAMP,ContextTokens,GeneratedTokens\n{first},1,2\n{second},1,2\n"
    assert [arrival.at_s for arrival in read_trace(written(text)).arrivals] == [0.0, 1.5]


def test_no_file_and_no_text(tmp_path, written) -> None:
    with pytest.raises(TraceError, match="No such file"):
        read_trace(tmp_path / "none.csv")
    path = tmp_path / "latin.csv"
    path.write_bytes("timestamp_s,\xe9".encode("latin-1"))
    with pytest.raises(TraceError, match="not UTF-8"):
        read_trace(path)
    path = tmp_path / "half.gz"
    path.write_bytes(gzip.compress(FORMS["ours"].encode())[:-9])
    with pytest.raises(TraceError, match=r"half\.gz"):
        read_trace(path)


def test_the_recorded_traces_are_read() -> None:
    if not TRACES.is_dir():
        pytest.skip(f"recorded traces are not here: {TRACES.name} in ../shared")
    code = read_trace(TRACES / "azure2023_code.csv.gz")
    assert (code.form, len(code.arrivals), code.left_out) == ("ours", 8819, 0)
    mooncake = read_trace(TRACES / "mooncake_fast25_synthetic.csv.gz", most=50)
    assert len(mooncake.arrivals[0].prefix) == 79


def test_a_file_that_tells_its_times_keeps_the_hours_of_its_week(written) -> None:
    """Its prices are today's: it begins at the latest such hour of such a weekday."""
    now_us = 1_795_613_600 * 10**6  # Wednesday 2026-11-25 13:33:20 UTC
    hour_us = 3600 * 10**6
    thursday = read_trace(written(FORMS["Azure"])).start_us(now_us)  # 2023-11-16 18:15:46
    assert 0 <= now_us - thursday < WEEK_US
    assert (thursday // hour_us) % 24 == 18
    assert (thursday // (24 * hour_us) + 3) % 7 == 3  # the epoch was a Thursday
    epoch = "timestamp_s,input_tokens,output_tokens\n1795526000,700,20\n"
    assert read_trace(written(epoch)).start_us(now_us) == 1795526000 * 10**6
    assert read_trace(written(FORMS["ours"])).start_us(now_us) == now_us  # from whenever
