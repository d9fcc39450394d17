"""The modules `written_*` beside this file are no tests: here the tests find them."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
