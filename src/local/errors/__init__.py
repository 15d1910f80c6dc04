"""Every exception that we raise on purpose: one base, children named for the fact, in a file for each part."""

from __future__ import annotations

from local.errors.base import ConfigError as ConfigError
from local.errors.base import LocalError as LocalError
from local.errors.bus import BadBusAddress as BadBusAddress
from local.errors.bus import BlobNotStored as BlobNotStored
from local.errors.bus import BusClosed as BusClosed
from local.errors.bus import BusNotReady as BusNotReady
from local.errors.bus import FrameTooLarge as FrameTooLarge
from local.errors.bus import JournalFull as JournalFull
from local.errors.bus import MalformedFrame as MalformedFrame
from local.errors.bus import NoJournal as NoJournal
from local.errors.bus import NotConfirmed as NotConfirmed
from local.errors.bus import PublishTimeout as PublishTimeout
from local.errors.bus import RequestTimeout as RequestTimeout
from local.errors.bus import UnsendableMessage as UnsendableMessage
from local.errors.bus import UnsupportedVersion as UnsupportedVersion
from local.errors.models import ContextTooLarge as ContextTooLarge
from local.errors.models import ModelBusy as ModelBusy
from local.errors.models import ModelError as ModelError
from local.errors.runtime import AlreadyRunning as AlreadyRunning
from local.errors.runtime import HandedBack as HandedBack
from local.errors.runtime import IllegalTransition as IllegalTransition
from local.errors.runtime import StartFailed as StartFailed
from local.errors.runtime import UnknownConsumer as UnknownConsumer
from local.errors.runtime import UnknownParticipant as UnknownParticipant
from local.errors.stores import AttachmentMissing as AttachmentMissing
from local.errors.stores import AttachmentRefused as AttachmentRefused
from local.errors.stores import IndexBroken as IndexBroken
from local.errors.stores import NotOnRecord as NotOnRecord
from local.errors.stores import PinRefused as PinRefused
from local.errors.stores import RecordNotRedacted as RecordNotRedacted
from local.errors.stores import RecordUnreadable as RecordUnreadable
from local.errors.stores import SessionInUse as SessionInUse
from local.errors.stores import StoreDamaged as StoreDamaged
from local.errors.stores import StoreFailed as StoreFailed
from local.errors.stores import StoreFenced as StoreFenced
from local.errors.stores import StoreFull as StoreFull
from local.errors.stores import StoreLocked as StoreLocked
from local.errors.stores import StoreReadOnly as StoreReadOnly
from local.errors.stores import StoreUnwritable as StoreUnwritable
from local.errors.stores import UntrustedFact as UntrustedFact
from local.errors.tools import FetchRefused as FetchRefused
from local.errors.tools import SearchUnavailable as SearchUnavailable
from local.errors.tools import ToolError as ToolError
