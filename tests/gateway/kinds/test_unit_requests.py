"""Rerankings and transcriptions over real sockets: relayed as they are, booked as counted."""

import httpx
import pytest
from sqlalchemy import text

from backends.engine import silence
from backends.simulator import asgi
from ledger.verify.checks import verify

RERANK, SOUND = "/v1/rerank", "/v1/audio/transcriptions"
DOCUMENTS = ["the engine runs hot", "a ledger adds up", "engine and ledger"]
GPU = {"type": "H200", "usd_per_hour": "3.50", "source": "test"}
SEARCH_PUSD, SECOND_PUSD = 2_000_000_000, 100_000_000  # cohere/rerank-v3.5, openai/whisper-1


def with_kinds(found: dict, ports: dict[str, int]) -> None:
    """Pools and providers that rank and that hear, beside those that chat."""
    engine = found["pools"]["main"]["engine"]
    for name, kind in (("rank", "rerank"), ("hear", "transcription")):
        found["pools"][name] = {"engine": {**engine, "kinds": [kind]}, "gpu": GPU}
    away = {**engine, "kinds": ["rerank"], "endpoints": ["http://127.0.0.1:9/v1"]}
    found["pools"]["away"] = {"engine": away, "gpu": GPU}
    prices = {
        "cohere": ("rerank", "cohere/rerank-v3.5", "v2"),
        "voyage": ("rerank", "voyage/rerank-2.5", "v1"),
        "whisper": ("transcription", "openai/whisper-1", "v1"),
        "openai4o": ("transcription", "openai/gpt-4o-transcribe", "v1"),
    }
    for name, (kind, priced, version) in prices.items():
        found["providers"][name] = {
            "base_url": f"http://127.0.0.1:{ports['alpha']}/{version}",
            "simulated": True,
            "prices_as": priced,
            "kinds": [kind],
        }
    ranked, heard = ["cohere/rerank-v3.5", "voyage/rerank-2.5"], ["openai/whisper-1"]
    found["models"] |= {
        "rank": {"targets": ["pool:rank"], "compare_with": ranked},
        "rank-api": {"targets": ["cohere/m"], "compare_with": ranked},
        "rank-tokens": {"targets": ["voyage/m"], "compare_with": ranked},
        "rank-both": {"targets": ["pool:rank", "cohere/m"], "compare_with": ranked},
        "rank-spilled": {"targets": ["pool:away", "cohere/m"], "compare_with": ranked},
        "rank-inside": {
            "targets": ["pool:away"], "residency": "internal_only", "compare_with": ranked,
        },
        "hear": {
            "targets": ["pool:hear"],
            "compare_with": [*heard, "openai/gpt-4o-transcribe", "gemini/gemini-3.5-transcribe"],
        },
        "hear-api": {"targets": ["whisper/whisper-1"], "compare_with": heard},
        "hear-tokens": {"targets": ["openai4o/gpt-4o-transcribe"], "compare_with": heard},
    }  # fmt: skip


@pytest.fixture(scope="module")
def stack(running, patiently, tmp_path_factory):
    budgets = [
        {"scope": "team:poor", "usd": "0.001", "hard": True},
        {"scope": "team:tight", "usd": "0.0012", "hard": True},
        {"scope": "team:rich", "usd": 10, "hard": True},
    ]
    folder = tmp_path_factory.mktemp("host")
    with running(folder, adjust=with_kinds, budgets=budgets) as found:
        seats = enumerate(found.runtime.engines)
        rows = [row for row, seat in seats if seat.pool in ("rank", "hear")]
        patiently(lambda: all(found.board.published(row)[10] for row in rows), 60)
        yield found


@pytest.fixture
def bodies(monkeypatch) -> list[bytes]:
    """What the simulated servers were sent, as they read it."""
    seen: list[bytes] = []
    read = asgi.read_body

    async def kept(receive):
        seen.append(await read(receive))
        return seen[-1]

    monkeypatch.setattr(asgi, "read_body", kept)
    return seen


def compared(stack, attempt_id: str) -> dict[str, int]:
    query = text("SELECT comparator, cost_pusd FROM compared WHERE attempt_id = :id")
    with stack.reader.connect() as connection:
        return {row[0]: row[1] for row in connection.execute(query, {"id": attempt_id})}


def sound(stack, model: str, data: bytes | None = None, token=None, **fields) -> httpx.Response:
    """As a client sends it: `data` is the file's content, a second of silence without it."""
    return stack.client.post(
        stack.url + fields.pop("path", SOUND),
        data={"model": model, **fields},
        files={"file": ("speech.wav", silence.wav(1.0) if data is None else data, "audio/wav")},
        headers=stack.headers(token),
    )


