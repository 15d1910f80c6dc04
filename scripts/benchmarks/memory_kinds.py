"""What the people of the generated memories talk about: kinds of facts, each with ways to state it, ways to ask for it
that share few words with those, and values. `{p}` is whom or what it is about, `{v}` the value."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Kind:
    """One slot. Where there is an `opening`, the statement follows it in the same session and does not name `{p}`."""

    name: str
    about: str
    statements: tuple[str, ...]
    questions: tuple[str, ...]
    values: tuple[str, ...]
    opening: str = ""


def _lines(text: str) -> tuple[str, ...]:
    return tuple(line.strip() for line in text.strip().splitlines())


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.replace("\n", " ").split(","))


_MONTHS = _words("January,February,March,April,May,June,July,August,September,October,November,December")
DATES = tuple(f"{day} {month}" for month in _MONTHS for day in (2, 5, 9, 14, 17, 21, 26))
CITIES = _words(
    "Lisbon,Oslo,Vienna,Prague,Dublin,Athens,Seville,Hamburg,Lyon,Porto,Turin,Ghent,Krakow,Riga,Malmo,Basel,Leeds,"
    "Naples,Bergen,Utrecht,Bristol,Valencia,Toulouse,Aarhus,Salzburg,Split,Tallinn,Zagreb,Cork,Graz,Nice,Bilbao"
)
_RELATIONS = _words(
    "my sister,my brother,my aunt,my uncle,my cousin,my neighbour,my colleague,my boss,my friend,my niece,my nephew,"
    "my grandmother,my flatmate,my dentist,my trainer"
)
_NAMES = _words(
    "Anna,Boris,Carla,David,Elif,Felix,Greta,Hugo,Ines,Jonas,Katya,Leo,Mira,Nils,Olga,Pavel,Quinn,Rosa,Stefan,Tessa,"
    "Umut,Vera,Wim,Xenia,Yusuf,Zoe,Amir,Bella,Cyril,Dora,Emil,Freya,Gina,Hannes,Ida,Jakob,Klara,Luca,Marta,Noah,Orla,"
    "Pia,Rafael,Sofia,Tom,Ulla,Viktor,Wanda,Yara,Zeno"
)
ABOUT = {
    "person": tuple(f"{_RELATIONS[number % len(_RELATIONS)]} {name}" for number, name in enumerate(_NAMES)),
    "thing": _words(
        "the passport,the spare key,the camera,the drill,the sleeping bag,the winter coat,the violin,the tent,"
        "the ladder,the hard disk,the tax papers,the sewing machine,the bicycle pump,the suitcase,the microphone,"
        "the telescope,the ski boots,the pressure cooker,the board game,the umbrella,the projector,"
        "the soldering iron,the hammock"
    ),
    "project": _words(
        "Falcon,Juniper,Marble,Nimbus,Orchid,Pelican,Quartz,Rocket,Saffron,Tundra,Umbra,Velvet,Walnut,Xylo,Yellowstone,"
        "Zephyr,Anchor,Beacon,Copper,Drift,Ember,Fjord,Glacier,Harbour,Ivory"
    ),
    "city": CITIES,
}

KINDS = (
    Kind("birthday", "person", _lines("""
        {p} was born on {v}, please keep that in mind
        The birthday of {p} is {v}
        We celebrate {p} every year on {v}"""), _lines("""
        When does {p} turn a year older?
        On what day should I bake a cake with candles for {p}?
        When do I have to congratulate {p}?"""), DATES),
    Kind("allergy", "person", _lines("""
        {p} is allergic to {v}
        Keep {v} away from {p}, it brings on a rash
        The doctor told {p} never to touch {v} again"""), _lines("""
        What must I leave out when I cook for {p}?
        Which food makes {p} ill?
        Is there anything {p} cannot tolerate?"""), _words(
            "peanuts,shrimp,strawberries,celery,soy,sesame,walnuts,eggs,mustard,lactose,gluten,kiwi,mussels,lupin")),
    Kind("job", "person", _lines("""
        {p} works as a {v}
        {p} has started a new position as a {v}
        {p} is a {v} and rather proud of it"""), _lines("""
        What does {p} do for a living?
        How does {p} earn money?
        What is the profession of {p}?"""), _words(
            "nurse,plumber,pilot,baker,librarian,surveyor,carpenter,judge,beekeeper,tram driver,midwife,optician,"
            "florist,roofer,translator,geologist,notary,paramedic")),
    Kind("home", "person", _lines("""
        {p} has moved to {v}
        {p} lives in {v} these days
        {p} found a nice flat in {v}"""), _lines("""
        Where is the home of {p}?
        Which town would I travel to for a visit to {p}?
        Where does {p} reside?"""), CITIES),
    Kind("gift", "person", _lines("""
        {p} would love {v} for Christmas
        {p} keeps dreaming of {v}
        {p} hinted that {v} would be welcome"""), _lines("""
        What present would make {p} happy?
        I need an idea what to buy for {p}
        What is on the wish list of {p}?"""), _words(
            "a telescope,a pasta machine,hiking poles,a record player,a silk scarf,a chess clock,a bonsai tree,"
            "watercolours,a hand blender,noise-cancelling headphones,a globe,a kayak,a leather wallet,a rain barrel")),
    Kind("pet", "person", _lines("""
        {p} has a {v} now
        {p} adopted a {v} from the shelter
        {p} shares the flat with a {v}"""), _lines("""
        Which animal does {p} keep?
        What kind of pet is waiting at the door of {p}?
        Who needs feeding when {p} is on holiday?"""), _words(
            "tabby cat,greyhound,parrot,hamster,tortoise,rabbit,gecko,poodle,ferret,canary,dachshund,guinea pig")),
    Kind("car", "person", _lines("""
        {p} drives a {v}
        {p} bought a second-hand {v}
        {p} is picking us up in a {v}"""), _lines("""
        What vehicle does {p} own?
        Which car do I have to look out for when {p} comes?
        What is parked in the garage of {p}?"""), _words(
            "red Fiat,blue Volvo,white Tesla,green Mini,silver Skoda,black Audi,yellow Beetle,grey Toyota,old Saab,"
            "Renault van,orange Dacia,brown Mercedes")),
    Kind("hobby", "person", _lines("""
        {p} spends every weekend {v}
        {p} is crazy about {v}
        {p} has got into {v} lately"""), _lines("""
        What does {p} do for fun?
        How does {p} use the spare time?
        What leisure activity does {p} enjoy most?"""), _words(
            "rock climbing,baking sourdough,playing the cello,birdwatching,restoring clocks,diving,knitting,fencing,"
            "sailing,pottery,growing orchids,orienteering,juggling,playing chess")),
    Kind("drink", "person", _lines("""
        {p} drinks nothing but {v}
        {p} always orders {v} at the bar
        For {p} it has to be {v}, whatever the hour"""), _lines("""
        What beverage shall I offer {p}?
        What should be in the fridge for {p}?
        What does {p} like in the glass?"""), _words(
            "ginger ale,oolong tea,tomato juice,espresso,oat milk,elderflower lemonade,buttermilk,kombucha,cider,"
            "sparkling water,hot chocolate,mango lassi")),
    Kind("studies", "person", _lines("""
        {p} studies {v} at the university
        {p} has enrolled for {v}
        {p} is writing a thesis in {v}"""), _lines("""
        What is the academic major of {p}?
        Which subject did {p} pick for the degree?
        What field is {p} being trained in?"""), _words(
            "marine biology,law,musicology,astronomy,economics,linguistics,architecture,veterinary medicine,philosophy,"
            "statistics,archaeology,theology")),
    Kind("injury", "person", _lines("""
        {p} has broken {v}
        {p} fell off the bike and hurt {v}
        {p} is in plaster because of {v}"""), _lines("""
        Which part of the body did {p} injure?
        What happened to {p} in the accident?
        What does {p} need to rest after the mishap?"""), _words(
            "the left wrist,the right ankle,a rib,the collarbone,a thumb,the knee,the shoulder,a toe,the elbow")),
    Kind("loan", "person", _lines("""
        I have lent {v} to {p}
        {p} borrowed {v} from me
        {v} is with {p} for the time being"""), _lines("""
        What do I have to get back from {p}?
        Which of my belongings is at the place of {p}?
        What does {p} still owe me?"""), _words(
            "my lawn mower,the novel Middlemarch,forty euros,my waffle iron,the road atlas,a bicycle lock,my guitar,"
            "the picnic blanket,my garden hose,the Sherlock Holmes box,a folding table,my jump leads")),
    Kind("place", "thing", _lines("""
        I have put {p} {v}
        {p} is {v}, in case I ask
        Note that I keep {p} {v}"""), _lines("""
        Where can I find {p}?
        I am looking for {p}, any idea where it went?
        In which spot did I store {p}?"""), _words(
            "in the attic,under the stairs,in the blue drawer,behind the sofa,in the cellar,on top of the wardrobe,"
            "in the garage,beside the washing machine,in the garden shed,under the guest bed,in the hall closet")),
    Kind("price", "thing", _lines("""
        I paid {v} for {p}
        {p} set me back {v}
        They charged me {v} for {p}"""), _lines("""
        How much did {p} cost?
        What was the price of {p}?
        What amount of money went into {p}?"""), tuple(f"{amount} euros" for amount in range(19, 400, 17))),
    Kind("shop", "thing", _lines("""
        I got {p} from {v}
        {p} was ordered at {v}
        {v} had {p} on sale, so I took it"""), _lines("""
        Which store sold me {p}?
        Where did I purchase {p}?
        Whom do I turn to about the guarantee of {p}?"""), _words(
            "Miller & Sons,the flea market,Hartmann,Northgate,a seller in Ghent,the corner shop,Outdoor Pete,Brandt,"
            "the museum store,Lindqvist,the charity shop,Oakwood")),
    Kind("deadline", "project", _lines("""
        We have to hand in {p} by {v}
        The deadline of {p} has been set to {v}
        {p} must be delivered on {v} at the latest"""), _lines("""
        When is {p} due?
        How long do we still have for finishing {p}?
        By what date does {p} need to be complete?"""), DATES),
    Kind("language", "project", _lines("""
        {p} is written in {v}
        The team decided to build {p} with {v}
        We are porting {p} to {v}"""), _lines("""
        Which programming language do we use for {p}?
        What is {p} implemented in?
        What do newcomers have to learn to work on {p}?"""), _words(
            "Rust,Kotlin,Elixir,Haskell,Python,Go,Scala,TypeScript,Julia,Erlang,OCaml,Swift")),
    Kind("budget", "project", _lines("""
        {p} has a budget of {v}
        Management granted {v} for {p}
        We may spend {v} on {p}"""), _lines("""
        How much money is available for {p}?
        What are the financial limits of {p}?
        What sum was approved for {p}?"""), tuple(f"{amount} thousand euros" for amount in range(15, 260, 13))),
    Kind("client", "project", _lines("""
        Our customer for {p} is {v}
        {p} was ordered by {v}
        {v} signed the contract for {p}"""), _lines("""
        Who pays for {p}?
        Which company commissioned {p}?
        On whose behalf are we doing {p}?"""), _words(
            "Bluebird Insurance,the city of Graz,Nordwind Shipping,Alpine Foods,Kestrel Airlines,Mosaic Bank,"
            "the zoo,Harper Publishing,Solaris Energy,the opera,Pinewood Hotels,Delta Pharma")),
    Kind("outage", "project", _lines("""
        {p} went down last night because of {v}
        The crash of {p} came from {v}
        It was {v} that stopped {p}"""), _lines("""
        Why did {p} break?
        What was the root cause of the failure of {p}?
        What do we have to fix so that {p} keeps running?"""), _words(
            "an expired certificate,a full disk,a memory leak,a wrong time zone,a deadlock,a missing index,"
            "a bad firewall rule,a typo in the configuration,a stale cache,an overheated server")),
    Kind("hotel", "city", _lines("""
        We are going to stay at the {v}
        I have booked a room in the {v}
        The {v} has confirmed our reservation"""), _lines("""
        Where do we sleep in {p}?
        What is our accommodation in {p}?
        Which address do I give the taxi from the station in {p}?"""), _words(
            "Hotel Bellevue,Casa Azul,Golden Lion,Hostel Kiwi,Park Inn,Villa Rosa,Seaview Lodge,Hotel Central,"
            "Riverside Inn,The Old Mill,Pension Edelweiss,Grand Palace"), opening="I am planning a journey to {p}"),
    Kind("departure", "city", _lines("""
        The train leaves on {v}
        We set off on {v} in the morning
        The tickets are for {v}"""), _lines("""
        When do I depart for {p}?
        On which day does the trip to {p} begin?
        From when on will I be away in {p}?"""), DATES, opening="Let us get organised for the week in {p}"),
    Kind("dish", "city", _lines("""
        The best thing we ate there was {v}
        Everybody raved about the {v}
        I could not stop eating {v}"""), _lines("""
        Which food did I enjoy in {p}?
        What was the culinary highlight of {p}?
        What did I have for dinner in {p} that was so good?"""), _words(
            "grilled sardines,dumplings,saffron rice,venison stew,apple strudel,lamb shank,octopus salad,plum cake,"
            "truffle risotto,pickled herring,goulash,almond tart"), opening="I am back from {p}, what a weekend"),
    Kind("guide", "city", _lines("""
        {v} showed us around
        Our guide was {v}
        The tour was led by {v}"""), _lines("""
        Who accompanied us through {p}?
        Whose company did we enjoy on the walk in {p}?
        Which person knew all the sights of {p}?"""), _words(
            "a retired sailor,an art student,Professor Almeida,a former mayor,a taxi driver called Bruno,two actors,"
            "an old monk,Madame Fournier,a historian,a street musician"), opening="We did a walking tour in {p}"),
)  # fmt: skip
