"""What facts about a person are about, and how that is called: words of one matter in several languages."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from local.services.classifying.grammar import either
from local.services.engrams.words import content_words

# A matter, and the words that name it in a slot or in a sentence; of the scripts without spaces after the bar.
_MATTERS: Final[Mapping[str, tuple[str, str]]] = {
    "home": (
        r"""
home|hous\w*|flat|apartment|liv(?:e|ed|es|ing)|resid\w*|address|city|town|country|location|place|moved|rent\w*
|wohn\w*|leb\w*|heimat|umgezogen|adresse|stadt|ort|habit\w*|domicile|résid\w*|vi(?:s|vons|t)|ville|logement
|déménag\w*|viv(?:o|ía|imos|e)|resid\w*|domicilio|ciudad|casa|mud\w+|abit\w*|città|indirizzo|residenza|mor(?:o
|ada|amos|ava)|cidade|endereço|woon\w*|huis|adres|stad|жив\w+|дом|город|адрес|mieszk\w*|dom|bor|bodde
""",
        "住|家|地址|城市|搬|집|살",
    ),
    "work": (
        r"""
work\w*|jobs?|employ\w*|occupation|profession|career|company|position|role|boss|quit|fired|resign\w*|retir\w*
|laid off|arbeit\w*|beruf\w*|stelle|job|firma|gekündigt|rente|travail\w*|emploi|métier|profession|poste
|entreprise|démission\w*|retraite|trabaj\w*|empleo|profesi\w*|puesto|empresa|oficio|renunci\w*|jubil\w*|lavor\w*
|mestiere|professione|impiego|azienda|licenzi\w*|pensione|trabalh\w*|emprego|profiss\w*|empres\w*|demit\w*
|aposent\w*|werk\w*|baan|beroep|работ\w*|профес\w*|должность|прац\w+|prac\w*|zawód|jobb\w*|yrke
""",
        "工作|职业|上班|公司|辞职|退休|仕事|職業|会社|勤め|働|退職|직업|회사|일하",
    ),
    "partner": (
        r"""
partner\w*|girlfriend|boyfriend|wife|husband|spouse|married|marri\w*|relationship|marital|together|broke up
|break up|split up|separated|divorc\w*|engaged|single|dating|freundin|freund|ehe\w*|verheiratet|beziehung
|getrennt|geschieden|verlobt|zusammen|copine|copain|compagn\w*|conjoint\w*|mari|femme|épou\w*|mari[ée]e?|couple
|rompu|sépar\w*|divorc\w*|célibataire|novi[oa]|pareja|espos[oa]|marido|mujer|casad[oa]|relación|romp\w+|separ\w+
|divorci\w*|termin\w+|solter[oa]|fidanzat\w*|ragazz[oa]|moglie|marito|sposat[oa]|relazione|lasciat\w*|separat\w*
|namorad[oa]|esposa|casad[oa]|relacionamento|termin\w+|separ\w+|solteir[oa]|vriendin|relatie|gescheiden|жен\w+
|муж|парень|девушка|расста\w+|развел\w+
""",
        "女朋友|男朋友|女友|男友|妻子|丈夫|老婆|老公|伴侣|对象|分手|离婚|结婚|感情|彼女|彼氏|恋人|妻|夫|パートナー|結婚|離婚|別れ|여자친구|남자친구|헤어",
    ),
    "vehicle": (
        r"""
cars?|vehicles?|auto|automobile|bikes?|bicycle|motorbike|motorcycle|scooter|van|truck|driv(?:e|ing)|wagen
|fahrzeug|fahrrad|rad|motorrad|voiture|véhicule|vélo|moto|coche|carro|vehículo|bici\w*|macchina|veicolo|veículo
|fiets|машин\w*|автомобил\w*|велосипед|samochód|rower|bil
""",
        "车|汽车|自行车|車|自転車|バイク|차|자동차",
    ),
    "pet": (
        r"""
pets?|dogs?|cats?|puppy|kitten|hamster|rabbit|parrot|animals?|haustier\w*|hund\w*|katze\w*|kater|tier\w*|chiens?
|chats?|animal\w*|mascotas?|perr[oa]s?|gat[oa]s?|cane|gatt[oa]|animal[ei]|cachorr[oa]s?|hond\w*|kat|huisdier\w*
|собак\w*|кошк\w*|pies|kot|husdjur
""",
        "宠物|狗|猫|犬|ペット|반려|강아지|고양이",
    ),
    "diet": (
        r"""
