"""The dashboard: `python -m dashboard.start run dashboard/app.py`; also run by `serve`.

Finance and SRE use it to see whether own GPUs pay for themselves. It reads the ledger named by
`BREAKEVEN_LEDGER_URL` (or `-- --ledger URL`) and writes nothing there: changes go through the
gateway (`dashboard.admin_client`). Pages refresh by themselves.
"""

import gc
import sys
from pathlib import Path

import streamlit as st

from dashboard import theme

ICON = Path(__file__).with_name("icon.svg")  # an icon by name would be fetched from the internet


def main() -> None:
    st.set_page_config(page_title="Breakeven", page_icon=str(ICON), layout="wide")
    st.set_option("client.toolbarMode", "viewer")  # no button that deploys to a cloud
    theme.style()
    waiting = st.empty()
    first = "dashboard.navigation" not in sys.modules
    if first:
        waiting.title("Opening the books ...", anchor=False)
    from dashboard import navigation  # noqa: PLC0415  (takes a second: something is on the screen first)

    if first:  # Streamlit collects all garbage after each run: what was imported is never any
        gc.freeze()
    waiting.empty()
    navigation.run()


main()
