"""Build of the documentation site: `python -m deploy.docsite.build`, or `make docs`.

MkDocs runs in its own environment (`deploy/docs.lock`). The site also has each page as Markdown
next to its HTML, and `llms.txt` lists the pages for programs.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from deploy import parts
from deploy.docsite.staging import PAGES_FOLDER, ROOT, SitePages, navigation, title_of

SITE: Final = ROOT / "build" / "site"
OWN_FILES: Final = ("extra.css", "worker_shim.js")  # in this folder; copied into the site
# The theme's plugin for pages opened from disk would load this script from the network.
REMOTE_SHIM: Final = "https://unpkg.com/iframe-worker/shim"
SUMMARY: Final = (
    "> A gateway that runs your own GPUs and the external APIs as one fleet, and a ledger that "
    "states what each request cost."
)


def build(python: Path, pages: Path = PAGES_FOLDER, site: Path = SITE) -> str:
    """Build the site with this interpreter's environment. Return what MkDocs printed.

    Raises: `SiteError` for broken links; `CalledProcessError` when MkDocs reports an error.
    """
    shutil.rmtree(pages, ignore_errors=True)
    staging = SitePages()
    staging.write(pages)
    for name in OWN_FILES:
        shutil.copyfile(Path(__file__).with_name(name), pages / name)
    config = pages.with_suffix(".yml")
    config.write_text(config_text(pages, site), encoding="utf-8")
    answer = subprocess.run(
        [str(python), "-m", "mkdocs", "build", "--strict", "--config-file", str(config)],
        check=False, capture_output=True, text=True, cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )  # fmt: skip
    told = answer.stdout + answer.stderr
    if answer.returncode:
        raise subprocess.CalledProcessError(answer.returncode, "mkdocs", told)
    for page in site.rglob("*.html"):
        _load_own_shim(page, site)
    for place in staging.sources:
        (site / place).parent.mkdir(parents=True, exist_ok=True)
        (site / place).write_text(staging.page(place), encoding="utf-8")
    (site / "llms.txt").write_text("\n".join(index_lines(staging)) + "\n", encoding="utf-8")
    return told


def index_lines(staging: SitePages) -> Iterator[str]:
    """Yield the lines of `llms.txt`: every page with its title and address, by part."""
    yield from ("# Breakeven", "", SUMMARY)
    for part, pages in navigation():
        yield from ("", f"## {part}", "")
        for place in pages:
            yield f"- [{title_of(staging.page(place))}]({place})"


def _load_own_shim(page: Path, site: Path) -> None:
    """Replace the only script that a page would load from the network by our copy."""
    own = f"{'../' * len(page.relative_to(site).parent.parts)}worker_shim.js"
    text = page.read_text(encoding="utf-8")
    page.write_text(text.replace(REMOTE_SHIM, own), encoding="utf-8")


def config_text(pages: Path, site: Path) -> str:
    """Return the MkDocs configuration for these folders."""
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    text = text.replace("docs_dir: build/site-pages", f"docs_dir: {pages}")
    return text.replace("site_dir: build/site", f"site_dir: {site}")


def main() -> int:
    """Build the site. Return exit status 1 if the build fails."""
    python = parts.find_docs()
    if python is None:
        print("MkDocs is not installed: make parts", file=sys.stderr)
        return 1
    try:
        told = build(python)
    except subprocess.CalledProcessError as error:
        print(error.output, file=sys.stderr)
        return 1
    print(f"{told}{SITE.relative_to(ROOT)}/index.html".strip())
    return 0


if __name__ == "__main__":
    sys.exit(main())
