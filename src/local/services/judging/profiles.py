"""The kinds of judges that there are, by the names that `critic.yaml` knows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from local.services.judging import generic_json, prometheus2, selene
from local.services.judging.prompt import Profile

ProfileName = Literal["prometheus2", "selene", "generic-json"]

PROFILES: Mapping[ProfileName, Profile] = {
    "prometheus2": Profile(prometheus2.absolute, prometheus2.relative, prometheus2.read_score, prometheus2.read_winner),
    "selene": Profile(selene.absolute, selene.relative, selene.read_score, selene.read_winner),
    "generic-json": Profile(
        generic_json.absolute, generic_json.relative, generic_json.read_score, generic_json.read_winner
    ),
}
