"""Streamlit with all imports of the pages before it answers: `python -m dashboard.start run ...`.

Imports are three quarters of what a first view after a start takes. Streamlit says that it is
healthy as soon as it listens, so whoever waits for that waits for them, and not the first viewer.
"""

import gc
import sys
from importlib import import_module

from streamlit.web.cli import main as streamlit

# What Streamlit and SQLAlchemy import when it is first of use.
LATER = (
    "altair",
    "pandas",
    "psycopg",
    "pyarrow",
    "sqlalchemy.dialects.postgresql.psycopg",
    "sqlalchemy.dialects.sqlite",
    "streamlit.elements.lib.built_in_chart_utils",
    "streamlit.elements.vega_charts",
    "dashboard.navigation",
)


def import_ahead() -> None:
    """All imports, none of which is garbage: each run of a page would look for some in them."""
    for name in LATER:
        import_module(name)
    gc.freeze()


def main() -> None:
    import_ahead()
    sys.exit(streamlit())


if __name__ == "__main__":
    main()
