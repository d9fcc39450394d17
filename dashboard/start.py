"""Streamlit with all imports done before it listens: `python -m dashboard.start run ...`.

Imports take three quarters of the first view after a start. Streamlit reports healthy as soon as it
listens, so the process that waits for it also waits for the imports, and the first viewer does not.
"""

import gc
import sys
from importlib import import_module

from streamlit.web.cli import main as streamlit

# Modules that Streamlit and SQLAlchemy import on first use.
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
    """Import everything, then exempt it from the garbage collection of each page run."""
    for name in LATER:
        import_module(name)
    gc.freeze()


def main() -> None:
    import_ahead()
    sys.exit(streamlit())


if __name__ == "__main__":
    main()
