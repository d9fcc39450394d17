"""FOCUS' own validator, and the rules that it judges version 1.4 by.

Release 2.2.1 of the validator has the rules of 1.2 alone, and no release has rules of 1.4. So its
rules of 1.2 are rewritten for what 1.4 changed in Cost and Usage: two columns have other names.
What else 1.4 asks for is tested beside it, sentence by sentence.
"""

import hashlib
import json
import re
import shutil
import subprocess
from pathlib import Path

# MUST NOT be null "when the charge is associated with an invoice": no condition is stated.
# MUST NOT be null "when CommitmentDiscountId is not null": the condition says when it is null.
IMPOSSIBLE = {"InvoiceId-C-005-C", "CommitmentDiscountStatus-C-004-C"}
FOLLOWING = {"CommitmentDiscountStatus-C-000-C", "CommitmentDiscountStatus-C-002-C"}
CRITERIA = (
    "ACCOUNT_NAMING_SUPPORTED", "COMMITMENT_DISCOUNT_SUPPORTED",
    "MULTIPLE_PRICING_CATEGORIES_SUPPORTED", "MULTIPLE_BILLING_ACCOUNT_TYPES_SUPPORTED",
    "NEGOTIATED_PRICING_SUPPORTED", "PUBLIC_PRICE_LIST_SUPPORTED", "USAGE_MEASUREMENT_SUPPORTED",
    "UNIT_PRICING_SUPPORTED", "SUB_ACCOUNT_SUPPORTED",
    "BILLING_BASED_ON_PROVISIONED_RESOURCES_SUPPORTED", "RESOURCE_TYPE_ASSIGNMENT_SUPPORTED",
    "PRICING_BILLING_CURRENCY_DIFFERENCES_SUPPORTED",
)  # fmt: skip
# What the validator had nothing against when it was last asked, by `digest_of`. It is a pinned
# program that answers the same bytes the same, and takes ten seconds for it.
ACCEPTED = {"424210ee9d671e400a414f3808e4ce07d2dc97b903bae9f207cd3e10f0490b8b"}
LOCK = Path(__file__).resolve().parents[1] / "focus.lock"
RENAMED = {"ProviderName": "ServiceProviderName", "PublisherName": "HostProviderName"}


def validate(python: Path, folder: Path, lines: list[str], version: str) -> tuple[set[str], int]:
    """The rules that failed, and how many passed. Its exit status says nothing."""
    file = folder / "focus.csv"
    file.write_text("".join(lines), encoding="utf-8", newline="")
    packages = python.parents[1] / "lib" / "python3.12" / "site-packages"  # where it looks
    rules = packages / "focus_validator" / "rules"
    if version == "1.4":
        rules = rules_of_1_4(rules, folder / "rules")
    command = [
        python.with_name("focus-validator"), "--data-file", file, "--validate-version", version,
        "--rule-set-path", rules, "--block-download",
        "--applicability-criteria", ",".join(CRITERIA),
    ]  # fmt: skip
    answer = subprocess.run(
        command, cwd=packages, check=False, capture_output=True, text=True, timeout=600
    )
    failed = re.findall(r"(\S+): FAIL\b", answer.stdout)
    passed = re.findall(r"(\S+): PASS\b", answer.stdout)
    assert passed, answer.stdout[-2000:] + answer.stderr[-2000:]
    return set(failed), len(passed)


def digest_of(lines: list[str], version: str) -> str:
    """Of all that its answer comes from: the file, the release, what it is asked and how."""
    files = (path.read_text(encoding="utf-8") for path in (LOCK, Path(__file__)))
    asked = re.sub(r"^ACCEPTED = .*$", "", "\n".join((version, *files)), flags=re.MULTILINE)
    return hashlib.sha256("".join((asked, *lines)).encode()).hexdigest()


def rules_of_1_4(rules: Path, folder: Path) -> Path:
    """Write the validator's rules as 1.4 has them; the folder."""
    folder.mkdir(exist_ok=True)
    shutil.copy(rules / "currency_codes.csv", folder)
    (newest,) = rules.glob("model-1.2*.json")
    text = newest.read_text(encoding="utf-8")
    for old, new in RENAMED.items():
        text = re.sub(rf"\b{old}\b", new, text)
    model = json.loads(text)
    model["Details"] = {"ModelVersion": "1.4", "FOCUSVersion": "1.4"}
    (folder / "model-1.4.json").write_text(json.dumps(model), encoding="utf-8")
    return folder
