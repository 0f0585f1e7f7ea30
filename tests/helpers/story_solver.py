"""Answer the questions of all bAbI tasks from their sentences, by rules.

The solver knows the meaning of the words and nothing of how stories are made, so it works on
official files and on generated ones.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence

MOVED = "(?:went back|went|moved|journeyed|travelled) to the"
TOOK = "(?:took|got|grabbed|picked up) the"
DROPPED = "(?:dropped|left|discarded|put down) the"
GAVE = "(?:gave|handed|passed) the"
THEN = "^(?:Then|After that|Afterwards|Following that)"
NUMBERS = ["none", "one", "two", "three"]
NEEDS = {"hungry": "kitchen", "thirsty": "kitchen", "tired": "bedroom", "bored": "garden"}
SINGULAR = {"mice": "mouse", "cats": "cat", "wolves": "wolf", "sheep": "sheep"}
PLURAL = {singular: plural for plural, singular in SINGULAR.items()}
TIMES = ["yesterday", "this morning", "this afternoon", "this evening"]
SIDES = {
    "north of": (0, 1),
    "south of": (0, -1),
    "east of": (1, 0),
    "west of": (-1, 0),
    "above": (0, 1),
    "below": (0, -1),
    "to the right of": (1, 0),
    "to the left of": (-1, 0),
}
SIDE = "|".join(SIDES)


def solve(task: int, sentences: Sequence[str], question: str) -> str:
    """Answer a question in the official files' format."""
    solver = SOLVERS.get(task, follow_people)
    return solver(sentences, question)


class People:
    """The rooms of people and objects, as far as the sentences say."""

    def __init__(self) -> None:
        self.room_of: dict[str, str] = {}
        self.not_in: dict[str, str] = {}  # person -> a place the person is not in
        self.one_of: dict[str, tuple[str, str]] = {}
        self.holder: dict[str, str] = {}
        self.rooms_of_object: dict[str, list[str]] = defaultdict(list)  # thing -> places it was brought to
        self.objects_held: dict[str, list[str]] = defaultdict(list)  # person -> things, in order
        self.gifts: list[tuple[str, str, str]] = []
        self.last_people: list[str] = []

    def read(self, sentence: str) -> None:
        if match := re.fullmatch(rf"(.+?) (?:{MOVED}|is in the) (\w+)\.", sentence):
            self.arrive(match[1], match[2])
        elif match := re.fullmatch(r"(\w+) is (?:not|no longer) in the (\w+)\.", sentence):
            self.forget(match[1])
            self.not_in[match[1]] = match[2]
        elif match := re.fullmatch(r"(\w+) is either in the (\w+) or the (\w+)\.", sentence):
            self.forget(match[1])
            self.one_of[match[1]] = (match[2], match[3])
        elif match := re.fullmatch(rf"(\w+) {TOOK} (\w+)(?: there)?\.", sentence):
            self.hold(match[1], match[2])
        elif match := re.fullmatch(rf"(\w+) {DROPPED} (\w+)(?: there)?\.", sentence):
            self.hold(match[1], match[2])
            del self.holder[match[2]]
        elif match := re.fullmatch(rf"(\w+) {GAVE} (\w+) to (\w+)\.", sentence):
            self.gifts.append((match[1], match[2], match[3]))
            self.hold(match[3], match[2])
        else:
            raise AssertionError(f"the solver cannot read {sentence!r}")

    def arrive(self, who: str, room: str) -> None:
        """Move people into a room; ``who`` is one or two names, or a pronoun."""
        names = re.findall(r"[A-Z]\w+", re.sub(THEN, "", who))
        self.last_people = names or self.last_people
        for person in self.last_people:
            self.forget(person)
            self.room_of[person] = room
            for item, holder in self.holder.items():
                if holder == person:
                    self.rooms_of_object[item].append(room)

    def forget(self, person: str) -> None:
        for known in (self.room_of, self.not_in, self.one_of):
            known.pop(person, None)

    def hold(self, person: str, item: str) -> None:
        self.holder[item] = person
        room = self.room_of.get(person)
        if room and self.rooms_of_object[item][-1:] != [room]:
            self.rooms_of_object[item].append(room)
        if item not in self.objects_held[person]:
            self.objects_held[person].append(item)

    def is_in(self, person: str, room: str) -> str:
        if person in self.one_of:
            return "maybe" if room in self.one_of[person] else "no"
        if person in self.room_of:
            return "yes" if self.room_of[person] == room else "no"
        assert self.not_in[person] == room
        return "no"

    def carried_by(self, person: str) -> list[str]:
        return [item for item in self.objects_held[person] if self.holder.get(item) == person]

    def gift(self, giver: str = "", item: str = "", receiver: str = "") -> tuple[str, str, str]:
        """Find the last gift that matches; empty fields match anything."""
        pattern = (giver, item, receiver)
        return [gift for gift in self.gifts if all(a in {"", b} for a, b in zip(pattern, gift))][-1]