def test_a_ranking_of_an_own_engine_is_relayed_and_booked(stack) -> None:
    body = {"model": "rank", "query": "engine ledger", "documents": DOCUMENTS, "top_n": 2}
    answer = stack.post(RERANK, body)
    assert answer.status_code == 200, answer.text
    document = answer.json()
    assert [result["index"] for result in document["results"]] == [2, 0]
    (row,) = stack.settled(answer)
    assert (row["kind"], row["status"], row["basis"]) == ("rerank", "finished", "reported")
    assert row["input_tokens"] == document["usage"]["total_tokens"] > 0
    assert (row["output_tokens"], row["searches"], row["stream"]) == (0, 0, 0)
    assert row["engine_us"] > 0
    assert row["cost_pusd"] > 0
    assert row["target"] == answer.headers["x-breakeven-backend"] == "pool:rank/0"
    assert answer.headers["x-breakeven-decision"].startswith("own:only")
    elsewhere = compared(stack, row["attempt_id"])
    assert elsewhere["cohere/rerank-v3.5"] == SEARCH_PUSD  # one search, which no engine counts
    assert elsewhere["voyage/rerank-2.5"] == 50_000 * row["input_tokens"]


@pytest.mark.parametrize("path", ["/v1/rerank", "/v2/rerank", "/rerank"])
def test_a_ranking_is_billed_by_searches_where_the_target_bills_them(stack, path) -> None:
    documents = [f"document {place}" for place in range(101)]
    answer = stack.post(path, {"model": "rank-api", "query": "q", "documents": documents})
    assert answer.json()["meta"]["billed_units"] == {"search_units": 2}
    (row,) = stack.settled(answer)
    assert (row["searches"], row["input_tokens"], row["basis"]) == (2, 0, "reported")
    assert row["cost_pusd"] == 2 * SEARCH_PUSD <= row["bound_pusd"]
    assert float(answer.headers["x-breakeven-cost-usd"]) == 0.004


def test_a_ranking_is_billed_by_tokens_where_the_price_is_by_tokens(stack) -> None:
    body = {"model": "rank-tokens", "query": "engine", "documents": [{"text": "one"}, "two"]}
    answer = stack.post(RERANK, body)
    (row,) = stack.settled(answer)
    assert row["input_tokens"] == answer.json()["usage"]["total_tokens"]
    assert row["cost_pusd"] == 50_000 * row["input_tokens"] <= row["bound_pusd"]


def test_bytes_of_a_ranking_arrive_as_they_were_sent(stack, bodies) -> None:
    """Numbers, escapes and members that nobody here knows keep their spelling."""
    text = (
        b'{"query":"caf\\u00e9 \\/","documents":["\xc3\xa9",{"text":"b","x":1.50}],'
        b'"rank_fields":["text"], "max_tokens_per_doc":4096.0,"model":"rank-api"}'
    )
    headers = {**stack.headers(), "content-type": "application/json"}
    answer = stack.client.post(stack.url + "/v2/rerank", content=text, headers=headers)
    assert answer.status_code == 200, answer.text
    seen = bodies[-1]
    for kept in (b'"caf\\u00e9 \\/"', b'["\xc3\xa9",{"text":"b","x":1.50}]', b"4096.0"):
        assert kept in seen
    assert b'"model":"m"' in seen


@pytest.mark.parametrize(
    ("change", "param", "words"),
    [
        ({"model": None}, "model", "`model` is required"),
        ({"query": None}, "query", "`query` is required"),
        ({"query": ["a"]}, "query", "`query` is required"),
        ({"documents": None}, "documents", "`documents` is required"),
        ({"documents": []}, "documents", "`documents` is required"),
        ({"documents": "one"}, "documents", "`documents`"),
        ({"documents": ["x"] * 10_001}, "documents", "may have 10000"),
        ({"top_n": "two"}, "top_n", "`top_n`"),
        ({"top_n": -1}, "top_n", "`top_n` must not be negative"),
        ({"query": {"content": [{"type": "image_embeds"}]}}, "query", "`image_embeds`"),
        ({"documents": [{"content": [{"image_embeds": "AA"}]}]}, "documents", "`image_embeds`"),
        ({"documents": [{"content": [{"image_url": None, "uuid": "x"}]}]}, "documents", "`uuid`"),
    ],
)
def test_what_a_ranking_lacks_is_named(stack, change, param, words) -> None:
    answer = stack.post(RERANK, {"model": "rank", "query": "q", "documents": ["d"], **change})
    error = answer.json()["error"]
    assert (answer.status_code, error["param"]) == (400, param)
    assert words in error["message"]


