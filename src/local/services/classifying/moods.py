"""How a sentence can be meant otherwise than as a statement of what is: tables, no decisions; see `grammar`."""

from __future__ import annotations

import re
from typing import Final

from local.services.classifying.grammar import either

REMEMBER: Final = either(
    r"""
(?:please |kindly |and |so |also |ok,? |you should |(?:can|could|will|would) you (?:please )?
|i want you to |let['’]?s )*remember|(?:please|take) note|note (?:that
|to self)|make a note|keep in mind|don['’]?t forget
|do not forget|for the record|for future reference|merke? dir|bitte merken|merken sie sich|denk daran
|vergiss (?:bitte )?nicht|notiere?|zur erinnerung|retiens|retenez|souviens-toi|souvenez-vous
|n['’]oublie(?:z)? pas|note(?:z)? que|recuerda|recuerde|no olvides|no te olvides|anota|apunta|ten en cuenta
|ricorda(?:ti)?|non dimenticare|tieni a mente|annota|prendi nota|lembra|lembre-se|não (?:te )?esque\w+|onthoud
|vergeet niet|kom ihåg|husk|запомни\w*|не забудь|zapamiętaj|pamiętaj
""",
    "记住|记得|别忘了|不要忘记|请记|覚えて(?!い)|忘れないで|기억해",
)
FORGET: Final = either(
    r"""
(?:please )?forget|delete|erase|vergiss|lösche?|oublie[zr]?|efface[zr]?|supprime[zr]?|olvida|olvide|borra|borre
|elimina|dimentica|cancella|esquece|esqueça|apaga|apague|vergeet|wis|забудь|удали|zapomnij|glöm
""",
    "忘れて(?!い)|消して|削除して|忘记(?!了)|忘掉|删除|删掉|잊어",
)
NOT: Final = either(
    r"""
\w+n['’]t|cannot|not|never|neither|nor|no longer|nobody|nothing|nicht|kein\w{0,2}|nie|niemals|weder
|(?:i|we|you|they) dont|(?:does|did|ca|wo|is|was|have|has|are)nt|n['’]\w+.{0,40}?(?:pas|plus|jamais)
|ne .{0,40}?(?:pas|plus|jamais)|pas|no|nunca|jamás|tampoco|ya no|non|(?:ho|sono|abbiamo) mai|mai \w+[aiu]to|não
|nem|já não|niet|geen|nooit|inte|aldrig|ikke|aldri|не|нет|никогда|nie
""",
    "(?<!要)(?<!差)不(?!错|过(?!敏)|但|仅|只|好意思|同|久)|没|未|别(?!忘)|ません|ない(?!で)|なく"
    "|ず(?=[、。])|않|못|안 ",
)
WITHOUT: Final = re.compile(
    r"(?<!\w)(?:without|ohne|sans|sin|senza|sem|zonder|без|bez|utan|uten)\s+(?:\w+\s+)?$|无$", re.IGNORECASE
)
NOT_ONLY: Final = either(
    r"not (?:only|just|to mention)|no doubt|why not|nicht nur|non seulement"
    r"|no s[oó]lo|non solo|não só|niet alleen|не только",
    "不仅|不但|不只|だけで(?:は)?なく",
)
# In Portuguese this is "in the", not "no".
IN_THE: Final = either("no")
PORTUGUESE: Final = either(
    r"""
(?-i:[Ee]u)|meus?|minhas?|nossos?|nossas?|sou|tenho|moro|moramos|trabalho|estou|nasci|falo|estudo|faço|gosto|uso|jogo
|fui|anos?|mês|ao|não|(?:vivo|vivemos|fico|ando) no
"""
)
ENDED: Final = either(
    r"""
used to|i (?:thought|believed) (?:that )?(?:i|we) (?:was|were|had)
|no longer|any ?more|formerly|previously|once was|until (?:last|recently|\d)|früher|ehemals|damals
|nicht mehr|ne .{0,40}?plus|autrefois|avant je|antes|solía|ya no|una volta|un tempo|prima abitavo|antigamente
|já não|vroeger|niet meer|раньше|больше не|kiedyś|as a (?:child|kid|student|boy|girl)|when i was|als kind
|quand j['’]étais|cuando era|da bambin[oa]|quando er[ao]
""",
    "以前|曾经|过去|昔は|かつて|以前は|小时候",
)
# What somebody does who gives up what they had: past tenses and the verbs of ending, which have no other sense.
PAST: Final = either(
    r"""
\w{2,}ed|sold|left|quit|broke|gave|given|lost|threw|thrown|got rid|stop|stopp\w+|went|came|died|gone|over
|switch\w*|took|became|split|swapped|cut|let go|put down|out of|done with
|through with|rid of|stole|stolen|burnt|ran away|was|were|had|did|used
|single again|single now
|unemployed|widow\w*|ex|chang\w+|sworn off|ge\w+(?:t|en)|ver\w+t|ver\w+en|\w+ge\w+(?:t|en)|aufgehört|war|hatte
|wurde|verlor|verließ|vorbei|arbeitslos|getrennt|gekündigt|(?:ai|a|as|avons|ont|suis|est
|sommes) (?:\w+ ){0,2}?\w+(?:é|ée|és|ées|i|is|u|us|ue|it|ise)|(?:ai|a|avons) (?:\w+ ){0,2}?\w+|célibataire
|arrêt\w+|\w+(?:ais|ait|ions|aient)|(?:he|ha|hemos|han) \w+(?:ado|ido|to|cho)|\w+(?:é|aste|ó|amos|imos|aron
|ieron|aba|ía)|dejé|vendí|rompí|perdí|fui|fue|solter[oa]|(?:ho|ha|abbiamo|sono|è|siamo) (?:\w+ ){0,2}?\w+(?:ato
|ata|ati|uto|uta|ito|iti|ita|so|sso|rso|sto)|smesso|single|\w+(?:avo|evo|ivo)|(?:eu|nós)? ?\w+(?:ei|ou|ava|eu
|iu)|vendi|perdi|deixei|parei|terminamos|solteir[oa]|ge\w+|verkocht|gestopt|\w+л(?:а|и|ся|ась|ись)?|\w+(?:łem
|łam|liśmy)|sålde|slutade|solgte|sluttet
""",
    "了|过|掉|离开|分手|离婚|辞职|戒|停|卖|た(?=[。、！!\\s]|$|の|け|ん|が)|だ(?=[。、]|$)(?<=んだ)|ました|でした|やめ|別れ|辞め|離婚|売|았|었|했|끊",
)
# Of these verbs each says by itself that what one had is over.
PARTED: Final = either(
    r"""
sold|quit|broke up|split up|cancell?ed|gave (?:it |them )?(?:up|away)|given up|lost|got rid of|stopped|died
|passed away|divorced|moved out of|moved away from|verkauft|gekündigt|getrennt|geschieden|aufgegeben|aufgehört
|verloren|gestorben|weggezogen|vendu\w*|rompu|quitté\w*|divorcé\w*|arrêté\w*|perdu\w*|mort\w*|vend(?:í|imos)
|rompimos|terminamos|dejé|perdí|cancelé|murió|venduto|lasciat\w+|smesso|divorziat\w+|perso|disdetto|morto|vendi
|vendemos|deixei|perdi|parei|cancelei|morreu|verkocht|gestopt|opgezegd|продал\w*|бросил\w*|расстал\w*|sprzeda\w+
|rzuci\w+
""",
    "卖了|卖掉|分手|离婚|辞职|戒了|取消|去世|売りました|売った|別れ|離婚|辞め|やめ|亡くな|팔았|헤어",
)
# What is only advised, planned or possible has not been done.
UNDONE: Final = either(
    r"""
should|shouldn['’]t|ought to|must|might|(?-i:may)|could|(?:need|have|has) to(?! (?:say|admit|tell|confess))|will
|won['’]t|shall|(?:i|we)['’]ll|going to|about to|sollte|müsste|könnte|werde|devrais|pourrais|vais|debería|podría
|voy a|dovrei|potrei|deveria|poderia|vou|zou|moet
""",
    "应该|可能会|要不要|べき|つもり|かもしれ",
)
# Of whom one has, and names, this says that they are no more.
DIED: Final = either(
    r"""
died|passed away|has died|is dead|gestorben|verstorben|tot|mort|décédée?|murió|falleció|è mort[oa]|morreu|faleceu
|overleden|умер\w*|zmarł\w*
""",
    "去世|死了|亡くな|死ん|돌아가",
)
# Why something is to be without what was named: "no nuts please, I am allergic".
ALLERGIC: Final = re.compile(
    r"(?<!\w)(?<!no )(?<!non )(?<!não )(?:i['’]?m|i am|we['’]?re|we are|ich|bin|suis|soy|sono|sou|eu) "
    r"(?:(?!not|nicht|pas|non|não|no)\w+ ){0,2}?"
    r"(?:allergic|intolerant|allergisch|allergique|alérgic[oa]|allergic[oa]|intolérante?|intolerante)"
    r"(?: (?:bin|sind|to (?:it|them|that|those)))?\s*(?:[,.;!]|$)|过敏[。！，]?$",
    re.IGNORECASE,
)
# Where the user is for a time, whenever that is.
WHEN_THERE: Final = re.compile(
    r"(?<!\w)(?:when(?:ever)?|every time|quand|lorsque|cuando|quando|wann immer) "
    r"(?:i['’]?m|i am|we['’]?re|we are|je suis|estoy|sono|estou) (?:in|at|à|en|a|em)\s+$",
    re.IGNORECASE,
)
IF: Final = either(
    r"""
if|unless|whether|suppos(?:e|ing)|assum(?:e|ing)|provided that|in case|what if|let['’]s say|hypothetically
|were i|had i|wenn|falls|sofern|ob|angenommen|gesetzt den fall|vorausgesetzt|si|s['’](?=ils?\b)|à condition
|supposons|au cas où|suponiendo|supongamos|en caso de|se|qualora|supponiamo|nel caso|caso eu|suponha\w*|supondo
|als ik|indien|stel dat|om jag|hvis|если|если бы|ли|jeśli|jeżeli|gdyby|gdybym
""",
    "如果|假如|要是|假设|若是|倘若|もし|(?:だ|である|る|た)とします|と仮定|としたら|たら(?!しい)|なら(?!ない|び|ず)|であれば|만약|라면",
)
WOULD: Final = either(
    r"""
would(?! (?:like|prefer|rather|love) (?!to)| like to be (?:called|addressed))|wouldn['’]t|(?:i|we|he|she
|they)['’]d(?! (?:like|prefer|rather|love) (?!to)| like to be (?:called|addressed)| (?:been|had))|could have
|might have|should have|i wish|if only|würden?|wäre|hätten?|könnte|wohnte|lebte|käme|\w{2,}(?:er|ir|dr|vr
|ur)(?:ais|ait|ions|aient)|(?:ser|estar|vivir|tendr|trabajar|gustar|querr|preferir|podr|har|ir|comer|beber
|hablar|encantar|mudar|llamar|usar|comprar|morar|gostar|ter|poder|viver|trabalhar|far)ía?[amos]{0,3}n?|(?:viv
|tuv|fu|hub|pud|quis)i?eras?|gostaria|moraria|teria|seria|poderia|viveria|trabalharia|\w+(?:rei|rebbe
|remmo)(?<!vorrei)|vivessi|avessi|fossi|potessi|zou|zouden|skulle|ville|бы
""",
)
# What is only wanted is not so yet, unless the slot is about wishes.
WISH: Final = either(
    r"""
(?:want|wants|wanted|hope|hoping|plan|planning|intend|wish|dream(?:ing)? of|dream(?:ing)? about|like|love|going
|thinking of|thinking about|considering) (?:to (?:move|live|be(?!\s+(?:called|addressed))|become|get|buy|work
|learn|study|own|have|adopt|marry|visit|go|switch)|moving|living|becoming|getting|buying|working|learning)
|(?:my|our) dream(?:ed)? \w+|mein\w? traum\w+|de (?:mes rêves|mis sueños)|dei miei sogni|dos meus sonhos
|dream(?:ing)? (?:of|about)|long for|wish for|träume von|rêve d['’e]|sueño con|sogno (?:di|una?)|sonho com
|(?:might|may|could|can) (?:move|live|become|buy|get|switch)|someday|one day|(?:möchte|will|wollen|hoffe|plane
|würde gern|träume).{0,60}(?:wohnen|leben|ziehen|arbeiten|werden|sein|lernen|kaufen|reisen|umziehen)|(?:veux
|voudrais|aimerais|espère|rêve d[e'’]|envisage d[e'’]|compte) ?(?:bien )?\w+(?:er|ir|re|oir)|(?:quiero|espero
|quisiera|gustaría|pienso|sueño con|planeo) \w+(?:ar|er|ir)(?:me|se)?|(?:voglio|vorrei|spero di|penso di
|sogno di) \w+(?:are|ere|ire|rmi|rsi)|(?:quero|espero|gostaria de|pretendo|penso em|sonho em) \w+(?:ar|er|ir
|or)(?:-me)?
""",
    "(?:我|们)(?:很|真)?想(?:要)?(?:搬|住|去|学|买|当|成为|移居|养)|打算|计划|希望|たい(?:です|と思|。|$)|つもり|予定",
)
WISHED_SLOT: Final = either(
    r"""
plans?|planned|goals?|wish\w*|dreams?|wants?|hopes?|hop\w+|travel|trips?|destinations?|holidays?|vacation
|mov(?:e|ing)|future|next|interests?|consider\w*|project\w*|would|learning|bucket|aim|intention\w*|aspiration\w*
|\w*(?:wunsch|plan|pläne|ziel|traum)\w*|projets?|rêves?|souhaits?|planes|sueños?|deseos?|metas?|piani|sogn[oi]
|desider[io]+|planos|sonhos?|desejos?
""",
    "计划|愿望|梦想|目标|夢|予定|目標|希望",
)
# Slots for what is not so, and slots for what somebody keeps away from.
NOT_SLOT: Final = either(
    "not|no|don['’]?t|never|can['’]?t|cannot|without|free|nicht|kein\\w*|ohne|sans|senza|sem|sin", "不|忌"
)
AVERSE: Final = either(
    r"""
dislik\w*|hat(?:e|es|ed)|avoid\w*|allerg\w*|intoleran\w*|restrict\w*|feel\w*|aversion\w*|abneig\w*|unverträg\w*
|einschränk\w*|évit\w*|déteste\w*|intoléran\w*|al[eé]rgi\w*|evit\w*|disgust\w*|odi\w*|restri\w*|hass\w*
""",
    "过敏|讨厌|嫌|苦手|アレルギー|避",
)
ENDED_SLOT: Final = either(
    r"""
former|past|previous\w*|ex|childhood|grew up|hometown|histor\w*|was|used|old|born|früher\w*|ehemalig\w*|kindheit
|ancien\w*|enfance|anterior\w*|infan\w*|vecchi\w*|precedent\w*|antig\w*
""",
    "以前|过去|曾|昔|前の|出身",
)
DOUBT: Final = either(
    r"""
maybe|perhaps|probably|possibly|presumably|i think(?! (?:about|of))|i guess|i believe(?! in)|i suppose|i assume
|i suspect|might(?! have)|(?:not|n['’]t) (?:\w+ )?(?:sure|certain)|unsure|if i (?:remember|recall)(?: correctly
| right| it right)?|as far as i know|afaik|could be|(?:pretty|fairly|almost) (?:sure
|certain)|don['’]t quote me|or so|i seem to|vielleicht|wahrscheinlich|vermutlich
|möglicherweise|wohl|ich glaube(?! an)|glaube ich|ich denke|ich vermute|nicht (?:ganz )?sicher|soweit ich weiß
|peut-être|probablement|je crois(?! en)|je pense|je suppose|pas (?:tout à fait )?s[uû]re?|sans doute
|il me semble|quiz[aá]s?|tal vez|probablemente|a lo mejor|creo que|me parece|supongo|no estoy segur[oa]|igual
|forse|probabilmente|credo|penso (?:di essere|che)|mi sembra|non sono sicur[oa]|talvez|provavelmente|acho que
|creio que|não tenho certeza|misschien|waarschijnlijk|ik denk|kanske|kanskje|наверное|возможно|кажется
|может быть|не уверен\w*|może|chyba|prawdopodobnie
""",
    "可能|也许|大概|或许|好像|应该是|我觉得|不确定|不太确定|多分|たぶん|かもしれ(?:ません|ない)?|と思い?ます|と思う|おそらく|아마",
)
ALSO: Final = either(
    r"""
also|too(?! (?:much|many|little|few|often|\w+ (?:for|to)))|as well|another|in addition|additionally|besides
|furthermore|on top of that|plus|auch|außerdem|zusätzlich|ebenfalls|noch eine?[nm]?|dazu|aussi|également|en plus
|de plus|también|además|otr[oa]|anche|inoltre|pure|un['’]?altr[oa]|também|além|outr[oa]|ook|daarnaast|också
|dessutom|også|i tillegg|тоже|также|ещё|еще|też|także|również
""",
    "也|还(?!是)|另外|此外|又|(?<=[^とでのにしうかっ])も(?![うのしっちと])|さらに|加えて|それに|또|역시"
    "|(?<=[가-힣])도(?= )",
)
INSTEAD: Final = either(
    r"""
only|just(?! (?:so (?:that )?you|to let you|wanted|a (?:note|reminder|heads)|fyi))|instead|switched|changed|replaced
|no longer|now only|nur(?! noch nicht)|statt|stattdessen|seulement
|uniquement|au lieu|s[oó]lo|solamente|en vez|soltanto|solamente|invece|apenas|somente|em vez|alleen|in plaats
|только|вместо|tylko|zamiast|bara|kun
""",
    "只|仅|改|换成|だけ(?!でなく)|代わり|만",
)
OR: Final = either("or|oder|ou|oppure|eller|или|albo|lub|of(?= (?:met|zonder))", "或者|还是|または|それとも|또는")
# A frame in which things are said that are not so, to the end of what is said in it.
FICTION: Final = either(
    r"""
(?<![a-z] )you play an? \w+|in (?:the )?first[- ]person|first-person \w+|ich-perspektive|à la première personne
|i dream(?:ed|t) (?:that )?i|ich habe geträumt|mir träumte|j['’]ai rêvé|soñé|ho sognato|sonhei|imagine
|pretend\w*
|role-?play\w*|let['’]s play|lass uns spielen|(?<!nous )jouons|juguemos|vamos brincar
|the (?:song|lyrics?|poem|verse|chorus|saying) (?:goes|says|reads)
|act (?:as|like)|in (?:my|the|this|a|our|his|her|that) (?:story|novel|dream|fantasy
|script|role|fairy tale|short story|sketch|tale|rpg|campaign|poem|song|screenplay|play)|(?:write|compose|tell
|continue|invent|make up|draft|finish)(?: \w+){0,3}? (?:story|poem|song|novel|scene|dialogue|monologue|lyrics
|tale|haiku|sketch|limerick|fiction|screenplay|diary entry|script)|fiction\w*|(?:for|in) the game|you are (?:a
|an|the|my) \w+(?: \w+){0,4} and i am|as if|my character|from the (?:perspective|point of view|viewpoint) of
|in the voice of|lyrics?|stell dir vor|stellen wir uns vor|tu so|tun wir so|rollenspiel|in (?:meine[mr]|der|dem
|einer?|diese[mr]) (?:geschichte|roman|traum|märchen|gedicht|spiel|lied)|(?:schreib\w*|erfinde
|erzähl\w*)(?: \w+){0,3}? (?:\w*geschichte|gedicht|lied|roman|szene|märchen|dialog|monolog)|als ob|imagine[zr]?
|imaginons|fais comme si|faisons semblant|jeu de rôle|dans (?:mon|ma|le|la|cette|ce|un|une) (?:histoire|roman
|rêve|conte|poème|jeu|chanson)|(?:écris|écrivez|invente|raconte)(?:-\w+)?(?: \w+){0,3}? (?:histoire|poème
|chanson|roman|scène|conte|dialogue)|comme si|imagina|imaginemos|finge|finjamos|juego de rol|en (?:mi|la|el|esta
|este|un|una) (?:historia|novela|sueño|cuento|poema|juego|canción)|(?:escribe|escríbeme|inventa|cuenta
|cuéntame)(?: \w+){0,3}? (?:historia|poema|canción|novela|escena|cuento|diálogo)|como si|immagina|immaginiamo
|fingi|fai finta|facciamo finta|gioco di ruolo|(?:nella|nel|in) (?:mia |mio |questa |questo |una |un )?(?:storia
|romanzo|sogno|favola|poesia|gioco|canzone)|(?:scrivi|inventa|racconta)\w*(?: \w+){0,3}? (?:storia|poesia
|canzone|romanzo|scena|favola|racconto)|come se|imagine que|finja|faz de conta|jogo de papéis|(?:na|no
|em) (?:minha |meu |esta |este |uma |um )?(?:história|romance|sonho|conto|poema|jogo|canção|música)|(?:escreve
|escreva|inventa|invente|conta|conte)(?: \w+){0,3}? (?:história|poema|canção|romance|cena|conto)|como se
|stel je voor|doe alsof|rollenspel|schrijf(?: \w+){0,3}? (?:verhaal|gedicht|lied)|представь\w*|притвори\w*
|напиши(?: \w+){0,3}? (?:рассказ|историю|стих\w*)|wyobraź|udawaj|napisz(?: \w+){0,3}? (?:opowiadanie|wiersz)
|föreställ dig|låtsas|tenk deg|late som
""",
    "第一人称|一人称|想象|假装|扮演|角色扮演|写(?:一|个|首|篇|段)*(?:故事|诗|小说|歌|剧本)|故事里|小说里|梦里|梦见"
    "|想像して|ふりをし|ロールプレイ|(?:物語|小説|詩|歌|話)を書|物語の中|小説の中|夢の中|夢で|상상해|소설|역할극",
)
# Said behind a sentence, this takes it back as a joke.
KIDDING: Final = either(
    r"""
(?:just|only|i['’]m|i was|was|am) (?:kidding|joking|pulling your leg)|j/k|jk|/s|nur (?:ein )?(?:spaß|scherz)
|war (?:nur )?ein (?:scherz|witz)|je (?:plaisante|rigole)|c['’]est une blague|es (?:una )?broma|estoy bromeando
|sto scherzando
|(?:é|foi|estou) (?:uma )?brinca\w+
""",
    "开玩笑|冗談(?:です|だ)",
)
# What follows is about the user, line by line.
ABOUT_ME: Final = re.compile(
    r"^\W*(?:(?:some |a few )?(?:facts|things|a bit|a little|details|info(?:rmation)?)? ?about (?:me|myself)"
    r"|my (?:profile|details|data|info)"
    r"|über mich|zu mir|mein profil|à propos de moi|mon profil|sobre mí|mi perfil|su di me|il mio profilo|sobre mim"
    r"|meu perfil|关于我|我的资料|我的信息|自己紹介|プロフィール)\W*$",
    re.IGNORECASE,
)
REALITY: Final = either(
    r"""
in real life|for real|in reality|actually|by the way|btw|seriously|aside from that|übrigens|im echten leben
|in wirklichkeit|au fait|en réalité|dans la vraie vie|por cierto|en realidad|en la vida real|a proposito
|in realtà|nella vita reale|a propósito|na realidade|na vida real|trouwens|кстати|на самом деле
""",
    "顺便|其实|现实中|ところで|実は|実際",
)
# Whoever speaks so gives the words of somebody else, up to the end of the paragraph.
SAYS: Final = either(
    r"""
(?:said|says|wrote|writes|texted|told (?:me|us)|asked|replied|answered|shouted|reads?|quote[ds]?|quotation
|sagte?|schrieb|schreibt|meinte?|antwortete|zitat|lautet|dit|disait|écrit|a écrit|répond\w*|citation|dice|dijo
|escribe|escribió|respondió|cita|disse|scrive|scritto|rispose|citazione|diz|escreve|escreveu|respondeu|citação
|zei|zegt|schreef|сказал\w*|пишет|написал\w*|powiedzia\w+|pisze|napisa\w+|sa|sade|skrev)(?: (?:me|us|mir|uns|moi
|me|mi))?
""",
    "说|写道|写|回答|言った|言いました|書いた|曰く|말했다",
)