def follow_people(sentences: Sequence[str], question: str) -> str:
    """Answer tasks 1, 2, 3 and 5 to 13."""
    world = People()
    for sentence in sentences:
        world.read(sentence)
    if match := re.fullmatch(r"Where is (\w+)\?", question):
        return world.room_of[match[1]]
    if match := re.fullmatch(r"Where is the (\w+)\?", question):
        return world.rooms_of_object[match[1]][-1]
    if match := re.fullmatch(r"Where was the (\w+) before the (\w+)\?", question):
        rooms = world.rooms_of_object[match[1]]
        arrivals = [n for n, room in enumerate(rooms) if room == match[2] and n > 0]
        return rooms[arrivals[-1] - 1]
    if match := re.fullmatch(r"Is (\w+) in the (\w+)\?", question):
        return world.is_in(match[1], match[2])
    if match := re.fullmatch(r"How many objects is (\w+) carrying\?", question):
        return NUMBERS[len(world.carried_by(match[1]))]
    if match := re.fullmatch(r"What is (\w+) carrying\?", question):
        return ",".join(world.carried_by(match[1])) or "nothing"
    return solve_gift(world, question)


def solve_gift(world: People, question: str) -> str:
    """Answer the questions of task 5."""
    if match := re.fullmatch(r"What did (\w+) give to (\w+)\?", question):
        return world.gift(giver=match[1], receiver=match[2])[1]
    if match := re.fullmatch(r"Who gave the (\w+)\?", question):
        return world.gift(item=match[1])[0]
    if match := re.fullmatch(r"Who gave the (\w+) to (\w+)\?", question):
        return world.gift(item=match[1], receiver=match[2])[0]
    if match := re.fullmatch(r"Who received the (\w+)\?", question):
        return world.gift(item=match[1])[2]
    match = re.fullmatch(r"Who did (\w+) give the (\w+) to\?", question)
    assert match, f"the solver cannot read {question!r}"
    return world.gift(giver=match[1], item=match[2])[2]


def iterate_neighbours(sentences: Sequence[str]) -> Iterator[tuple[str, str, tuple[int, int]]]:
    """Yield each pair of neighbours both ways: start, end, and the step between."""
    for sentence in sentences:
        match = re.fullmatch(rf"The (.+?) is ({SIDE}) the (.+)\.", sentence)
        assert match, f"the solver cannot read {sentence!r}"
        right, up = SIDES[match[2]]
        yield match[3], match[1], (right, up)
        yield match[1], match[3], (-right, -up)


def find_neighbour(sentences: Sequence[str], question: str) -> str:
    """Answer task 4."""
    match = re.fullmatch(rf"What is ({SIDE}) the (\w+)\?", question)
    inverse_match = re.fullmatch(rf"What is the (\w+) ({SIDE})\?", question)
    if match:
        room, step = match[2], SIDES[match[1]]
    else:
        assert inverse_match, f"the solver cannot read {question!r}"
        right, up = SIDES[inverse_match[2]]
        room, step = inverse_match[1], (-right, -up)
    (answer,) = {end for start, end, side in iterate_neighbours(sentences) if (start, side) == (room, step)}
    return answer


def find_path(sentences: Sequence[str], question: str) -> str:
    """Answer task 19: the only path of two steps."""
    match = re.fullmatch(r"How do you go from the (\w+) to the (\w+)\?", question)
    assert match, f"the solver cannot read {question!r}"
    links = list(iterate_neighbours(sentences))
    letters = {(0, 1): "n", (0, -1): "s", (1, 0): "e", (-1, 0): "w"}
    (answer,) = {
        f"{letters[first]},{letters[second]}"
        for start, middle, first in links
        for again, end, second in links
        if (start, end) == (match[1], match[2]) and middle == again
    }
    return answer


