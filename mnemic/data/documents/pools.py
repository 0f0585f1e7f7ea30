"""Names and values of generated documents; splits share none."""

from collections.abc import Sequence
from random import Random
from typing import NamedTuple, TypeVar

from mnemic.data.contract import Split

T = TypeVar("T")


def select_pool(items: Sequence[T], split: Split) -> list[T]:
    """Select a split's items: of four, the third is for validation, the last for test."""
    remainders = {"train": (0, 1), "validation": (2,), "test": (3,)}[split]
    return [item for number, item in enumerate(items) if number % 4 in remainders]


class SplitSampler(NamedTuple):
    """Draw words and templates of one split."""

    split: Split
    generator: Random

    def choose(self, items: Sequence[T]) -> T:
        """Draw one item of the split's pool."""
        return self.generator.choice(select_pool(items, self.split))

    def sample(self, items: Sequence[T], count: int) -> list[T]:
        """Draw different items of the split's pool."""
        return self.generator.sample(select_pool(items, self.split), count)

    def draw_name(self) -> str:
        """Draw a first and last name."""
        return f"{self.choose(FIRST_NAMES)} {self.choose(LAST_NAMES)}"

    def flip(self, share: float) -> bool:
        """Draw whether something of this share happens."""
        return self.generator.random() < share

    def draw_amount(self, low: int, high: int) -> str:
        """Draw an amount of money as a bill writes it."""
        number = self.generator.randint(low, high)
        cents = self.generator.choice(("", ".00", ".50", f".{self.generator.randint(10, 99)}"))
        template = self.generator.choice(("{} euros", "€{}", "${}", "{} EUR", "£{}"))
        return template.format(f"{number:,}{cents}" if self.generator.random() < 0.5 else f"{number}{cents}")

    def draw_digits(self, count: int) -> str:
        """Draw a number of so many digits."""
        return "".join(self.generator.choice("0123456789") for _ in range(count))


def split_words(text: str) -> tuple[str, ...]:
    """Split a text of names at commas and line breaks."""
    return tuple(name.strip() for name in text.replace("\n", ",").split(",") if name.strip())


def split_phrases(text: str) -> tuple[str, ...]:
    """Split wordings at ``|``; line breaks are blanks."""
    return tuple(" ".join(phrase.split()) for phrase in text.split("|"))


