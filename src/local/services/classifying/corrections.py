"""How users put right what they said before, or have only just said: two tables."""

from __future__ import annotations

import re
from typing import Final

# Before and behind what something else is put in the place of: "Tino, not Timo".
INSTEAD_OF: Final = re.compile(
    r"(?:(?<!\w)(?:not|nicht|pas|no|non|não|niet|instead of|rather than|anstatt|statt)\s+"
    r"(?:(?:an?|the|in|to|at|ein\w*|gegen|une?|de|du|à|al?|una|en|em|um|uma|een)\s+)?|不是)$",
    re.IGNORECASE,
)
CLOSED: Final = re.compile(
    r"\s*(?:(?:now|actually|instead|then|jetzt|maintenant|ahora|ora|agora)\s*)?(?:[,.;:!。，！)]|$)"
)
# Before what is said anew: "Sorry, it's on the 5th".
CORRECTS: Final = re.compile(
    r"\W*(?:(?:(?:no|nope|sorry|correction|actually|i meant?|wait|nein|korrektur|entschuldigung|ich meinte?|non|pardon"
    r"|en fait|je voulais dire|perdón|quise decir|scusa|volevo dire|anzi|desculpa|quis dizer)(?!\w)"
    r"|不对|不是|我是说|いや|違います)\W*)+"
    r"(?:(?:(?:it|that|this)(?:['’]s| is| was| may be| might be| should be)|(?:es|das|er|sie) (?:ist|war)"
    r"|c['’](?:est|était)|es|está|era|è|é|是)(?!\w))?\W*(?:(?:in|at|on|the|an?|el|la|le|il|o|am|im|der|die|das|den|à|en|em|de)\s+){0,2}",
    re.IGNORECASE,
)
# What stands right behind a word that is put right, and after it the right one.
PUT_RIGHT: Final = re.compile(
    r"\s*[,.;–—-]+\s*(?:no|no wait|sorry|pardon|i meant?|wait|rather|oops|make that|correction|nein|quatsch|ich meine"
    r"|non|enfin|je veux dire|perdón|digo|quiero decir|scusa|anzi|desculpa|quer dizer)\s*[,:–—-]*\s+"
    r"(?:(?:in|at|on|from|to|am|im|à|en|a|em|de)\s+)?(?=(?P<digit>\d)|(?P<capital>(?-i:[A-ZÀ-ÖØ-Þ])(?!\s|['’])))"
    r"|，(?:不对|不是)，",
    re.IGNORECASE,
)
