"""What targets say in words of their own: no usage, errors without that member, a spent account."""

import threading
from base64 import b64decode

import pytest

from backends.vectors import pack_answer
from gateway.kinds import embedding

WHOLE = b'{"model":"m","choices":[{"index":0,"message":{"content":"so"},"finish_reason":"stop"}]}'
STREAM = (
    b'data: {"choices":[{"index":0,"delta":{"content":"so"},"finish_reason":"stop"}]}\n\n'
    b"data: [DONE]\n\n"
)
ASKED = {"model": "api", "max_tokens": 20, "messages": [{"role": "user", "content": "hi"}]}
FULL = b"HTTP/1.1 429 Full\r\n"
QUOTA = b'{"error":{"message":"no","type":"%b","param":null,"code":"%b"}}'
NO_MONEY = b"insufficient_quota"


@pytest.mark.parametrize("stream", [True, False])
def test_usage_that_nobody_reported_is_told_as_booked(faulty, rule, answers, stream) -> None:
    """Anthropic's SDK puts the last figures in place of the first: they were zeros."""
    answer = answers.stream(STREAM) if stream else answers.whole(WHOLE)
    faulty.alpha.rule = rule(answer=answer)
    told = faulty.stack.post("/v1/messages", {**ASKED, "stream": stream})
    (row,) = faulty.stack.settled(told)
    assert row["input_tokens"] > 0 < row["output_tokens"]
    assert f'"input_tokens":{row["input_tokens"]},' in told.text
    assert f'"output_tokens":{row["output_tokens"]}}}' in told.text.rpartition("usage")[2]


@pytest.mark.parametrize("usage", [b"", b'"usage":null,'])
def test_embeddings_without_usage_say_what_was_booked_and_that_it_is_an_estimate(
    faulty, rule, answers, usage
) -> None:
    """LiteLLM's answers of Gemini count nothing, and OpenAI's clients read `usage` of each."""
    vectors = b'{%b"object":"list","data":[{"index":0,"embedding":[0.5]}],"model":"m"}' % usage
    faulty.alpha.rule = rule(answer=answers.whole(vectors))
    told = faulty.stack.post("/v1/embeddings", {"model": "api", "input": "some words"})
    (row,) = faulty.stack.settled(told)
    booked = row["input_tokens"]
    assert (row["basis"], told.headers["x-breakeven-tokens"]) == ("estimated", "estimated")
    assert told.json()["usage"] == {"prompt_tokens": booked, "total_tokens": booked}
    assert booked > 0


@pytest.mark.parametrize("form", ["base64", "float", None])
def test_vectors_come_in_the_encoding_that_was_asked_for(faulty, rule, answers, form) -> None:
    """OpenAI's Node client asks for base64, and reads numbers as other vectors, silently."""
    vectors = (
        b'{"object":"list","data":[{"index":0,"embedding":[0.5,-1.25]}],"model":"m",'
        b'"usage":{"prompt_tokens":2,"total_tokens":2}}'
    )
    faulty.alpha.rule = rule(answer=answers.whole(vectors))
    asked = {"model": "api", "input": "some words", "encoding_format": form}
    told = faulty.stack.post("/v1/embeddings", asked)
    (item,) = told.json()["data"]
    assert item["embedding"] == ("AAAAPwAAoL8=" if form == "base64" else [0.5, -1.25])
    assert told.json()["usage"] == {"prompt_tokens": 2, "total_tokens": 2}
    assert (told.content == vectors) is (form != "base64")


def test_a_large_answer_is_converted_beside_the_loop(faulty, rule, answers, monkeypatch) -> None:
    """Two thousand vectors on the loop would delay every stream."""
    threads = []

    def note(body: bytes) -> bytes:
        threads.append(threading.current_thread().name)
        return pack_answer(body)

    monkeypatch.setattr(embedding, "pack_answer", note)
    for count in (1, 20_000):
        item = b'{"index":0,"embedding":[%b]}' % b",".join([b"0.25"] * count)
        usage = b'"usage":{"prompt_tokens":2,"total_tokens":2}'
        whole = b'{"object":"list","data":[%b],"model":"m",%b}' % (item, usage)
        faulty.alpha.rule = rule(answer=answers.whole(whole))
        asked = {"model": "api", "input": "some words", "encoding_format": "base64"}
        (told,) = faulty.stack.post("/v1/embeddings", asked).json()["data"]
        assert len(b64decode(told["embedding"])) == 4 * count
    assert threads[0] != threads[1]


