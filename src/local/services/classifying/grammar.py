"""How sentences show who speaks and how they are meant, in the languages that we look at: tables, no decisions.

English, German, French, Spanish, Italian, Portuguese, Dutch, Chinese and Japanese; of Russian, Polish, Korean and the
Scandinavian languages the commonest forms. What is not in a table makes a claim be refused rather than believed.
"""

from __future__ import annotations

import re
from typing import Final


def _words(text: str) -> str:
    """Words between `|` or on lines of their own, as an alternation of whole words."""
    return rf"(?<!\w)(?:{_joined(text)})(?!\w)"


def _joined(text: str) -> str:
    return "|".join(line.lstrip("|") for line in text.splitlines() if line)


def either(words: str, unspaced: str = "") -> re.Pattern[str]:
    """One of the words as a whole word, or one of those of scripts without spaces anywhere."""
    parts = [_words(words)] + ([_joined(unspaced)] if unspaced else [])
    return re.compile("|".join(parts), re.IGNORECASE)


_KIN = r"""
sisters?|brothers?|siblings?|mother|father|mum|mom|dad|parents?|wife|husband|spouse|partner|girlfriend|boyfriend
|fianc[eé]e?|sons?|daughters?|child|children|kids?|bab(?:y|ies)|twins?|friends?|colleagues?|coworkers?|boss
|manager|neighbou?rs?|aunt|uncle|cousins?|niece|nephew|grand(?:mother|father|ma|pa|parents|son|daughter|child
|children)|flatmates?|roommates?|housemates?|landlord|teacher|doctor|dentist|therapist|clients?|customers?
|students?|patients?|ceo|cto|tenants?|lodger|carer|nanny|coach|trainer|supervisor|interns?|assistant|mentor
|accountant|lawyer|groom|bride|ex|mother-in-law|father-in-law|in-laws|guests?|visitors?|gast|gäste|invitée?s?|invitad[oa]s?|ospiti?|convidad[oa]s?|pupils?
|people|everyone|everybody|somebody
|someone|man
|woman|guy|boy|girl|character|hero|heroine|protagonist|narrator|author|schwester\w*|bruder|brüder|geschwister
|mutter|vater|mama|eltern|ehefrau|frau|ehemann|mann|freund(?:in|e|innen)?|sohn|söhne|tochter|töchter|kind(?:er)?
|kolleg(?:e|in|en|innen)|chef(?:in)?|nachbar(?:n|in)?|tante|onkel|cousine?|oma|opa|großmutter|großvater
|großeltern|mitbewohner(?:in)?|lehrer(?:in)?|arzt|ärztin|neffe|nichte|verlobte[rn]?|leute|figur|held(?:in)?
|s(?:œ|oe)urs?|frères?|mère|père|maman|papa|femme|mari|compagn(?:e|on)|copain|copine|amie?s?|fils|fille|enfants?
|collègues?|patronne?|chef|voisine?s?|oncle|grand-mère|grand-père|grands-parents|colocataire|médecin|neveu|nièce
|gens|personnage|héros|herman[oa]s?|madre|padre|mamá|papá|padres|espos[oa]|mujer|marido|pareja|novi[oa]
|hij[oa]s?|amig[oa]s?|colegas?|compañer[oa]s?|jef[ea]|vecin[oa]s?|tí[oa]|prim[oa]s?|abuel[oa]s?|médic[oa]
|sobrin[oa]|gente|personaje|sorell[ae]|fratell[oi]|mamma|papà|genitori|moglie|marito|compagn[oa]|fidanzat[oa]
|ragazz[oa]|figli[oae]?|amic[oa]|amici|colleg[ah]i?|capo|vicin[oa]|zi[oa]|cugin[oa]|nonn[oai]|medico|nipote
|personaggio|irmãs?|irmãos?|mãe|pai|pais|mulher|namorad[oa]|filh[oa]s?|chefe|vizinh[oa]|tia|tio|avó|avô|avós
|sobrinh[oa]|personagem|zus|zussen|broers?|moeder|vader|ouders|vrouw|vriend(?:in|en)?|zoon|dochter|kinderen
|collega|baas|buurman|buurvrouw|oom|syster|söster|søster|bror|mamma|pappa|kone|vän|venn|sønn|dotter|datter|sjef
|сестр\w+|брат\w*|мать|мама|отец|папа|родители|жена|муж|друг|друзья|подруга|сын|дочь|дети|коллег\w+|начальник
|сосед\w*|siostr\w+|brat|matka|ojciec|tata|rodzice|żona|mąż|przyjaciel|przyjaciółka|koleg\w+|koleżanka|syn|córka
|szef
"""
_PETS = r"""
dogs?|cats?|pets?|puppy|kitten|horse|hamster|rabbit|parrot|hund(?:e|in)?|katzen?|kater|pferd|haustier|chiens?
|chats?|chatte|perr[oa]s?|gat[oa]s?|mascota|can[ei]|gatt[oai]|cavallo|cachorr[oa]s?|cão|hond|kat|собака|кошка
|кот|kot|katt
"""
_KIN_HAN = (
    "姐姐|妹妹|哥哥|弟弟|姐|妹|哥|弟|妈妈|爸爸|妈|爸|母亲|父亲|父母|老婆|妻子|老公|丈夫|女朋友|男朋友|女友|男友|儿子|女儿"
    "|表姐|表妹|表哥|表弟|堂姐|堂妹|堂哥|堂弟|舅舅|姑姑|侄子|侄女|同学|上司|领导|客户|孩子|朋友|同事|老板|邻居|阿姨|叔叔|奶奶|爷爷|外婆|外公|室友|医生|老师|主角"
)
_KIN_KANA = (
    "姉|妹|兄|弟|母|父|両親|妻|夫|彼女|彼氏|彼|息子|娘|子供|友達|友人|同僚|上司|隣人|叔母|叔父|祖母|祖父"
    "|ルームメイト|クラスメイト|パートナー|チーム|ボス|先輩|後輩|伯母|伯父|いとこ|孫|お母さん|お父さん|お姉さん|お兄さん|先生|主人公|[ァ-ヶー一-龥A-Za-z]+(?:さん|くん|ちゃん)"
)
_KIN_HANGUL = "언니|누나|오빠|여동생|남동생|동생|엄마|아빠|어머니|아버지|아내|남편|친구|아들|딸|동료|상사"
_DETERMINER = _words(r"""
my|our|a|an|the|one of my|mein\w{0,2}|unser\w{0,2}|ein\w{0,2}|der|die|das|ma|mon|mes|notre|nos|une?|la|le|les
|mis?|nuestr[oa]s?|mi[ao]|miei|mie|nostr[oaie]|il|lo|gli|meus?|minhas?|nossos?|nossas?|mijn|onze|ons|(?<!\d )min
|mitt|mina|моя|мой|мои|наш\w?|у моей|у моего|mój|moja|moi|moje|his|her|their|your|the|un|una|uma?
""")
THEIRS: Final = _words(
    "his|her|their|your|seine?|ihre?|eure?|deine?|son|sa|ses|leurs?|ton|ta|tes|votre|vos|sus?|tus?|su[oa]|tu[oa]|seu|sua"
)
_ADJECTIVES = r"(?:\s+[\w’'-]+){0,2}?"
PERSON: Final = (
    rf"(?:{_DETERMINER}{_ADJECTIVES}\s+)?(?<!\w)(?:{_joined(_KIN)})(?!\w)"
    rf"|(?:(?:我|我的|我们)[大小老]?)?(?:{_KIN_HAN})(?!们家)|(?:(?:私|僕|俺)の)?(?:{_KIN_KANA})(?=[はがもの])|(?:{_KIN_HANGUL})"
)
PET: Final = (
    rf"(?:{_DETERMINER}{_ADJECTIVES}\s+)?(?<!\w)(?:{_joined(_PETS)})(?!\w)|我的?(?:狗|猫)|(?:犬|猫)(?=[はがもの])"
)
PEOPLE: Final = re.compile(rf"(?<!\w)(?:{_joined(_KIN)})(?!\w)|{_KIN_HAN}|{_KIN_KANA}|{_KIN_HANGUL}", re.IGNORECASE)
ANIMALS: Final = re.compile(rf"(?<!\w)(?:{_joined(_PETS)})(?!\w)|狗|猫|犬|宠物|ペット", re.IGNORECASE)

