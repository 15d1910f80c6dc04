"""Messages of the memory: the public path."""

from __future__ import annotations

from local.memory.messages import OWNER as OWNER
from local.memory.messages import RECALLED as RECALLED
from local.memory.messages import ChangeRecord as ChangeRecord
from local.memory.messages import EditRecord as EditRecord
from local.memory.messages import EngramRecord as EngramRecord
from local.memory.messages import EntryRecord as EntryRecord
from local.memory.messages import FactRecord as FactRecord
from local.memory.messages import MemoryAnnotated as MemoryAnnotated
from local.memory.messages import MemoryClassified as MemoryClassified
from local.memory.messages import MemoryDeleted as MemoryDeleted
from local.memory.messages import MemoryIngested as MemoryIngested
from local.memory.messages import MemoryRequest as MemoryRequest
from local.memory.messages import MemoryResult as MemoryResult
from local.memory.messages import MemoryVerb as MemoryVerb
from local.memory.messages import OutcomeRecord as OutcomeRecord
from local.memory.messages import OutdatedFact as OutdatedFact
from local.memory.messages import RecalledEngram as RecalledEngram
from local.memory.messages import UserFacts as UserFacts
