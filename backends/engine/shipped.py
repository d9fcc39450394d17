"""Path of the small model that a first start serves, trained on Python's documentation.

The code that trained it is in `backends/engine/training`. The model is loaded from the package.
"""

from pathlib import Path

DIRECTORY = Path(__file__).parent / "training" / "model"
CONTEXT_TOKENS = 4096
