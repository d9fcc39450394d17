"""The benches' modules are no package: here the tests find them, behind everything else."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))
