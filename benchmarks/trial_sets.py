"""Sets of extraction questions for `benchmarks.trial`: who wrote them when, and what for.

    order, talk, weather    after commit 92f5fe2 (`rules/2`, its defaults and data); what
                            failed in their selection items led to `rules/3`
    library, match, recipe  after commit 7e6925e (`rules/3`): nothing was chosen by them
    taxi, advert, visit     after commit a2099f7 (`rules/4`, which decides as `rules/3`): of
                            nine drafts those whose selection items four examples answer well
                            (`benchmarks.by_hand`), taken before any training on them
    tree, lost, tower       after commit 9644cfd (`rules/5`): of eleven drafts those whose
                            selection items four examples answer at 0.85 and more (0.93, 0.90,
                            0.98), taken before any training on them

Each function returns one text and (question, answer) pairs on it.
"""

from __future__ import annotations

import random
from collections.abc import Callable

Facts = dict[str, str]

NAMES = ["Adela", "Brun", "Cosmo", "Daria", "Edwin", "Fatou", "Goran", "Hilde", "Imre", "Jonas"]
SURNAMES = ["Abel", "Bekker", "Castellan", "Dvorak", "Eriksen", "Falk", "Grieg", "Haldane"]


def person(dice: random.Random) -> str:
    return f"{dice.choice(NAMES)} {dice.choice(SURNAMES)}"


def order(dice: random.Random) -> tuple[str, Facts]:
    """Return an order as a form and (question, answer) pairs."""
    number, customer = f"{dice.choice('BCDF')}{dice.randint(1000, 9999)}", person(dice)
    thing = dice.choice(["lamps", "ropes", "kettles", "stools", "mirrors", "brushes"])
    count, price = str(dice.randint(2, 60)), f"${dice.randrange(40, 900, 5)}.00"
    day = f"{dice.randint(1, 28)} {dice.choice(['April', 'August', 'December'])}"
    town = dice.choice(["Amberley", "Birkdale", "Corby", "Dunster", "Elstow"])
    text = (
        f"Order: {number}. Customer: {customer}. Goods: {thing}. Pieces: {count}. "
        f"Price: {price}. Delivery: {day}. Town: {town}."
    )
    return text, {
        "What is the number of the order?": number,
        "Who is the customer?": customer,
        "What was ordered?": thing,
        "How many pieces were ordered?": count,
        "What is the price?": price,
        "When will it be delivered?": day,
        "To which town will it be delivered?": town,
    }


def talk(dice: random.Random) -> tuple[str, Facts]:
    """Return a talk of two people and (question, answer) pairs."""
    one, other = dice.sample(NAMES, 2)
    place = dice.choice(["the library", "the station", "the old mill", "the fish market"])
    day = dice.choice(["Monday", "Tuesday", "Thursday", "Saturday"])
    time = f"{dice.randint(7, 20)}:{dice.choice(['15', '30', '45'])}"
    thing = dice.choice(["a map", "two tents", "a torch", "warm socks", "the tickets"])
    way = dice.choice(["bus", "train", "bicycle", "boat"])
    text = (
        f'"Shall we meet at {place} on {day}?" asked {one}. "Yes, at {time}," said {other}. '
        f'"Please bring {thing}. I will come by {way}."'
    )
    return text, {
        "Where do they meet?": place,
        "On what day do they meet?": day,
        "At what time do they meet?": time,
        f"What should {one} bring?": thing,
        f"How will {other} come?": way,
        "Who asked the question?": one,
    }


def weather(dice: random.Random) -> tuple[str, Facts]:
    """Return a weather report and (question, answer) pairs."""
    town = dice.choice(["Grimsay", "Hollin", "Ivybridge", "Jarrow", "Kelso"])
    wind = dice.choice(["north", "south", "east", "west"])
    rain, high = f"{dice.randint(2, 60)} mm", f"{dice.randint(4, 33)} degrees"
    rise = f"{dice.randint(4, 8)}:{dice.randint(10, 59)}"
    danger = dice.choice(["fog", "black ice", "high waves", "thunder", "forest fires"])
    text = (
        f"Weather for {town}: wind from the {wind}, {rain} of rain, up to {high}. "
        f"The sun rises at {rise}. There is a warning of {danger}."
    )
    return text, {
        "For which town is the report?": town,
        "Where does the wind come from?": wind,
        "How much rain will fall?": rain,
        "How warm will it get?": high,
        "When does the sun rise?": rise,
        "What is the warning about?": danger,
    }