def test_a_target_of_another_kind_is_filtered_with_its_reason(stack) -> None:
    body = {"model": "own", "query": "q", "documents": ["d"]}
    refused = stack.post(RERANK, body)
    assert refused.status_code == 400
    assert "Name a model that serves this path" in refused.json()["error"]["message"]
    assert stack.chat("rank").status_code == 400
    assert sound(stack, "own").status_code == 400


def test_a_ranking_spills_from_its_pool_to_an_api_and_stays_inside_when_told(stack) -> None:
    body = {"query": "q", "documents": ["d"]}
    spilled = stack.post(RERANK, {"model": "rank-spilled", **body})
    assert spilled.headers["x-breakeven-backend"] == "cohere/m"
    (row,) = stack.settled(spilled)
    assert (row["backend"], row["spill_reason"]) == ("api", "unhealthy")
    confined = stack.key("confined", residency="internal_only").token
    for model, token in (("rank-inside", None), ("rank-spilled", confined)):
        kept = stack.post(RERANK, {"model": model, **body}, token)
        assert kept.status_code == 503, kept.text
    inside = stack.post(RERANK, {"model": "rank-both", **body}, confined)
    assert inside.headers["x-breakeven-backend"] == "pool:rank/0"  # the control


def test_documents_are_read_one_by_one(stack) -> None:
    """Together far beyond the engine's context, each within it."""
    documents = ["word " * 2000] * 40
    answer = stack.post(RERANK, {"model": "rank", "query": "word", "documents": documents})
    assert answer.status_code == 200, answer.text
    together = answer.json()["usage"]["total_tokens"]
    longest = stack.post(RERANK, {"model": "rank", "query": "q", "documents": ["w " * 400_000]})
    assert together > 90_000
    assert longest.status_code == 400  # the control: one that does not fit
    error = longest.json()["error"]
    assert (error["code"], error["param"]) == ("context_length_exceeded", "documents")


def test_an_engine_is_sent_no_address_to_fetch(stack) -> None:
    """It stands inside the network: what a document points at is not fetched from there."""
    part = {"type": "image_url", "image_url": {"url": "http://169.254.169.254/latest"}}
    body = {"model": "rank", "query": "q", "documents": [{"content": [part]}]}
    error = stack.post(RERANK, body).json()["error"]
    assert (error["code"], error["param"]) == ("unsupported_parameter", "documents")


def test_a_hold_bounds_what_a_ranking_may_cost(stack) -> None:
    """A search is $0.002: a budget of $0.001 never pays for one, and says which it was."""
    body = {"model": "rank-api", "query": "q", "documents": ["d"]}
    refused = stack.post(RERANK, body, stack.key("poor", team="poor").token)
    assert (refused.status_code, refused.json()["error"]["code"]) == (429, "budget_exceeded")
    assert "team:poor" in refused.json()["error"]["message"]
    assert stack.post(RERANK, body, stack.key("rich", team="rich").token).status_code == 200


def test_pictures_among_documents_are_held_for(stack) -> None:
    """5,000 tokens each at $0.05 a million: five are more than $0.001, one is not."""
    part = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
    token = stack.key("pictures", team="poor").token
    for shown, status in ((5, 429), (1, 200)):
        body = {
            "model": "rank-tokens",
            "query": "q",
            "documents": [{"text": "t", "content": [part]}] * shown,
        }
        assert stack.post(RERANK, body, token).status_code == status


@pytest.mark.parametrize(
    ("model", "shape", "media"),
    [
        ("hear", "json", "application/json"),
        ("hear-api", "json", "application/json"),
        ("hear-api", "verbose_json", "application/json"),
        ("hear-api", "text", "text/plain; charset=utf-8"),
        ("hear-api", "srt", "text/plain; charset=utf-8"),
        ("hear-api", "vtt", "text/plain; charset=utf-8"),
    ],
)
def test_a_transcript_is_relayed_as_it_is_and_paid_by_the_second(
    stack, model, shape, media
) -> None:
    answer = sound(stack, model, silence.wav(2.5), response_format=shape, language="en")
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == media
    assert "[simulated]" in answer.text
    (row,) = stack.settled(answer)
    counted = "json" in shape
    assert (row["kind"], row["status"]) == ("transcription", "finished")
    assert row["basis"] == ("reported" if counted else "estimated")
    seconds = 3 if counted else 2.5  # whole ones where the target counts, else as the file tells
    assert row["audio_ms"] == seconds * 1000
    if model == "hear-api":
        assert row["cost_pusd"] == seconds * SECOND_PUSD <= row["bound_pusd"]
    else:
        assert row["engine_us"] > 0
        elsewhere = compared(stack, row["attempt_id"])
        assert elsewhere["openai/whisper-1"] == 3 * SECOND_PUSD
        assert elsewhere["openai/gpt-4o-transcribe"] == 3 * SECOND_PUSD  # as its price says
        assert elsewhere["gemini/gemini-3.5-transcribe"] >= 2_000_000 * 25  # by tokens, guessed


