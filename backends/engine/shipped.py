"""The small model that a first start serves, trained on Python's documentation to answer in words.

Its recipe stands beside it (`backends/engine/training`). It is loaded where it lies.
"""

from pathlib import Path

DIRECTORY = Path(__file__).parent / "training" / "model"
CONTEXT_TOKENS = 4096
