"""Questions by hand, beside the generated ones: in other words altogether, and about what was never told."""

from __future__ import annotations

# What was said, and what is asked, in no or few words of it. The rules of relevance were chosen with an eye on them.
PARAPHRASED = tuple(
    (said, asked)
    for said, _, asked in (
        line.partition("|")
        for line in """
I drink my espresso black, no sugar.|How do I take my coffee?
We decided to go with Postgres instead of Mongo for the new service.|Which database did we choose?
My flight leaves at 6:40 on Friday.|When do I have to be at the airport?
I have been running three times a week since March.|What do I do to keep fit?
The landlord raised the rent to 1,150 euros.|How much do I pay for my flat?
My daughter starts school in September.|What happens after the summer with my kid?
I'm vegetarian, by the way.|Do I eat meat?
The dog is called Biscuit.|What is my pet's name?
I finished reading The Magic Mountain yesterday.|Which novel did I complete?
Our standup is at quarter past nine.|When is the daily team meeting?
I work as a nurse on night shifts.|What is my job?
The boiler was repaired last Tuesday, they replaced the pump.|What was wrong with the heating?
I cannot stand horror films.|What kind of movies do I dislike?
I use Arch Linux with i3 on my laptop.|Which operating system do I run?
The doctor wants me to cut down on salt.|What diet advice did I get?
I moved to Bristol two years ago.|Where do I live?
My wife and I married in 2014.|When is our wedding from?
I sold the motorbike because of my back.|Why did I get rid of the bike?
Can you explain how the garbage collector in Go works?|What did I ask about memory management?
Write a Python function that parses ISO dates.|What was that code for timestamps you wrote?
We are painting the nursery in mint green.|What colour will the baby's room be?
The meeting with the investors went badly, they want more numbers.|How did the pitch go?
I always back up to the NAS in the basement.|Where are my backups?
I parked on level 3, near the blue lift.|Where did I leave the car?
My budget for the new phone is about 500.|How much can I spend on a smartphone?
The printer in the office is out of toner again.|What's the problem with the printing device?
I am learning the cello.|Which instrument do I play?
We go to the Baltic sea each July.|Where do we spend our holidays?
My mother turns seventy next month.|Whose birthday is coming?
I prefer short answers without lists.|How should you write to me?
Der Schlüssel liegt unter der Matte.|Wo habe ich den Schlüssel hingelegt?
Meine Allergie gegen Pollen ist im Mai am schlimmsten.|Wogegen bin ich allergisch?
The part number is XJ-4471-B.|XJ-4471-B
Ticket 88213 is about the login page.|what was 88213
I wear glasses only for reading.|Do I need spectacles?
We hired Priya as head of design.|Who leads the designers?
The wifi at the cabin is terrible.|How is the internet connection in the hut?
Give me a recipe for lentil soup.|What was the dish with legumes?
I quit smoking on New Year's Eve.|Since when have I not had a cigarette?
My thesis is about bird migration.|What am I doing research on?
""".strip().splitlines()
    )
)
# Of anything, and of the same kinds as what the generated set tells, of people and things that are not in it. The
# rules were chosen on other such questions.
NEVER_TOLD = tuple(
    """
What is the melting point of gold?
How do I unclog a sink?
Which tablets did the doctor give me for the cough?
What was the result of my blood test?
How many minutes do noodles have to cook?
What is the password of my mail account?
Who composed the Four Seasons?
When does my passport expire?
What is the model number of the fridge?
How much rent do I pay?
Which bank is my savings account with?
What did the electrician find in the fuse box?
When does summer time begin?
How do I update the firmware of the router?
What is the code of the garage door?
Which newspaper did I subscribe to?
How heavy is a blue whale?
What curtains did we pick for the living room?
Who invented the telephone?
How many floors does the office have?
Is there anything my brother Marcel cannot tolerate?
Where is the home of my friend Sabine?
What present would make my niece Lotte happy?
How does my boss Torsten use the spare time?
What beverage shall I offer my aunt Brigitte?
Which company commissioned Sapphire?
How much money is available for Thistle?
Which store sold me the blender?
When do I depart for Istanbul?
What was the culinary highlight of Havana?
Who accompanied us through Montreal?
What size of shirt does my brother Emil wear?
What is the surname of my friend Felix?
Which language does my uncle Hugo speak?
What is the email address of my colleague Wanda?
How heavy is the suitcase?
What brand is the telescope?
Who tests Marble?
How many stars does the hotel in Vienna have?
Which museum did we see in Athens?
""".strip().splitlines()
)
# What was said plainly, and what is asked about it in the words that come to mind first.
TOLD_PLAINLY = tuple(
    (said, asked)
    for said, _, asked in (
        line.partition("|")
        for line in """
My sister's dog is called Biscuit.|What is my sister's dog called?
I parked the car on level 3 near the blue lift.|Where did I park the car?
My dentist appointment is on 12 March at nine.|When is my dentist appointment?
The wifi password hint at the cabin is the name of the lake.|What is the wifi password hint at the cabin?
I keep the spare key under the third flower pot.|Where do I keep the spare key?
My bike has a Shimano gear hub.|Which gear hub does my bike have?
We chose oak for the kitchen worktop.|What wood did we choose for the kitchen worktop?
My boss is Marianne Holt.|Who is my boss?
I am reading The Magic Mountain at the moment.|Which book am I reading?
My flight to Lisbon leaves at 6:40 on Friday.|When does my flight to Lisbon leave?
The boiler was repaired by Hartmann last year.|Who repaired the boiler?
I pay 925 euros rent a month.|How much rent do I pay?
My gym is the Titan on Bridge Street.|What is my gym?
My grandmother was born in Trieste.|Where was my grandmother born?
I drive a grey Skoda Octavia.|What car do I drive?
Our anniversary is on 14 September.|When is our anniversary?
My laptop runs Arch Linux.|What does my laptop run?
I bought the sofa at Northgate.|Where did I buy the sofa?
My favourite tea is lapsang souchong.|What is my favourite tea?
My project at work is called Heron.|What is my project at work called?
""".strip().splitlines()
    )
)
