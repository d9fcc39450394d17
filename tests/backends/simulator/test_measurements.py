"""Files of measured requests: runs by rate; what is wrong is told by line and column."""

import gzip

import pytest

from backends.simulator.measurements import MeasuredRequest, MeasurementError, read, summarise

HEAD = "offered_rate,start_s,input_tokens,output_tokens,ttft_s,e2e_s\n"


@pytest.fixture
def written(tmp_path):
    def write(text, name="bench.csv"):
        path = tmp_path / name
        path.write_bytes(gzip.compress(text.encode()) if name.endswith("gz") else text.encode())
        return path

    return write


@pytest.mark.parametrize("name", ["bench.csv", "bench.csv.gz"])
def test_runs_by_rate(written, name):
    runs = read(written(HEAD + "1,0,10,5,0.1,0.5\n2,0,10,5,0.1,0.5\n1,1,10,5,0.1,0.5\n", name))
    assert {rate: len(requests) for rate, requests in runs.items()} == {"1": 2, "2": 1}
    assert runs["1"][1] == MeasuredRequest(1.0, 10, 5, 0.1, 0.5)
    assert runs["1"][0].tpot_s == pytest.approx(0.1)


def test_a_file_without_rates_is_one_run(written):
    text = "timestamp_s,input_tokens,output_tokens,queue_s,ttft_s,e2e_s\n0,10,5,0.02,0.1,0.5\n"
    (run,) = read(written(text)).values()
    assert run[0].queue_s == 0.02
    assert summarise(run).prefill_s == pytest.approx(0.08)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "`start_s`, `input_tokens`, `output_tokens`, `ttft_s`, `e2e_s` are not there"),
        (HEAD, "no request"),
        ("start_s,input_tokens,output_tokens,ttft_s\n0,1,1,1\n", "`e2e_s` are not there"),
        (HEAD + "1,0,10,5,x,0.5\n", ":2: `ttft_s` is 'x'"),
        (HEAD + "1,0,10,5,0.6,0.5\n", ":2: a request has tokens"),
        (HEAD + "1,0,0,5,0.1,0.5\n", ":2: a request has tokens"),
    ],
)
def test_what_is_wrong_is_told(written, text, said):
    with pytest.raises(MeasurementError) as raised:
        read(written(text))
    assert said in str(raised.value)


def test_no_file(tmp_path):
    with pytest.raises(MeasurementError, match="No such file"):
        read(tmp_path / "none.csv")
