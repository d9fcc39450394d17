"""What the official openai SDK's admin resources see; prints one JSON object, check by check.

Run by the SDK's own interpreter, with nothing of the gateway's code.
"""

import json
import os
import sys
import time

import openai
from openai import OpenAI

SINCE = int(time.time()) - 3_600
client = OpenAI(api_key=os.environ["OPENAI_API_KEY"], admin_api_key=os.environ["OPENAI_ADMIN_KEY"])
usage = client.admin.organization.usage


def completions() -> dict:
    page = usage.completions(
        start_time=SINCE,
        bucket_width="1h",
        group_by=["model", "project_id"],
        models=["chat", "spilled"],
        project_ids=[os.environ["TEAM"]],
        limit=24,
    )
    results = [result for bucket in page.data for result in bucket.results]
    return {
        "types": sorted({type(result).__name__ for result in results}),
        "page": (page.object, page.has_more, page.next_page),
        "requests": sum(result.num_model_requests for result in results),
        "tokens": [
            sum(result.input_tokens for result in results),
            sum(result.output_tokens for result in results),
        ],
        "models": sorted({result.model for result in results}),
        "projects": sorted({result.project_id for result in results}),
    }


def pages() -> dict:
    """By the minute, ten at a time, following the cursors."""
    starts, tokens, page = [], 0, None
    while True:
        more = {} if page is None else {"page": page}
        found = usage.completions(start_time=SINCE, bucket_width="1m", limit=10, **more)
        starts += [bucket.start_time for bucket in found.data]
        tokens += sum(result.output_tokens for bucket in found.data for result in bucket.results)
        page = found.next_page
        if not found.has_more:
            return {
                "buckets": len(starts),
                "ascending": starts == sorted(set(starts)),
                "tokens": tokens,
            }


def embeddings() -> dict:
    page = usage.embeddings(start_time=SINCE, bucket_width="1h")
    results = [result for bucket in page.data for result in bucket.results]
    return {
        "tokens": sum(result.input_tokens for result in results),
        "types": sorted({type(result).__name__ for result in results}),
    }


def costs() -> dict:
    page = usage.costs(
        start_time=SINCE,
        bucket_width="1d",
        group_by=["line_item"],
        project_ids=[os.environ["TEAM"]],
    )
    results = [result for bucket in page.data for result in bucket.results]
    return {
        "items": sorted({result.line_item for result in results}),
        "usd": sum(result.amount.value for result in results),
        "currencies": sorted({result.amount.currency for result in results}),
        "types": sorted({type(result).__name__ for result in results}),
    }


def refused() -> dict:
    other = OpenAI(api_key="x", admin_api_key=os.environ["OPENAI_API_KEY"], max_retries=0)
    try:
        other.admin.organization.usage.costs(start_time=SINCE)
    except openai.PermissionDeniedError as error:
        return {"raised": type(error).__name__, "status": error.status_code, "code": error.code}
    return {"raised": None}


def ask() -> dict:
    for _ in range(2):
        client.chat.completions.create(
            model="spilled", messages=[{"role": "user", "content": "hello"}], max_tokens=6
        )
    client.embeddings.create(model="embed", input="hello there")
    return {}


def main() -> None:
    checks = {"ask": [ask], "look": [completions, pages, embeddings, costs, refused]}
    told = {check.__name__: check() for check in checks[sys.argv[1]]}
    print(json.dumps({"sdk": openai.__version__, **told}))


main()