MULAW_MINUTE = b"\x7f" * 480_000
HEAD = "524946464453070057415645666d74201000000007000100401f0000401f0000"
DATA = "6461746100530700"


@pytest.mark.parametrize(
    "head",
    [
        HEAD + "0100f8ff" + DATA,  # 65,528 bits a sample
        HEAD + "01000800666d7420100000000700ffffffffffff401f00000100f8ff" + DATA,  # two formats
        HEAD + "01000800" + "6461746110000000",  # 16 bytes of sound
    ],
)
def test_a_head_that_lies_makes_no_sound_shorter(stack, head) -> None:
    answer = sound(stack, "hear-api", bytes.fromhex(head) + MULAW_MINUTE, response_format="text")
    assert answer.status_code == 200, answer.text
    (row,) = stack.settled(answer)
    assert row["bound_pusd"] >= 61 * SECOND_PUSD
    assert (row["basis"], row["audio_ms"]) == ("estimated", 60_000)
    assert row["cost_pusd"] == 60 * SECOND_PUSD


def test_a_transcript_is_paid_by_tokens_where_the_answer_counts_them(stack) -> None:
    answer = sound(stack, "hear-tokens", silence.wav(2.0))
    usage = answer.json()["usage"]
    (row,) = stack.settled(answer)
    assert (row["audio_input_tokens"], row["output_tokens"]) == (20, usage["output_tokens"])
    assert row["cost_pusd"] == 20 * 2_500_000 + usage["output_tokens"] * 10_000_000
    assert (row["basis"], row["audio_ms"]) == ("reported", 2000)
    assert row["cost_pusd"] <= row["bound_pusd"]


def test_every_byte_of_a_form_arrives_but_the_models_name(stack, bodies) -> None:
    boundary = "----WebKitFormBoundary7MA4YWxkTrZu0gW"
    data = silence.wav(0.1) + bytes(range(256)) + b"\r\n--no-boundary\r\n"
    form = (
        f'--{boundary}\r\nContent-Disposition: form-data; name="model"\r\n\r\nhear-api\r\n'
        f'--{boundary}\r\ncontent-disposition:form-data;name="file"; filename="a b.wav"\r\n'
        "Content-Type: audio/x-wav\r\nX-Odd: 1\r\n\r\n"
    ).encode() + data + (
        f'\r\n--{boundary}\r\nContent-Disposition: form-data; name="temperature"\r\n\r\n0.20\r\n'
        f'--{boundary}\r\nContent-Disposition: form-data; name="vllm_xargs"\r\n\r\n{{}}\r\n'
        f"--{boundary}--\r\n"
    ).encode()  # fmt: skip
    kind = f"multipart/form-data; boundary={boundary}"
    answer = stack.client.post(
        stack.url + SOUND, content=form, headers={**stack.headers(), "content-type": kind}
    )
    assert answer.status_code == 200, answer.text
    cut = form.index(b"--" + boundary.encode() + b'\r\nContent-Disposition: form-data; name="vllm')
    end = form.index(b"--" + boundary.encode() + b"--")
    expected = (form[:cut] + form[end:]).replace(b"\r\n\r\nhear-api\r\n", b"\r\n\r\nwhisper-1\r\n")
    seen = bodies[-1]
    assert seen == expected


def test_a_stream_is_relayed_and_its_end_is_paid_for(stack, events_of) -> None:
    answer = sound(stack, "hear-tokens", silence.wav(2.0), stream="true")
    assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
    *deltas, done, last = events_of(answer.content)
    assert {delta["type"] for delta in deltas} == {"transcript.text.delta"}
    assert "".join(delta["delta"] for delta in deltas) == done["text"]
    assert (done["type"], last) == ("transcript.text.done", "[DONE]")
    (row,) = stack.settled(answer)
    assert (row["stream"], row["basis"]) == (1, "reported")
    assert row["audio_input_tokens"] == done["usage"]["input_tokens"]
    assert row["ttft_us"] > 0


