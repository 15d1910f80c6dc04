"""Benchmarks: every figure beside its baseline, both measured in the same run. No part of the product."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2]))  # for `tests`

from tests.stand_in.use import use_in_systems

use_in_systems()