def compare_positions(sentences: Sequence[str], question: str) -> str:
    """Answer task 17."""
    match = re.fullmatch(rf"Is the (.+?) ({SIDE}) the (.+)\?", question)
    assert match, f"the solver cannot read {question!r}"
    spot = {match[3]: (0, 0)}
    for _ in sentences:
        for start, end, (right, up) in iterate_neighbours(sentences):
            if start in spot:
                spot.setdefault(end, (spot[start][0] + right, spot[start][1] + up))
    step = SIDES[match[2]]
    return "yes" if sum(a * b for a, b in zip(spot[match[1]], step)) > 0 else "no"


def order_times(sentences: Sequence[str], question: str) -> str:
    """Answer task 14: the person's room before the last visit to another."""
    match = re.fullmatch(r"Where was (\w+) before the (\w+)\?", question)
    assert match, f"the solver cannot read {question!r}"
    rooms: dict[int, str] = {}
    for sentence in sentences:
        time = next(n for n, name in enumerate(TIMES) if name in sentence.lower())
        visit = re.search(rf"(\w+) {MOVED} (\w+)", sentence)
        assert visit, f"the solver cannot read {sentence!r}"
        if visit[1] == match[1]:
            rooms[time] = visit[2]
    last = max(time for time, room in rooms.items() if room == match[2])
    return rooms[last - 1]


def deduce_fear(sentences: Sequence[str], question: str) -> str:
    """Answer task 15."""
    match = re.fullmatch(r"What is (\w+) afraid of\?", question)
    assert match, f"the solver cannot read {question!r}"
    text = " ".join(sentences).lower()
    fears = dict(re.findall(r"(\w+) are afraid of (\w+)", text))
    kinds = dict(re.findall(r"(\w+) is a (\w+)", text))
    return SINGULAR[fears[PLURAL[kinds[match[1]]]]]


def induce_colour(sentences: Sequence[str], question: str) -> str:
    """Answer task 16: of several animals of a kind, the last one decides."""
    match = re.fullmatch(r"What color is (\w+)\?", question)
    assert match, f"the solver cannot read {question!r}"
    text = " ".join(sentences)
    kinds = dict(re.findall(r"(\w+) is a (\w+)\.", text))
    colours = dict(re.findall(r"(\w+) is (\w+)\.", text))
    alike = [name for name in kinds if kinds[name] == kinds[match[1]] and name in colours]
    return colours[alike[-1]]


def compare_sizes(sentences: Sequence[str], question: str) -> str:
    """Answer task 18, over any number of objects in between."""
    smaller: set[tuple[str, str]] = set()
    for sentence in sentences:
        if match := re.fullmatch(r"The (.+) fits inside the (.+)\.", sentence):
            smaller.add((match[1], match[2]))
        else:
            match = re.fullmatch(r"The (.+) is bigger than the (.+)\.", sentence)
            assert match, f"the solver cannot read {sentence!r}"
            smaller.add((match[2], match[1]))
    for _ in sentences:
        smaller |= {(a, d) for a, b in smaller for c, d in smaller if b == c}
    if match := re.fullmatch(r"Does the (.+) fit in the (.+)\?", question):
        inner, outer = match[1], match[2]
    else:
        match = re.fullmatch(r"Is the (.+) bigger than the (.+)\?", question)
        assert match, f"the solver cannot read {question!r}"
        inner, outer = match[2], match[1]
    assert ((inner, outer) in smaller) != ((outer, inner) in smaller)
    return "yes" if (inner, outer) in smaller else "no"


def guess_motive(sentences: Sequence[str], question: str) -> str:
    """Answer task 20."""
    text = " ".join(sentences).lower()
    needs = dict(re.findall(rf"(\w+) is ({'|'.join(NEEDS)})", text))
    match = re.fullmatch(r"(Where will|Why did) (\w+) (go|go to the \w+|get the \w+)\?", question)
    assert match, f"the solver cannot read {question!r}"
    need = needs[match[2]]
    return NEEDS[need] if match[1] == "Where will" else need


SOLVERS = {
    4: find_neighbour,
    14: order_times,
    15: deduce_fear,
    16: induce_colour,
    17: compare_positions,
    18: compare_sizes,
    19: find_path,
    20: guess_motive,
}