def test_an_engines_stream_of_chunks_is_relayed(stack, events_of) -> None:
    answer = sound(stack, "hear", stream="true", stream_include_usage="true")
    *chunks, usage, last = events_of(answer.content)
    assert {chunk["object"] for chunk in chunks} == {"transcription.chunk"}
    assert (usage["choices"], last) == ([], "[DONE]")
    (row,) = stack.settled(answer)
    assert row["output_tokens"] == usage["usage"]["completion_tokens"]


def test_a_target_that_knows_no_streams_answers_whole(stack) -> None:
    answer = sound(stack, "hear-api", stream="true")
    assert answer.headers["content-type"] == "application/json"
    assert answer.json()["usage"] == {"type": "duration", "seconds": 1}
    (row,) = stack.settled(answer)
    assert row["cost_pusd"] == SECOND_PUSD


def test_a_stream_that_breaks_off_ends_with_one_error_and_is_booked_at_its_most(
    stack, events_of
) -> None:
    stack.fault("alpha", fault="cut", after_tokens=2)
    try:
        answer = sound(stack, "hear-tokens", stream="true")
    finally:
        stack.forgive("alpha")
    *deltas, error = events_of(answer.content)
    assert len(deltas) == 2
    assert error["error"]["code"] == "upstream_error"
    (row,) = stack.settled(answer)
    assert (row["status"], row["basis"]) == ("upstream_error", "bound")
    assert 0 < row["cost_pusd"] <= row["bound_pusd"]


def test_a_translation_goes_to_its_own_path(stack) -> None:
    answer = sound(stack, "hear", path="/v1/audio/translations")
    assert answer.status_code == 200
    assert stack.settled(answer)[0]["kind"] == "transcription"


def test_a_hold_bounds_what_sound_may_cost(stack) -> None:
    """$0.0012 pay for ten seconds and their rounding, and never for twenty."""
    token = stack.key("tight", team="tight").token
    refused = sound(stack, "hear-api", silence.wav(20.0), token)
    assert refused.status_code == 429
    assert sound(stack, "hear-api", silence.wav(10.0), token).status_code == 200
    # No head tells how long this is: so many bytes may be 90 seconds of speech.
    opaque = b"\x1a\x45\xdf\xa3" + bytes(66_000)
    assert sound(stack, "hear-api", opaque, stack.key("t2", team="tight").token).status_code == 429


@pytest.mark.parametrize(
    ("fields", "file", "param", "words"),
    [
        ({}, True, "model", "`model` is required"),
        ({"model": "hear"}, False, "file", "`file` is required"),
        ({"model": "hear", "stream": "maybe"}, True, "stream", "`true` or `false`"),
        ({"model": "hear", "use_beam_search": "true", "n": "999"}, True, "use_beam_search", "each"),
    ],
)
def test_what_a_form_lacks_is_named(stack, fields, file, param, words) -> None:
    files = {"file": ("a.wav", silence.wav(0.1))} if file else {"other": ("a.wav", b"x")}
    answer = stack.client.post(stack.url + SOUND, data=fields, files=files, headers=stack.headers())
    error = answer.json()["error"]
    assert (answer.status_code, error["param"]) == (400, param)
    assert words in error["message"]


def test_what_a_target_refuses_costs_nothing_anywhere(stack) -> None:
    answer = sound(stack, "hear", response_format="pdf")
    assert answer.status_code == 400
    (row,) = stack.settled(answer)
    assert (row["status"], row["cost_pusd"], row["audio_ms"]) == ("rejected", 0, 0)
    assert set(compared(stack, row["attempt_id"]).values()) == {0}


def test_another_content_type_is_told_what_to_send(stack) -> None:
    as_json = stack.post(SOUND, {"model": "hear"})
    assert as_json.status_code == 415
    assert "multipart/form-data" in as_json.json()["error"]["message"]
    as_text = stack.client.post(
        stack.url + SOUND, content=b"x", headers={**stack.headers(), "content-type": "audio/wav"}
    )
    assert as_text.status_code == 415
    as_form = stack.client.post(
        stack.url + RERANK, files={"file": ("a", b"x")}, headers=stack.headers()
    )
    assert as_form.status_code == 415
    assert "application/json" in as_form.json()["error"]["message"]


def test_the_books_verify_after_all_that(stack) -> None:
    assert {"rerank", "transcription"} <= {row["kind"] for row in stack.rows()}
    with stack.reader.connect() as connection:
        found = verify(connection)
    assert found.findings == ()
