"""The scenes beside this file, and the chaos suite's parts that they stand on, are found here."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "chaos")]