FIRST_NAMES = split_words(
    """Anna, Bruno, Clara, Derek, Elif, Farid, Greta, Hiro, Ines, Jonas, Kavya, Liam, Maja, Nadia, Omar, Petra,
    Quentin, Rosa, Sami, Thea, Uma, Viktor, Wanda, Xavier, Yara, Zeno, Amina, Boris, Chloe, Dmitri, Esther, Finn,
    Gita, Hanna, Igor, Julia, Kofi, Lena, Mateo, Nora, Oskar, Paula, Rafael, Selma, Tomas, Ulla, Vera, Willem,
    Yusuf, Zoe, Alba, Bashir, Carmen, Dinah, Emil, Fiona, Goran, Hilde, Ivan, Jasmin, Karim, Lotte, Miguel, Noor"""
)
LAST_NAMES = split_words(
    """Adler, Brandt, Costa, Duval, Engel, Ferro, Grau, Holm, Ivers, Jansen, Keller, Lindqvist, Moreau, Novak,
    Okafor, Pereira, Quist, Rossi, Sato, Tanaka, Ulrich, Vega, Wagner, Yilmaz, Zimmer, Almeida, Bianchi, Cohen,
    Dahl, Eriksen, Fontaine, Gruber, Haddad, Ibarra, Johansson, Kowalski, Larsen, Mbeki, Nakamura, Olsen, Petrov,
    Ramirez, Schuster, Torres, Umarov, Virtanen, Weiss, Young, Zhao, Abbott, Barlow, Chandra, Doyle, Farkas"""
)
CITIES = split_words(
    """Lisbon, Oslo, Kyoto, Marrakesh, Quito, Tallinn, Bergen, Porto, Krakow, Valencia, Galway, Hanoi, Ghent, Bern,
    Naples, Riga, Salvador, Turin, Utrecht, Vilnius, Zagreb, Adelaide, Bruges, Cusco, Dakar, Essen, Fez, Graz,
    Havana, Izmir, Jaipur, Leeds, Malmo, Nairobi, Odense, Palermo, Rouen, Seville, Tbilisi, Uppsala"""
)
ANIMALS = split_words(
    """dog, cat, rabbit, parrot, hamster, tortoise, canary, guinea pig, ferret, pony, goldfish, hedgehog, gecko, goat,
    budgie, donkey"""
)
FOODS = split_words(
    """lentil soup, apple pie, mushroom risotto, fish tacos, goulash, ramen, spinach lasagne, onion tart, paella,
    chicken curry, potato salad, pancakes, moussaka, shakshuka, plum cake, gnocchi, pad thai, borscht, falafel,
    cheese fondue, pumpkin bread, sushi, dumplings, couscous"""
)
GROCERIES = split_words(
    """flour, eggs, butter, oat milk, rice, tomatoes, olive oil, coffee, apples, basil, lentils, yoghurt, carrots,
    walnuts, honey, garlic, onions, cheese, mustard, black tea, raisins, spinach, vinegar, almonds, leeks, oranges,
    chickpeas, cinnamon, ginger, potatoes, beetroot, mushrooms, cream, salt, pasta, lemons, bread, sugar, pears,
    plums"""
)
GEAR = split_words(
    """tent, sleeping bag, rain jacket, head torch, water bottle, map, compass, stove, matches, sunscreen, gloves,
    first-aid kit, pocket knife, rope, spare socks, power bank, binoculars, hat, towel, notebook, camera, whistle,
    cooking pot, walking poles, blanket, mug, repair tape, gaiters, sunglasses, lantern, earplugs, passport"""
)
HOBBIES = split_words(
    """pottery, climbing, chess, gardening, sailing, knitting, photography, archery, birdwatching, fencing, origami,
    calligraphy, surfing, woodwork, astronomy, badminton, beekeeping, choir singing, cycling, drawing, judo, rowing,
    skating, swimming, tap dancing, table tennis, welding, yoga, baking, running, embroidery, geocaching"""
)
INSTRUMENTS = split_words(
    "violin, cello, flute, trumpet, piano, harp, clarinet, drums, guitar, oboe, accordion, banjo, saxophone, viola,"
    "trombone, ukulele, mandolin, organ, bassoon, bagpipes, tuba, lute, zither, horn"
)
JOBS = split_words(
    """nurse, carpenter, translator, pilot, baker, surveyor, librarian, electrician, teacher, gardener, architect,
    bus driver, dentist, florist, geologist, journalist, midwife, optician, plumber, chemist, tailor, welder,
    economist, paramedic"""
)
THINGS = split_words(
    """bicycle, lawnmower, sofa, laptop, telescope, dishwasher, camera, kayak, bookshelf, sewing machine, toaster,
    heater, guitar amplifier, drill, desk lamp, fridge, washing machine, tent, printer, armchair,
    coffee grinder, piano stool, vacuum cleaner, wheelbarrow"""
)
COLORS = split_words(
    "dark green, silver, bright yellow, navy blue, white, orange, burgundy, turquoise, grey, black, light blue, purple"
)
STREETS = split_words(
    """Mill Lane, Harbour Street, Station Road, Elm Avenue, Castle Hill, Baker's Row, Garden Way, Church Street,
    North Quay, Park Crescent, Orchard Close, Bridge Street, Kiln Road, Market Square, Linden Alley, Abbey Walk"""
)
COMPANIES = split_words(
    """Northwind Insurance, Alder Energy, Bluepeak Telecom, Corvin Bank, Delta Water, Eastgate Motors, Fernhill Dental,
    Glenbrook Travel, Halden Optics, Ironbridge Gym, Juniper Books, Kestrel Couriers, Larkfield Clinic, Meridian Rail,
    Novaterra Seeds, Orbit Broadband"""
)