diet\w*|eat\w*|food\w*|vegetarian\w*|vegan\w*|meat|nutrition|meals?|essen|ernähr\w*|vegetar\w*|fleisch|isst|esse
|gegessen|régime|mange\w*|alimentation|aliment\w*|végétar\w*|végan\w*|viande|dieta|com(?:o|er|ida|ía)
|alimentaci\w*|carne|mangi\w*|alimentazione|cib\w*|alimenta\w*|еда|мясо|вегетариан\w*|voeding|eten|eet|jedzenie
|mat|äter
""",
        "饮食|吃|素食|肉|食事|食べ|菜食|ベジタリアン|음식|채식",
    ),
    "allergy": (
        r"""
allerg\w*|intoleran\w*|hay fever|unverträglich\w*|heuschnupfen|intoléran\w*|alergi\w*|alérgic\w*|аллерг\w*
|uczulen\w*|uczulon\w*|overgevoelig\w*
""",
        "过敏|アレルギー|알레르기",
    ),
    "language": (
        r"""
languages?|speak\w*|spoken|fluent|mother tongue|sprach\w*|spreche\w*|muttersprache|langues?|parle\w*|idiomas?
|lenguas?|habl(?:o|a|amos)|lingu[ae]|parl(?:o|iamo)|línguas?|fal(?:o|amos)|ta(?:al|len)|spreek|язык\w*|говорю
|język\w*|mówię|språk|talar
""",
        "语言|语|会说|言語|話|語|언어|말",
    ),
    "medication": (
        r"""
medic\w*|medicine\w*|pills?|tablets?|prescription\w*|drugs?|insulin|dos(?:e|age)|medikament\w*|tabletten
|médicament\w*|traitement|pastillas?|farmac[io]\w*|remédios?|лекарств\w*|leki?|medicijn\w*|medisin\w*
""",
        "药|薬|服用|약",
    ),
    "condition": (
        r"""
condition\w*|illness\w*|disease\w*|disorder|disabilit\w*|diagnos\w*|health|diabet\w*|asthma\w*|krank\w*
|gesundheit|erkrankung\w*|malad\w*|santé|enfermedad\w*|salud|malatti\w*|salute|doença\w*|saúde|ziekte\w*
|болезн\w*|chorob\w*|sjukdom
""",
        "疾病|病|健康|病気|持病|질병",
    ),
    "child": (
        r"""
child|children|kids?|sons?|daughters?|bab(?:y|ies)|kind(?:er)?|sohn|söhne|tochter|töchter|enfants?|fils|filles?
|hij[oa]s?|figli[oae]?|filh[oa]s?|kinderen|zoon|dochter|дети|сын|дочь|dzieci|syn|córka|barn
""",
        "孩子|儿子|女儿|子供|息子|娘|아들|딸",
    ),
    "sibling": (
        r"""
siblings?|brothers?|sisters?|geschwister|brüder|bruder|schwestern?|frères?|s(?:œ|oe)urs?|herman[oa]s?
|fratell[oi]|sorell[ae]|irmãos?|irmãs?|broers?|zussen|братья|сестры
""",
        "兄弟|姐妹|兄|姉|妹",
    ),
    "interest": (
        r"""
hobb(?:y|ies|ys)|interest\w*|leisure|pastimes?|likes|dislikes|likes and dislikes|freizeit|interessen?|loisirs?
|passe-temps|intérêts?|aficion\w*|pasatiempo\w*|interes\w*|passatemp\w*|хобби|hobbies|fritid
""",
        "爱好|兴趣|趣味|취미",
    ),
    "instrument": (
        r"""
instruments?|guitar|piano|violin|drums|instrumente?|gitarre|klavier|geige|guitare|violon|guitarra|chitarra
|pianoforte|violão|gitaar
""",
        "乐器|吉他|钢琴|楽器|ギター|ピアノ",
    ),
    "name": (
        r"""
name\w*|nicknames?|called|surname|nom|prénom|surnom|appell\w*|nombre|apellido|apodo|llam\w+|nome|cognome
|soprannome|chiam\w+|apelido|cham\w+|naam|heet|heiß\w*|имя|зовут|imię|nazwisko|namn
""",
        "名字|姓名|叫|名前|呼|이름",
    ),
    "age": (
        r"""
