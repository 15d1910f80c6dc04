"""The base class of messages: the public path."""

from __future__ import annotations

from local.bus.message import MAIN_RESPONDENT as MAIN_RESPONDENT
from local.bus.message import MAX_ARGUMENTS_DEPTH as MAX_ARGUMENTS_DEPTH
from local.bus.message import MAX_DEPTH as MAX_DEPTH
from local.bus.message import MAX_WHERE as MAX_WHERE
from local.bus.message import Data as Data
from local.bus.message import Delivery as Delivery
from local.bus.message import ErrorInfo as ErrorInfo
from local.bus.message import Message as Message
from local.bus.message import RespondentMessage as RespondentMessage
from local.bus.message import has_other_keys as has_other_keys
from local.bus.message import is_deeper as is_deeper
from local.bus.message import is_shallow as is_shallow
from local.bus.message import parse_object as parse_object
