"""The kinds of judges that there are, by the names that `critic.yaml` knows: how each is asked and understood."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from local.services.judging.generic_json import GenericJson
from local.services.judging.prometheus2 import Prometheus2
from local.services.judging.prompt import Profile
from local.services.judging.selene import Selene

ProfileName = Literal["prometheus2", "selene", "generic-json"]

PROFILES: Mapping[ProfileName, Profile] = {
    "prometheus2": Prometheus2(),
    "selene": Selene(),
    "generic-json": GenericJson(),
}