age|years? old|old|alter|jahre alt|âge|ans|edad|años|età|anni|idade|anos|leeftijd|jaar|возраст|лет|wiek|lat
|ålder
""",
        "年龄|岁|年齢|歳|나이|살",
    ),
    "birthday": (
        r"""
birth\w*|born|geburt\w*|geboren|naissance|né|née|anniversaire|nacimiento|cumpleaños|nací|nascita|compleanno
|nat[oa]|nascimento|aniversário|nasci|geboorte\w*|verjaardag|рожд\w+|urodz\w+|födelse\w*
""",
        "生日|出生|誕生日|生まれ|생일",
    ),
    "coffee": (r"coffee|espresso|kaffee|café|caffè|koffie|кофе|kawa|kaffe", "咖啡|コーヒー|커피"),
    "drink": (
        r"drinks?|drank|beverages?|tea|tee|trink\w*|getränk\w*|bois|boisson\w*|thé|beb(?:o|ida|idas)|té|bev(?:o|anda|ande)|tè|chá|drink\w*|thee|пью|чай|напиток|herbata|pij\w+",
        "喝|茶|饮料|飲|お茶|마시",
    ),
    "colour": (r"colou?rs?|farbe\w*|\w+farbe|couleurs?|color\w*|colore|cor|cores|kleur|цвет|kolor|färg", "颜色|色|색"),
    "smoking": (
        r"smok\w*|cigarett\w*|rauch\w*|raucher\w*|fum\w+|tabac|tabaco|sigarett\w*|cigarr\w*|rook\w*|кур\w+|pal(?:ę|ić)",
        "烟|抽|タバコ|喫煙|吸|담배",
    ),
    "school": (
        r"school|universit\w*|stud\w*|degree|course|college|major|schule|studi\w*|hochschule|école|étud\w*|fac|escuela|universi\w*|carrera|scuola|facoltà|escola|faculdade|curso|учусь|школа|университет",
        "学校|大学|专业|学习|学|勉強|専攻|학교",
    ),
    "sport": (
        r"sports?|gym|team|club|play\w*|runn?\w*|tennis|football|soccer|sportart\w*|verein|spiele|laufe|équipe|joue|course|deporte\w*|equipo|jueg\w+|squadra|gioc\w+|esporte\w*|desporto|time|jogo",
        "运动|球|跑|健身|スポーツ|運動|운동",
    ),
    "phone": (
        r"phone|mobile|cell\w*|telephone|number|telefon\w*|handy|nummer|téléphone|portable|teléfono|móvil|celular|telefono|cellulare|telefone|telemóvel|телефон|numer",
        "电话|手机|电话号码|電話|携帯|전화",
    ),
}
_PATTERNS: Final = {matter: either(*words) for matter, words in _MATTERS.items()}
# Of these one has several at a time: another one does not take the place of those before.
_SEVERAL: Final = frozenset(
    {"pet", "allergy", "language", "medication", "condition", "child", "sibling", "interest", "instrument"}
)
_OF_HEALTH: Final = frozenset({"allergy", "condition", "medication", "diet"})
_ONE_OF_THEM: Final = either(
    r"""
favou?rite\w*|preferred|native|main|primary|current\w*|mother|first|name|names|called|age|birth\w*|best
|programming|operating|number|interface|how many|how much|lieblings\w*|bevorzugt\w*|mutter\w*|erste\w*
|préféré\w*|maternelle|principal\w*|favorit[oa]\w*|preferid[oa]\w*|matern[oa]\w*|preferit[oa]\w*|how i feel.*
|how i react.*|dose|dosage|status
""",
    "最喜欢|母语|第一|首选|一番|母語|好きな",
)


def matters(text: str) -> frozenset[str]:
    """What a slot or a sentence is about."""
    return frozenset(matter for matter, pattern in _PATTERNS.items() if pattern.search(text))


def places(matter: str, text: str) -> list[int]:
    """Where a text names a matter."""
    return [found.start() for found in _PATTERNS[matter].finditer(text)]


def holds_several(slot: str) -> bool:
    """Whether a slot is for something of which one has several at a time, such as allergies."""
    return bool(matters(slot) & _SEVERAL) and not _ONE_OF_THEM.search(slot)


def is_of_health(slot: str) -> bool:
    """Whether a slot is for what somebody may be hurt by who does not know of it."""
    return bool(matters(slot) & _OF_HEALTH)


_PLAIN_WORDS: Final = re.compile(
    either(
        r"""