def test_only_usage_of_the_target_goes_without_the_word_estimated(faulty, rule, answers) -> None:
    usage = b',"usage":{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11}}'
    told = []
    for answer in (WHOLE, WHOLE[:-1] + usage):
        faulty.alpha.rule = rule(answer=answers.whole(answer))
        got = faulty.stack.post("/v1/chat/completions", ASKED)
        told.append((got.content == answer, got.headers.get("x-breakeven-tokens")))
    assert told == [(True, "estimated"), (True, None)]


@pytest.mark.parametrize(
    "said",
    [
        b'data: {"object":"error","message":"boom","code":500}\n\ndata: [DONE]\n\n',
        b'event: error\ndata: {"message":"boom"}\n\ndata: [DONE]\n\n',
        b": working\n\ndata: [DONE]\n\n",
        b"data: [DONE]\n\n",
    ],
)
def test_a_stream_without_an_answer_is_no_answer(faulty, rule, answers, said) -> None:
    faulty.alpha.rule = rule(answer=answers.stream(said))
    told = faulty.stack.chat("api", max_tokens=20, stream=True)
    (row,) = faulty.stack.settled(told)
    assert row["status"] == "upstream_error"
    assert '"code":"upstream_error"' in told.text
    assert "[DONE]" not in told.text
    assert "boom" not in told.text


def test_part_of_a_second_is_a_second_to_wait(faulty, rule, answers) -> None:
    limited = FULL + b"retry-after-ms: 2300\r\n"
    faulty.alpha.rule = rule(answer=answers.whole(QUOTA % (b"t", b"c"), limited))
    faulty.forget()
    told = faulty.stack.chat("api", max_tokens=20)
    assert (told.status_code, told.headers["retry-after"]) == (503, "3")


@pytest.mark.parametrize("words", [(NO_MONEY, NO_MONEY), (NO_MONEY, b"x")])
def test_an_account_that_is_spent_is_not_a_full_target(faulty, rule, answers, words) -> None:
    """No wait helps, and it is not the client's account; `x` is the negative control."""
    faulty.alpha.rule = rule(answer=answers.whole(QUOTA % words, FULL + b"retry-after: 1\r\n"))
    faulty.forget()
    told = faulty.stack.chat("api", max_tokens=20)
    (row,) = faulty.stack.settled(told)
    spent = words[1] == NO_MONEY
    kind = "refused_credentials" if spent else "overloaded"
    assert (told.status_code, row["error"]) == (502 if spent else 503, kind)
    assert ("retry-after" in told.headers) is not spent
    assert row["cost_pusd"] == 0


@pytest.mark.parametrize("model", ["own", "api"])
@pytest.mark.parametrize(
    "said", [b'data: {"error":{"message":"no","code":"full"}}\n\n', b"data: [\n\n"]
)
def test_an_error_behind_words_is_told_at_once(faulty_with, rule, answers, model, said) -> None:
    """A target that stays open behind it has said all: its client waited for `idle_s`."""
    faulty = faulty_with(server={"timeouts": {"idle_s": 3, "drain_s": 1}})
    words = b"data: {%b}\n\n" % (answers.CHOICE % "so").encode()
    chunk = b"%x\r\n%b\r\n" % (len(words + said), words + said)
    head = answers.HEAD + b"transfer-encoding: chunked\r\n\r\n"
    told = faulty.ask(model, rule(answer=head + chunk, after_bytes=10**6), stream=True)
    (row,) = faulty.stack.settled(told)
    assert (row["status"], row["error"]) == ("upstream_error", "upstream_broken")
    assert told.content.startswith(words)
    assert b'"code":"upstream_error"' in told.content