def library(dice: random.Random) -> tuple[str, Facts]:
    """Return a note of a library and (question, answer) pairs."""
    reader, shelf = person(dice), f"{dice.choice('BDGKM')}{dice.randint(10, 99)}"
    book = dice.choice(["Seven Rivers", "The Iron Gate", "A Winter Fair", "Low Tide"])
    day = f"{dice.randint(1, 28)} {dice.choice(['May', 'July', 'November'])}"
    fee, pages = (
        f"€{dice.randint(1, 9)}.{dice.randint(10, 99)}",
        f"{dice.randint(90, 800)} pages",
    )
    text = (
        f'{reader} borrowed the book "{book}" from shelf {shelf}. It has {pages} and must be '
        f"returned by {day}. The fee is {fee}."
    )
    return text, {
        "Who borrowed the book?": reader,
        "What is the title of the book?": book,
        "On which shelf did the book stand?": shelf,
        "How long is the book?": pages,
        "By when must the book be returned?": day,
        "How much is the fee?": fee,
    }


def match(dice: random.Random) -> tuple[str, Facts]:
    """Return a report on a match and (question, answer) pairs."""
    ground = dice.choice(["Elm Park", "Castle Road", "Mill Lane", "Ferry Field"])
    scorer, crowd = person(dice), f"{dice.randrange(800, 9900, 50):,}"
    minute, score = f"{dice.randint(2, 89)}th minute", f"{dice.randint(1, 5)}-0"
    day = dice.choice(["Monday", "Wednesday", "Friday", "Sunday"])
    sky = dice.choice(["rain", "snow", "sunshine", "fog"])
    text = (
        f"On {day} {crowd} people came to {ground} in {sky}. {scorer} scored the first goal in "
        f"the {minute}. The match ended {score}."
    )
    return text, {
        "Where was the match played?": ground,
        "Who scored the first goal?": scorer,
        "How many people came?": crowd,
        "When was the first goal scored?": minute,
        "How did the match end?": score,
        "On what day was the match?": day,
        "What was the weather like?": sky,
    }


def recipe(dice: random.Random) -> tuple[str, Facts]:
    """Return a short recipe and (question, answer) pairs."""
    dish = dice.choice(["pea soup", "plum cake", "corn bread", "fish pie", "rice pudding"])
    cook = person(dice)
    flour, heat = f"{dice.randrange(100, 900, 25)} g", f"{dice.randrange(120, 240, 5)} °C"
    time = f"{dice.randint(10, 95)} minutes"
    spice = dice.choice(["nutmeg", "thyme", "saffron", "cumin", "dill"])
    text = (
        f"{cook} makes {dish} with {flour} of flour. It is baked for {time} at {heat} and "
        f"served with {spice}."
    )
    return text, {
        "Who is the cook?": cook,
        "What is made?": dish,
        "How much flour is needed?": flour,
        "How long is it baked?": time,
        "How hot is the oven?": heat,
        "With what is it served?": spice,
    }


def taxi(dice: random.Random) -> tuple[str, Facts]:
    """Return a call for a taxi and (question, answer) pairs."""
    place = dice.choice(
        ["the opera", "the airport", "the old harbour", "the zoo", "the north gate"]
    )
    count = dice.choice(["two", "three", "four", "five", "six"])
    time = f"{dice.randint(5, 11)}:{dice.choice(['10', '25', '40', '55'])}"
    caller, price = person(dice), f"${dice.randint(9, 60)}"
    text = (
        f'"A taxi to {place}, please." "For how many people?" "For {count}, at {time}." '
        f'"What is your name?" "{caller}." "That will be {price}."'
    )
    return text, {
        "Where does the caller want to go?": place,
        "How many people will ride?": count,
        "At what time will the taxi come?": time,
        "What is the name of the caller?": caller,
        "How much will it cost?": price,
    }


def advert(dice: random.Random) -> tuple[str, Facts]:
    """Return a small ad and (question, answer) pairs."""
    thing = dice.choice(
        ["piano", "rowing boat", "oak table", "bicycle", "tent", "sewing machine"]
    )
    price, age = f"£{dice.randrange(20, 900, 10)}", f"{dice.randint(2, 40)} years"
    phone = f"{dice.randint(200, 999)} {dice.randint(1000, 9999)}"
    town = dice.choice(["Ashby", "Corby", "Dunster", "Elstow", "Filey"])
    seller = person(dice)
    text = (
        f"FOR SALE: {thing}, {age} old, {price}. To be seen in {town}. Call {seller}, {phone}."
    )
    return text, {
        "What is for sale?": thing,
        "How much does it cost?": price,
        "How old is it?": age,
        "Where can it be seen?": town,
        "Who sells it?": seller,
        "What is the phone number?": phone,
    }