favou?rite\w*|prefer\w*|like[sd]?|dislike[sd]?|love[sd]?|hate[sd]?|enjoy\w*|feel\w*|about|time\w*|date|day\w*
|week\w*|month|year\w*|hour\w*|morning\w*|evening\w*|night\w*|weekend\w*|wake\w*|waking|sleep\w*|bed\w*|alarm
|usual\w*|typical|daily|weekly|regular\w*|schedule\w*|appointment\w*|meeting\w*|event\w*|anniversar\w*
|deadline\w*|start\w*|end\w*|family|father|mother|parents?|grand\w+|aunt|uncle|cousins?|niece|nephew|friends?
|neighbou?rs?|colleagues?|people|contact\w*|email\w*|e-mail|mail|web\w*|site\w*|page|blog|url|domain|homepage
|nationalit\w*|citizen\w*|origin\w*|religio\w*|politic\w*|gender|pronouns?|education|qualification\w*|skills?
|experience|level|title|salary|income|budget|currency|bank|insurance|music\w*|band\w*|song\w*|film\w*|movie\w*
|series|show\w*|book\w*|author\w*|game\w*|season\w*|weather|art\w*|sports?|exercise|training|workout\w*|sizes?
|shoe\w*|cloth\w*|shirt\w*|height|weight|tall|blood|type\w*|eye\w*|hair\w*|hand\w*|glasses|doctor\w*|dentist\w*
|therapist|teacher|computer\w*|laptop\w*|phone\w*|device\w*|operating|system\w*|software|version\w*|program\w*
|editor\w*|tool\w*|app\w*|browser|keyboard|framework\w*|librar\w*|unit\w*|format\w*|style\w*|tone|length
|answers?|repl(?:y|ies)|travel\w*|trip\w*|holiday\w*|vacation\w*|destination\w*|flight\w*|train\w*|bus|commut\w*
|plans?|goals?|projects?|tasks?|hobb\w+|habit\w*|routine\w*|breakfast|lunch|dinner|snack\w*|cuisine\w*|dish\w*
|restaurant\w*|milk|sugar|spic\w*|taste\w*|taken?|takes?|way\w*|kinds?|status|state|number\w*|amount|count
|current\w*|new|old|former|past|previous|next|own\w*|used?|uses?|using|main|primary|second\w*|first|last|native
|passport|visa|licen[cs]e|permit|ticket\w*|reservation|booking|subscription\w*|membership|expir\w+|valid\w*|renew\w*
|e|cannot|can|unable|never|no|without|don|must|should|foods|medical|surger\w*|operation\w*|vaccin\w*|pregnan\w*|injur\w*
|chronic|mental|pain|symptom\w*|implant|pacemaker|emergency|disabilit\w*|hearing|vision|eyesight|handed\w*|body|dental
|parking|garage|locker|wifi|network|router|server|printer|camera|tv|console|internet|provider|runtime|language|stack|shell
|distro\w*|database|cloud|host\w*|hardware|model|brand|make|licence plate|plate|stepson|stepdaughter|step\w+|godchild
|fianc[eé]e?s?|roommate\w*|flatmate\w*|manager|team|client\w*|customer\w*|shift\w*|notice|contract|bedtime|curfew|fear\w*
|phobia\w*|temperature|thermostat|measurement\w*|currency|party|vote\w*|charit\w*|instrument\w*|collection\w*|collect\w*
|learning|learn\w*|playing|member\w*|volunteer\w*|garden\w*|plant\w*|room\w*|floor\w*|area|region|district
|street|postcode|postal|zip|code|zone|timezone|office|workplace|desk|department|industry|field|subject\w*
|topic\w*|restriction\w*|requirement\w*|need\w*|avoid\w*|not|personal|private|self|user\w*|owner|information
|info|details?|fact\w*|general|other|social|media|account\w*|handle\w*|username|up|out|off|de|du|des|di|da|do
|dos|das|der|die|del|della|dei|von|vom|van|het|la|le|el|los|las|l|d|twin\w*|in-laws?|spouse|alter|größe|gewicht
|zeit\w*|uhrzeit|termin\w*|tag\w*|familie\w*|stand|familienstand|staatsangehörig\w*|herkunft|religion|musik\w*
|buch\w*|bücher|filme?\w*|spiel\w*|reise\w*|ziel\w*|pläne|gewohnheit\w*|frühstück\w*|mittag\w*|abend\w*
|lieblings\w*|vorliebe\w*|abneigung\w*|webseite|website|internetseite|wecker|aufsteh\w*|kleidung\w*|schuh\w*
|blutgruppe|wohnsitz|anschrift|art|weise|lieu|heure\w*|réveil|date|jour\w*|famille|situation|familiale
|nationalité|origine|musique|livres?|jeux?|voyages?|projets?|habitudes?|petit|déjeuner|dîner|goûts?|préféré\w*
|préférence\w*|site|internet|taille|poids|groupe|sanguin|restriction\w*|alimentaires?|actuel\w*|matrimonial\w*
|lugar|hora\w*|despertador|fecha|día\w*|familia|estado|civil|nacionalidad|origen|música|libros?|películas?
|juegos?|viajes?|planes|hábitos?|costumbres?|desayuno|almuerzo|cena|gustos?|favorit[oa]s?|preferid[oa]s?
|preferencia\w*|sitio|página|web|talla|peso|altura|grupo|sanguíneo|actual\w*|luogo|ora|orario|sveglia|data
|giorn[oi]|famiglia|stato|civile|nazionalità|origine|musica|libr[oi]|giochi|viagg[io]|progett[io]|abitudin[ei]
|colazione|pranzo|cena|gust[io]|preferit[oaie]|preferenz[ae]|sito|taglia|altezza|gruppo|sanguigno|attuale|stato
|local|hora|horário|despertador|dia\w*|família|estado|nacionalidade|livros?|filmes?|jogos?|viagen?s?|planos
|hábitos?|café|almoço|jantar|gostos?|favorit[oa]s?|preferid[oa]s?|preferência\w*|tamanho|altura|grupo|atual|tijd
|datum|gezin|muziek|boeken|favoriete|plaats|место|жительства|время|дата|семья|музыка|книги|любим\w*|czas|rodzina
|ulubion\w*|miejsce|zamieszkania|bostad|tid|favorit\w*
""",
        r"[址处位置职务业单司学校年龄岁宠物车辆药过敏能力的我你用户们时间日期地点所在居住最喜欢爱好常用当前起床网站主页血型身高体重尺码国籍宗教家庭状况婚姻方式习惯号码版本编程语言早餐午餐晚餐口味情况类型信息の私好きな時間場所現在住所趣味起床国籍出身家族方法番号飲み物食べ物ユーザー]",
    ).pattern,
    re.IGNORECASE,
)


MAX_WORDS: Final = 10
STEM: Final = 4  # letters that a word has in common with another form of it
_PLAIN: Final = re.compile(r"[\w '’/&(),-]+")
_UNSPACED: Final = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]+")


def is_plain(slot: str, own_words: str, slots: Collection[str]) -> bool:
    """Whether each word of a slot is a form of one that the user has written, stands in a slot that there is already,
    or is a common one for such a thing, in whatever language."""
    if not _PLAIN.fullmatch(slot) or len(slot.split()) > MAX_WORDS:
        return False
    known = content_words(" ".join([own_words, *slots]))
    return all(word in known or _is_common(word) or _is_form(word, known) for word in _slot_words(slot, own_words))


def _slot_words(slot: str, own_words: str) -> Iterable[str]:
    """The words of a slot; of scripts without spaces those characters that the user has not written."""
    yield from content_words(_UNSPACED.sub(" ", slot))
    for run in _UNSPACED.findall(slot):
        if not _is_common(run):
            yield from (character for character in run if character not in own_words)


def _is_form(word: str, known: Iterable[str]) -> bool:
    return len(word) >= STEM and any(other[:STEM] == word[:STEM] for other in known)


def _is_common(word: str) -> bool:
    """Whether a word is a common one for something that there is to know of a person."""
    return _PLAIN_WORDS.fullmatch(word) is not None or any(each.fullmatch(word) for each in _PATTERNS.values())
