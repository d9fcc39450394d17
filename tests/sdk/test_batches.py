"""OpenAI's own clients give work away as batches, unchanged; every line is in the books."""

LABEL = "[simulated]:"
QUERY = "SELECT * FROM attempts WHERE request_id = :id AND settled_us IS NOT NULL"


def test_files(batches_told: dict) -> None:
    assert batches_told["file"]["object"] == "file"
    assert batches_told["file"]["purpose"] == "batch"
    assert batches_told["file"]["bytes"] > 400
    assert batches_told["retrieved"] is True
    assert batches_told["names"] is True
    assert batches_told["deleted"] is True
    assert batches_told["gone"]["raised"] == "NotFoundError"


def test_a_batch_runs_to_its_end(batches_told: dict, gateway) -> None:
    assert batches_told["made"] == {"status": "validating", "object": "batch"}
    done = batches_told["done"]
    assert (done["status"], done["metadata"]) == ("completed", {"job": "x"})
    assert done["counts"] == {"total": 3, "completed": 2, "failed": 1}
    assert [line["custom_id"] for line in batches_told["output"]] == ["a", "b"]
    for line in batches_told["output"]:
        body = line["response"]["body"]
        assert body["choices"][0]["message"]["content"].startswith(LABEL)
        (row,) = gateway.until(
            lambda item=line: gateway.rows(QUERY, id=item["response"]["request_id"]), 10
        )
        assert (row["team_id"], row["backend"]) == (batches_told["team"], "own")
        assert row["output_tokens"] == body["usage"]["completion_tokens"]
    (bad,) = batches_told["errors"]
    assert (bad["custom_id"], bad["response"]["status_code"]) == ("bad", 400)
    assert bad["response"]["body"]["error"]["param"] == "n"


def test_faults_and_cancelling(batches_told: dict) -> None:
    assert batches_told["failed"] == {
        "status": "failed", "errors": [[2, "duplicate_custom_id"], [3, "model_not_found"]],
    }  # fmt: skip
    asked, became = batches_told["cancelled"]
    assert asked in ("cancelling", "cancelled")
    assert became == "cancelled"


def test_pages_are_walked_by_the_sdk(batches_told: dict) -> None:
    assert batches_told["pages"] == [3, 3, True]


def test_another_team_finds_nothing(batches_told: dict) -> None:
    assert [item["raised"] for item in batches_told["other"]] == ["NotFoundError"] * 2
    assert [item["code"] for item in batches_told["other"]] == ["file_not_found", "batch_not_found"]