def visit(dice: random.Random) -> tuple[str, Facts]:
    """Return a visitor's pass as a form and (question, answer) pairs."""
    visitor = person(dice)
    firm = dice.choice(
        ["Northwind Tools", "Salt & Sons", "Blue Kiln", "Harrow Paper", "Vesta Glass"]
    )
    room = f"{dice.choice('BDGKM')}{dice.randint(10, 99)}"
    time = f"{dice.randint(8, 17)}:{dice.choice(['05', '20', '35', '50'])}"
    text = f"VISITOR PASS. Name: {visitor}. Firm: {firm}. Room: {room}. Time: {time}."
    return text, {
        "What is the name of the visitor?": visitor,
        "From which firm is the visitor?": firm,
        "Which room may the visitor enter?": room,
        "At what time does the visit begin?": time,
    }


def tree(dice: random.Random) -> tuple[str, Facts]:
    """Return a sign at a tree and (question, answer) pairs."""
    kind = dice.choice(["oak", "beech", "cedar", "lime", "walnut"])
    year, tall = str(dice.randint(1650, 1950)), f"{dice.randint(12, 48)} m"
    bird = dice.choice(["owls", "storks", "doves", "woodpeckers", "rooks"])
    park = dice.choice(["Mill Park", "Castle Park", "Abbey Garden", "Fox Wood"])
    text = (
        f"This {kind} in {park} was planted in {year}. It is {tall} tall. In its crown live "
        f"{bird}."
    )
    return text, {
        "What kind of tree is it?": kind,
        "Where does the tree stand?": park,
        "When was the tree planted?": year,
        "How tall is the tree?": tall,
        "Which birds live in the tree?": bird,
    }


def lost(dice: random.Random) -> tuple[str, Facts]:
    """Return a notice of a lost thing and (question, answer) pairs."""
    thing = dice.choice(["umbrella", "scarf", "wallet", "camera", "violin", "watch"])
    colour = dice.choice(["black", "brown", "green", "red", "grey"])
    street = dice.choice(["Hill Street", "Quay Road", "Church Lane", "Station Square"])
    day = dice.choice(["Monday", "Wednesday", "Friday", "Sunday"])
    reward, phone = (
        f"${dice.randrange(10, 200, 5)}",
        f"{dice.randint(200, 999)} {dice.randint(1000, 9999)}",
    )
    text = (
        f"LOST on {day} in {street}: a {colour} {thing}. Reward: {reward}. Please call {phone}."
    )
    return text, {
        "What was lost?": thing,
        "Which colour is it?": colour,
        "Where was it lost?": street,
        "On which day was it lost?": day,
        "How much is the reward?": reward,
        "Which number should be called?": phone,
    }


def tower(dice: random.Random) -> tuple[str, Facts]:
    """Return a paragraph of a travel guide and (question, answer) pairs."""
    name = dice.choice(["Bell Tower", "Long Bridge", "Old Mill", "White Gate", "Corn Hall"])
    town = dice.choice(["Ashby", "Corby", "Dunster", "Elstow", "Filey"])
    year, steps = str(dice.randint(1200, 1900)), str(dice.randint(40, 400))
    fee = f"${dice.randint(2, 19)}"
    drink = dice.choice(["coffee", "lemonade", "cider", "tea"])
    text = (
        f"The {name} of {town} was built in {year}. Climb its {steps} steps for {fee} and have "
        f"a cup of {drink} at the top."
    )
    return text, {
        "In which town does it stand?": town,
        "When was it built?": year,
        "How many steps are there?": steps,
        "How much does it cost to climb it?": fee,
        "What can visitors drink at the top?": drink,
    }


Kind = Callable[[random.Random], tuple[str, Facts]]
SETS: dict[str, Kind] = {
    "order": order,
    "talk": talk,
    "weather": weather,
    "library": library,
    "match": match,
    "recipe": recipe,
    "taxi": taxi,
    "advert": advert,
    "visit": visit,
    "tree": tree,
    "lost": lost,
    "tower": tower,
}
