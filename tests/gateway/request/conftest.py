"""The cases that several files here build attempts with."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
