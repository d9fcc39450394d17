"""What Cohere's own SDK makes of the gateway's rankings, by both versions of its API: as JSON.

python rank_checks.py        reads BASE_URL (without a version) and API_KEY
"""

import json
import os
import traceback
from importlib.metadata import version

import cohere

DOCUMENTS = ["the engine runs hot", "a ledger adds up", "engine and ledger"]
GIVEN = {"api_key": os.environ["API_KEY"], "base_url": os.environ["BASE_URL"]}
ASK = {"model": "rank", "query": "engine ledger", "documents": DOCUMENTS, "top_n": 2}


def second() -> dict:
    return told(cohere.ClientV2(**GIVEN).rerank(**ASK))


def first() -> dict:
    return told(cohere.Client(**GIVEN).rerank(**ASK, return_documents=True))


def not_ranked() -> dict:
    try:
        cohere.ClientV2(**GIVEN).rerank(**{**ASK, "model": "chat"})
    except cohere.core.ApiError as error:
        return {"status": error.status_code, "error": error.body["error"]}
    return {}


def told(answer) -> dict:
    return {
        "indexes": [result.index for result in answer.results],
        "scores": [result.relevance_score for result in answer.results],
    }


def main() -> None:
    found = {"sdk": version("cohere")}
    for check in (second, first, not_ranked):
        try:
            found[check.__name__] = check()
        except Exception:  # noqa: BLE001  (one broken check must not hide the others)
            found[check.__name__] = {"failed": traceback.format_exc()[-1500:]}
    print(json.dumps(found))


main()