# The user as the subject of a sentence.
SELF: Final = (
    _words(r"""
i|i['’](?:m|ve|d|ll)|we|we['’](?:re|ve|d|ll)|ich|wir|je|nous|yo|nosotr[oa]s|io|noi|eu|nós|a gente|ik|wij|jag|jeg
|(?:reach|contact|call|text|e-?mail|write|phone|message|find) me (?:at(?! least)|on|via|under)
|(?:call(?:s|ed)?|address|nennt?|nenne) (?:me|us|mich)|(?:put|has|have|had|start(?:s|ed)?|keeps?|kept) me on
|(?<!was )(?<!were )(?<!been )(?<!is )(?<!vet )prescribed(?! (?:him|her|them|my|his|our|to))|mich unter
|vi|ive|im(?= (?:an?|the|not|so|also|very|really|allergic|vegan|vegetarian|diabetic|pregnant|from|at|on
|called|married|single|\d+|[a-z]+ing)(?!\w))|я|мы|мне|нам|у меня|у нас
|me (?:gusta|encanta|duele)n?|mi piac\w+|(?<=et )moi|(?<=mais )moi|(?<=, )moi
""")
    + r"|(?<!\w)j['’](?=\w)|(?<!告诉)(?<![给帮教替陪让请])(?:我们|我(?!的))|咱们|本人|私たち"
    r"|(?:私|僕|俺|わたし|ぼく)(?!の|に(?!は))|나는|난|저는|제가|내가|우리는"
)
# Where the verb alone says so.
VERB_I: Final = (
    _words(r"""
soy|echo de menos|extraño|tengo|vivo|trabajo|prefiero|bebo|hablo|uso|estudio|odio|juego|conduzco|nací|estoy
|hemos|vivimos|tenemos|somos|dejé|he \w+[ai]do|me (?:llamo|mudé|casé|divorcié)|nos (?:mudamos|separamos
|divorciamos
|casamos)|regalé|compré|perdí|cancelé|empecé|cambié|vendí|rompimos|terminamos|trabajé|viví|tomo|recuerdo|cumplo|necesito|padezco|aprendo|toco
|ya no \w+o|no \w+o|não \w+o|posso|soffro|sufro|sofro
|sono|abito|preferisco|lavoro|bevo|mangio|parlo|uso|ho|abbiamo|siamo|prendo
|gioco|guido|suono|mi (?:chiamo|sono|trasferisco)|ci siamo|sou|tenho|moro|trabalho|prefiro|falo|estou|nasci|bebo
|vendi|deixei|dei|larguei|comprei|perdi|parei|comecei|cancelei|casei|mudei|chamo-me|me chamo|gosto|jogo|estudo
|mieszkam|jestem|mam|pracuję|lubię|wolę|piję|mówię
|nazywam się
""")
    + "|(?:住んで|暮らして|働いて|勤めて|飼って|飲んで|服用して|通って|使って|学んで|勉強して|乗って|運転して)い?"
    "(?:ます|ません|ました|て|(?:る|た|ない)(?=[。！!、\\s]|$|の|け|が|から|ので|んで))"
    "|(?:好き|嫌い|苦手)(?:です|だ)|(?:話し|話せ|でき|吸い|食べられ)ま(?:す|せん)|アレルギー(?:な|があ|持ち|です|で[、。])"
    "|(?:名前|仕事|職業|趣味|出身|誕生日|年齢|血液型|住所|電話番号|身長|体重|母語)は"
)
# The user as whom a sentence is about that begins without a subject.
ELLIPSIS: Final = (
    _words(r"""
allergic to|intolerant to|intolerant of|based in|born (?:in|on)|living (?:in|with)|married to|originally from
|diagnosed with|(?:the )?name['’]s|am (?=(?:an?|in|from|at|also|allergic|veg\w+|diabetic|\w+ing|really|very|so)(?!\w))
|live in|work (?:as|at|for)|(?:the )?name is|currently (?:on|taking|living|working)|moved to
|[^\W\d]+ (?:since|seit|depuis|desde)|got an? \w+ (?:allergy|intolerance)
|(?:have|having) an? \w+ (?:allergy|intolerance)
|bin(?! ich)|habe?(?! ich)|wohne(?! ich)|arbeite(?! ich)|heiße(?! ich)|nehme(?! ich)|suis(?!-)
|allergisch (?:gegen|auf)|wohnhaft in|geboren (?:am|in)|verheiratet mit|allergique (?:à|aux?)
|alérgic[oa] (?:a|al|à|ao|aos)|allergic[oa] (?:a|al|alla|alle|ai|agli|all)|intolleran(?:te|ti) (?:a|al)|allergisch voor
""")
    + r"|对(?=[^，。！？]{1,12}过敏(?!的))"
    r"|(?<!\w)(?!(?:from|is|are|the|over|right|in|out|around|up|down|nothing|anything)\b)"
    r"[^\s,.;:?!]+(?:\s[^\s,.;:?!]+){0,3}\shere\b(?=\W*$|[,.!])"
)
# Whoever does what only people do is no thing of the user's: "my CEO lives in …".
SOMEBODY: Final = (
    r"(?<!\w)(?:my|our|mein\w?|unser\w?|mon|ma|notre|mi|mia|mio|meu|minha|a friend of mine|one of (?:my|our) \w+)"
    r"(?! (?:family|skin|body|whole|entire|familie|famille|familia|famiglia|família)(?!\w))(?: [\w-]+){0,3}?(?= (?:"
    r"lives|works (?:as|at|for|in)|speaks|eats|drinks|smokes|studies|teaches|is allergic|is diabetic|is (?:a )?veg\w+"
    r"|was born|wohnt|lebt in|arbeitet (?:als|bei|in)|spricht|isst|trinkt|raucht|habite|travaille (?:chez|à|comme)"
    r"|parle|fume|vive en|trabaja (?:en|como|de)|habla|fuma|abita|lavora (?:a|come|per|in)|parla|mora (?:em|no|na)"
    r"|trabalha (?:em|no|na|como)|fala)(?!\w))"
)
# As what somebody does something.
AS_A: Final = r"(?<!\w)(?:as an?|being(?: an?)?|als|en tant que|como|come|in quanto)\s"
# The user as whoever the sentence says something of, without being its subject.
MINE: Final = (
    _words(r"""
my|mine|our|ours|mein\w{0,2}|unser\w{0,2}|mon|ma|mes|notre|nos|mis?|nuestr[oa]s?|mi[ao]|miei|mie|nostr[oaie]
|meus?|minhas?|nossos?|nossas?|mijn|onze|ons|(?<!\d )min|mitt|mina|мой|моя|моё|мое|мои|наш\w?|mój|moja|moje
""")
    + "|我的|我们的|(?:私|僕|俺|わたし)の|내|제|나의|저의"
)
ME: Final = _words(r"me|myself|mich|mir|moi|m['’]\w+|(?-i:us)|uns|meg|mig|mij|меня|мной|mnie|mi|conmigo|mim|comigo")
# Somebody else as a subject.
THEY: Final = (
    _words(r"""
he(?! \w+[ai]do(?!\w))|she|they|(?:he|she|they)['’](?:s|re|d|ll|ve)|er|elles?|ils|ell[oa]s?|él|lei|loro|el[ea]s?|hij|zij
|он|она|они
|ona|hon|hun|il (?:est|a|aime|habite|vit|travaille|adore|déteste|mange|boit|parle|préfère|prend|joue|s['’]\w+
|n['’]\w+|était|dit)|les? (?:gusta|encanta|duele)n?|(?:gli|le) piac\w+
""")
    + "|他们|她们|彼ら|그는|그녀는|그들은"
)
# Whoever is spoken to, and forms that are objects as often.
YOU: Final = (
    _words("you|you['’](?:re|ve|d|ll)|du|ihr|sie|tu|vous|vos|usted(?:es)?|vo[ci]ê?s?|lui")
    + "|他|她|你们|你|您|あなた|あの人"
)
# A verb in the third person right behind somebody makes them its subject, wherever they stand.
VERB: Final = (
    r"(?:\s+(?:also|always|never|still|now|only|just|auch|immer|nie|noch|jetzt|aussi|también|anche|também))?"
    r"(?:['’]s\b|\s+"
    + _words(r"""
is|are|was|were|has|have|had|lives?|works?|likes?|loves?|hates?|eats?|drinks?|speaks?|prefers?|takes?|plays?
|studies|study|uses?|says?|said|told|thinks?|wants?|owns?|drives?|moved|bought|got|can|cannot|can['’]t|does
|doesn['’]t|did|didn['’]t|isn['’]t|wasn['’]t|hasn['’]t|will|would|went|married|wrote|writes|asked|asks|calls?
|called|needs?|knows?|ist|sind|war|waren|hat|haben|wohnt|wohnen|lebt|leben|arbeitet|arbeiten|mag|mögen|liebt
|hasst|isst|essen|trinkt|trinken|spricht|heißt|nimmt|spielt|studiert|fährt|sagt|sagte|meint|will|kann|bevorzugt
|kommt|schrieb|schreibt|est|sont|ont|était|habite|habitent|vit|travaille|aime|adore|déteste|mange|boit|parle
|préfère|prend|joue|étudie|dit|veut|s['’]appelle|vient|n['’]\w+|es|está|son|tiene|vive|viven|trabaja|ama|odia
|come|bebe|habla|prefiere|toma|juega|estudia|dice|quiere|se llama|è|ha|hanno|vive|abita|lavora|odia|mangia|beve
|parla|preferisce|prende|gioca|studia|vuole|si chiama|é|são|tem|mora|trabalha|odeia|fala|prefere|joga|estuda|diz
|quer|se chama|gosta|heeft|woont|werkt|houdt|eet|drinkt|spreekt|heet|speelt|живёт|живет|работает|любит|ест|пьёт
|говорит|зовут|mieszka|pracuje|lubi|that|who|whose|qui|dont|que|che
""")
    + r"|,\s+(?:who|der|die|das|dessen|deren|qui|dont|que|che|który|która|которая|который|wie)(?!\w))"
)
PREPOSITION: Final = re.compile(
    _words(r"""
with|for|of|to|from|at|by|about|like|than|near|without|unlike|mit|für|von|zu|bei|ohne|wie|als|vom|zum|zur|avec
|pour|de|du|chez|à|aux?|sans|con|para|por|sin|a|al|del|da|dal|dalla|di|per|com|sem|do|dos|met|voor|van|bij|с|со
|для|от|к|z|ze|dla|od|u|med|för|av|hos|know|told|tell|love|miss|met|visit(?:ed)?
""")
    + r"\s*(?:(?:my|mein\w*|ma|mon|mi|mia|minha|meu|mijn|the|der|die|la|le|il|o)\s*)?$"
    r"|(?:和|跟|与|给|对|为|把|被|让)(?:我的?)?$",
    re.IGNORECASE,
)
AND: Final = r"\s*(?:\b(?:and|und|et|y|e|en|och|og|и)\b|和|跟|与|と)\s*"
BREAK: Final = (
    r"[,;:–—()、，；：\n]| - |"
    + _words(r"""
and|but|while|whereas|because|although|though|so|or|that|who|which|whose|where|when|und|aber|während|weil|obwohl
|dass|denn|sondern|oder|et|mais|tandis|alors|parce|car|que|qui|dont|y|pero|mientras|porque|aunque|sino|e|ed|ma
|mentre|perché|che|mas|enquanto|embora|maar|terwijl|omdat|en|и|но|а|что|потому|который|która|który|że|ale|och|og
|men|att
""")
    + "|但是|但|而且|而|因为|所以|不过(?!敏)|けど|けれど|ですが|ますが"
)
