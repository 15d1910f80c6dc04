"""How questions begin and end, with or without a question mark, in the languages that we look at: one table."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Final

from local.services.classifying import grammar
from local.services.classifying.lexicon import is_of_health

_FILLER = (
    r"(?:(?:hey|hi|hello|ok(?:ay)?|so|and|but|well|also|then|please|und|aber|also|hallo|bitte|et|mais|alors|bonjour|y|pero"
    r"|hola|e|ma|ciao|mas|oi|olá|en|maar|а|и|но"
    r"|(?:please )?(?:remind|tell) me|sag mal|dis-moi|dime|dimmi|me diga|(?:quick )?question)\b[,:!.]?\s+)*"
)
_BEGINNINGS = (
    # English: a question word that no subject follows, or a verb before its subject
    r"(?:what|who|whom|whose|which|why|where)(?:['’]s)?\b(?!\s+(?:i|we|my|our|a)\b)",
    r"how\s+(?:do|does|did|is|are|am|was|were|can|could|should|will|would|have|has|many|much|old|far|long|often"
    r"|about"
    r"|come|tall|big|heavy)\b",
    r"when\s+(?:do|does|did|is|are|am|was|were|can|could|should|will|would|have|has)\b",
    r"(?:am|is|are|was|were|do|does|did|can|could|will|would|should|shall|may|might|must|(?:is|are|was|were|do|does"
    r"|did|ca|could|wo|would|should|have|has)n['’]t)\s+(?:i|my|we|our|you|your|he|she|they|it|there|this|that|these|those|the|a"
    r"|an|any(?:one|body)?|some(?:one|body)?)\b",
    r"(?:have|has|had)\s+(?:i|we|you|he|she|they|it|my|our)\b",
    r"(?:(?:please )?(?:remind|tell) me|i (?:forgot|wonder|can['’]t remember|don['’]t (?:know|remember)))"
    r" (?:what|who|where|when|why|how|which)\b",
    # German
    r"(?:wo|was|wer|wie|wann|warum|wieso|weshalb|welche[rsnm]?|woher|wohin|wessen|wem|wen|womit|worauf|wozu)\b"
    r"(?!\s+(?:ich|wir|mein\w*|unser\w*|gesagt|erwähnt|immer|du (?:weißt|siehst))\b)",
    r"(?:bin|ist|sind|war|habe?|hat|hast|kann|kannst|können|soll|sollte|sollen|muss|darf|mag|magst|will|werde|wird|weißt"
    r"|kennst|bist|wohne|lebe|heiße|trinke|esse|arbeite|spreche|nehme|brauche|mache|fahre|spiele|lerne|studiere|stimmt"
    r"|gibt)\s+(?:ich|mein\w*|wir|unser\w*|du|er|sie|es|das|der|die|man|ihr)\b",
    # French
    r"est-ce\b|qu['’]|(?:où|quand|comment|combien|pourquoi|quel(?:le)?s?|qui|que|quoi)\b(?! j['’]étais)",
    r"(?!rendez)[\w’']+-(?:t-)?(?:je|tu|il|elle|on|nous|vous|ils|elles|ce)\b",
    # Spanish
    r"¿|(?:dónde|adónde|qué|quién(?:es)?|cuál(?:es)?|cuándo|cómo|cuánt[oa]s?|por qué|donde (?:vivo|trabajo|está|nací)"
    r"|cual(?:es)? (?:es|son)|quien(?:es)? (?:es|soy)|cuant[oa]s?|como (?:me|se|te|es|está)|que (?:edad"
    r"|\w+ (?:tengo|soy|hablo|me)))\b",
    # Italian
    r"(?:dove|cosa|che cosa|chi|quale?|quali|quanto|quant[aie]|perché|come (?:mi|si|ti|è|sta|faccio)|quando (?:è|sono"
    r"|ho|devo|posso)|che (?:lingu\w+|lavoro|età|macchina|tipo))\b",
    # Portuguese
    r"(?:onde|qual|quais|quem|quant[oa]s?|por que|o que|como (?:é|eu|me|se|está|posso)|quando (?:é|eu|vou|posso)|que"
    r" (?:língu\w+|carro|idade))\b",
    # Dutch, Scandinavian, Russian, Polish
    r"(?:waar|wat|hoe|wanneer|waarom|welke?)\b(?!\s+ik\b)|(?:ben|heb|heeft|kan|kun|mag|moet|woon|weet)\s+(?:ik|mijn|je|jij"
    r"|u|hij|zij|we|het)\b",
    r"(?:var|vad|vem|hur|när|varför|vilken|hva|hvor|hvem|är (?:jag|min|mitt)|er (?:jeg|min|mitt))\b",
    r"(?:где|что|кто|как|когда|почему|как(?:ой|ая|ие)|сколько|куда|откуда|зачем|разве|неужели|gdzie|kto|jak|kiedy|dlaczego"
    r"|jak(?:i|a|ie)|ile|czy)\b",
)
_ANYWHERE = (
    r"[?？]\W*$",
    r"吗\W*$|呢\W*$|哪[里儿个些]|(?<!没)什么(?!都)|谁|几[个点岁]|多少|怎么|为什么|是不是|有没有|能不能|会不会|(?P<a>\w)不(?P=a)",
    r"[すたるいだん]か\W*$|か[なしら]+\W*$|どこ(?!も)|何(?![かも])|誰(?![かも])|いつ(?![かも])|なぜ|どうやって",
    r"\boù\b(?!\s+(?:je|j['’]|il|elle|on|nous|vous|ils|mes?|ma|mon|la|le|les|que)\b)",
    r"っけ\W*$",
    r"까\W*$|나요\W*$|어디|무엇|누구|언제",
)
ASKS: Final = re.compile(rf"^{_FILLER}(?:{'|'.join(_BEGINNINGS)})|{'|'.join(_ANYWHERE)}", re.IGNORECASE)
_PARTS: Final = re.compile(
    r"[,;:–—()，；：、]| - |(?<!\w)(?=(?:because|now that|given that|seeing that|since i|as i|while i|weil"
    r"|da (?:ich|wir|mein\w*)|parce que|puisque|vu que|ya que|dado que|siccome|dato che|visto che|já que|omdat)(?!\w)"
    r"|(?:porque|perché) (?:soy|tengo|sono|ho|sou|tenho)(?!\w))|(?=因为)",
    re.IGNORECASE,
)
_SPEAKS: Final = re.compile(
    rf"\W*{_FILLER}(?:(?:because|now that|given that|seeing that|since|while|as|comme|como|weil|da|parce que|puisque"
    rf"|vu que|ya que|dado que|siccome|dato che|visto che|já que|porque|perché|omdat)(?!\w)|因为)?\W*"
    rf"(?:{grammar.SELF}|{grammar.VERB_I}|{grammar.MINE}|{grammar.ELLIPSIS}|{grammar.AS_A})",
    re.IGNORECASE,
)
_ENDS: Final = re.compile(r"[?？]\W*$")
_SPEAKS_LAST: Final = re.compile(r"(?:ですが|ますが|けど|けれど|ので|から)\W*$")  # Japanese needs no subject
_INVERTED: Final = re.compile(
    rf"\W*{_FILLER}(?:am|are|do|did|can|could|will|would|should|shall|may|must)\s+(?:i|we|you|my|our)\b", re.IGNORECASE
)
# A question that is only whether what was said is so.
_TAG: Final = re.compile(
    rf"\W*{_FILLER}(?:(?:or|oder|ou|o(?! que)|还是).*|right|correct|true|yes|no|ok(?:ay)?|eh|huh|innit"
    r"|is(?:n['’]t)? (?:it|that|this)(?: (?:right|correct|true|so|not))?"
    r"|(?:am|are|do|did|was|were|have|had|can|will|would|ai|wo|is|does)(?:n['’]t)? "
    r"(?:i|we|it|my|you)(?: (?:not|know|remember|agree|think))?|nicht(?: wahr)?|stimmt(?:['’]?s| das)?|richtig|ne|gell"
    r"|n['’]est-ce pas|non|pas vrai|c['’]est (?:ça|vrai|correct|juste)|verdad|cierto|no es (?:verdad|cierto|así)|vero"
    r"|giusto|certo|è vero|né|não é|é verdade|.{0,3}(?:对|是)(?:的)?(?:吗|吧)|.{0,2}对不对|.{0,2}是不是|没错吧"
    r"|(?:そう|本当|正しい)?(?:です)?(?:よね|でしょうか?|か)|合ってますか)\W*",
    re.IGNORECASE,
)


def is_asked(text: str, at: int) -> bool:
    """Whether what stands at a place of a sentence is asked: the sentence asks, or that part of it, and it is no
    statement of the user's beside a question about something else: "I am diabetic, may I eat this?"."""
    ends = [0, *(found.end() for found in _PARTS.finditer(text)), len(text)]
    parts = [text[start:end] for start, end in pairwise(ends)]
    number = sum(end <= at for end in ends[1:-1])
    if number and _INVERTED.match(parts[number]) and not _TAG.fullmatch(parts[number]):
        return True
    if not ASKS.search(text.strip()):
        return False
    others = parts[number + 1 :]
    if is_of_health(parts[number]) and not _ENDS.search(text):
        others += parts[:number]
    if _is_a_reason(parts[number]):
        others += [f"{part}?" for part in parts[:number]] if _ENDS.search(text) else parts[:number]
    return not (_is_stated(parts[number]) and any(map(_asks_more, others)))


def _is_stated(part: str) -> bool:
    speaks = _SPEAKS.match(part) or _SPEAKS_LAST.search(part)
    return speaks is not None and not ASKS.search(part.strip(" ?？") if _is_a_reason(part) else part.strip())


def _is_a_reason(part: str) -> bool:
    return _PARTS.match(part.strip()) is not None


def _asks_more(part: str) -> bool:
    is_long = len(part.split()) >= 3 or len(re.findall(r"[\u3040-\u30ff\u3400-\u9fff]", part)) >= 4
    return is_long and ASKS.search(part.strip()) is not None and not _TAG.fullmatch(part)
