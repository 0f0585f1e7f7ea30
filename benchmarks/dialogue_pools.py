"""Wording of the generated conversations of ``dialogue_dates``: two pools that share no sentence.

An event is (what is asked, what is said of the past, what is said of the future). A time is (words,
kind, number): so many days, weeks, weekends, months or years from the day on which it is said. Of a
weekday or a month with a name, the number only says the side on which it is next to that day.
"""

# ruff: noqa: E501, C409

from typing import NamedTuple


class Pool(NamedTuple):
    """All wording of a set."""

    names: tuple[str, ...]
    events: tuple[tuple[str, str, str], ...]
    past: tuple[tuple[str, str, int], ...]
    future: tuple[tuple[str, str, int], ...]
    past_frames: tuple[str, ...]
    future_frames: tuple[str, ...]
    fillers: tuple[str, ...]
    vague: tuple[str, ...]  # times that nobody can resolve
    forms: tuple[str, ...]  # of transcripts, see ``dialogue_dates.FORMS``


def read_rows(text: str) -> tuple[tuple[str, str, str], ...]:
    """Read events, one a line, fields between bars."""
    rows = [tuple(field.strip() for field in line.split("|")) for line in text.strip().splitlines()]
    return tuple((first, second, third) for first, second, third in rows)


def read_times(text: str) -> tuple[tuple[str, str, int], ...]:
    """Read times, one a line: words | kind | number."""
    return tuple((words, kind, int(number)) for words, kind, number in read_rows(text))


DEV = Pool(
    names=tuple(
        [
            "Anna",
            "Ben",
            "Carla",
            "David",
            "Elena",
            "Farid",
            "Greta",
            "Hugo",
            "Irene",
            "Jonas",
            "Katja",
            "Luis",
            "Mona",
            "Nils",
            "Olga",
            "Paul",
        ]
    ),
    events=read_rows("""
        visit the dentist | went to the dentist | am going to the dentist
        adopt a cat | adopted a little grey cat | am adopting a little grey cat
        move to Lisbon | moved to Lisbon | am moving to Lisbon
        sell the old car | sold my old car | will sell my old car
        finish the marathon | finished my first marathon | am running my first marathon
        paint the kitchen | painted the kitchen yellow | will paint the kitchen yellow
        start the new job | started my new job at the library | start my new job at the library
        see the opera | saw the opera with my aunt | will see the opera with my aunt
        buy a piano | bought a second-hand piano | am going to buy a second-hand piano
        plant the apple trees | planted three apple trees | am going to plant three apple trees
        fly to Toronto | flew to Toronto | am flying to Toronto
        take the driving test | took my driving test | will take my driving test
        meet the landlord | met our landlord | am meeting our landlord
        repair the bicycle | repaired my bicycle | want to repair my bicycle
        go camping | went camping by the lake | am going camping by the lake
        bake the wedding cake | baked the cake for the wedding | will bake the cake for the wedding
        give a talk at the school | gave a talk at the school | am giving a talk at the school
        get the keys of the flat | got the keys of the flat | get the keys of the flat
        play the concert | played a concert with the band | am playing a concert with the band
        donate blood | donated blood | will donate blood
        send the parcel to Madrid | sent the parcel to Madrid | will send the parcel to Madrid
        climb the mountain | climbed the big mountain with my brother | will climb the big mountain with my brother
        open the bakery | opened my bakery | will open my bakery
        cancel the subscription | cancelled the newspaper subscription | will cancel the newspaper subscription
    """),
    past=read_times("""
        yesterday | day | -1
        the day before yesterday | day | -2
        two days ago | day | -2
        four days ago | day | -4
        this morning | day | 0
        last night | day | -1
        last week | week | -1
        two weeks ago | week | -2
        last month | month | -1
        three months ago | month | -3
        last year | year | -1
        last weekend | weekend | -1
        last Friday | weekday | -1
        last Tuesday | weekday | -1
        on Sunday | weekday | -1
    """),
    future=read_times("""
        tomorrow | day | 1
        the day after tomorrow | day | 2
        in five days | day | 5
        tonight | day | 0
        next week | week | 1
        in three weeks | week | 3
        next month | month | 1
        next year | year | 1
        next Thursday | weekday | 1
        next Monday | weekday | 1
        on Saturday | weekday | 1
    """),
    past_frames=(
        "I {event} {time}.",
        "{time}, I {event}. It was wonderful!",
        "Guess what, I {event} {time} and I am still tired.",
        "By the way, {time} I finally {event}.",
    ),
    future_frames=("I {event} {time}.", "{time} I {event}, wish me luck.", "I am so excited: I {event} {time}!"),
    fillers=(
        "How are you?",
        "That is great news, congratulations!",
        "I am so happy for you.",
        "Thanks, that means a lot to me.",
        "The weather is awful here.",
        "Did you sleep well?",
        "My sister says hello.",
        "What are you reading at the moment?",
        "I had soup for lunch, nothing special.",
        "Haha, you never change.",
        "Let me know how it goes.",
        "I still have to do the laundry.",
        "We should call each other more often.",
    ),
    vague=("a few years ago", "the other day", "a couple of weeks ago", "some time ago"),
    forms=("brackets", "whatsapp", "iso", "session", "heading", "discord", "journal", "mail"),
)

FINAL = Pool(
    names=tuple(
        [
            "Abena",
            "Bruno",
            "Chiara",
            "Dmitri",
            "Esther",
            "Felix",
            "Hanna",
            "Ivo",
            "Jamila",
            "Kofi",
            "Leonie",
            "Marek",
            "Nadia",
            "Oscar",
            "Priya",
            "Quentin",
        ]
    ),
    events=read_rows("""
        sign the lease | signed the lease for the new place | shall sign the lease for the new place
        have the knee operation | had the operation on my knee | have the operation on my knee
        join the chess club | joined the chess club in town | plan to join the chess club in town
        return the books | brought the library books back | must bring the library books back
        hike to the waterfall | hiked all the way to the waterfall | will hike all the way to the waterfall
        host the barbecue | hosted a barbecue for the neighbours | am hosting a barbecue for the neighbours
        win the swimming race | won the 400 metres swimming race | hope to win the 400 metres swimming race
        visit the grandparents | drove out to see my grandparents | am driving out to see my grandparents
        order the sofa | ordered that green sofa | will order that green sofa
        pick up the puppy | picked up our puppy from the shelter | am picking up our puppy from the shelter
        attend the pottery workshop | attended a pottery workshop | am attending a pottery workshop
        graduate from nursing school | graduated from nursing school | graduate from nursing school
        lose the wallet | lost my wallet on the tram | might lose my wallet on the tram
        renew the passport | renewed my passport at the town hall | am renewing my passport at the town hall
        launch the podcast | launched my podcast about birds | am launching my podcast about birds
        harvest the potatoes | dug up all our potatoes | will dig up all our potatoes
        quit smoking | gave up smoking for good | will give up smoking for good
        build the treehouse | built a treehouse for the kids | will build a treehouse for the kids
        present the thesis | presented my thesis to the committee | present my thesis to the committee
        travel to Nairobi | travelled to Nairobi for work | travel to Nairobi for work
        replace the boiler | had the boiler replaced | will have the boiler replaced
        volunteer at the soup kitchen | helped out at the soup kitchen | will help out at the soup kitchen
        record the album | recorded a whole album in a barn | am going to record a whole album in a barn
        celebrate the anniversary | celebrated our anniversary at a vineyard | will celebrate our anniversary at a vineyard
    """),
    past=read_times("""
        yesterday evening | day | -1
        a few minutes ago | day | 0
        earlier today | day | 0
        three days ago | day | -3
        12 days ago | day | -12
        a week ago | week | -1
        about three weeks ago | week | -3
        the week before last | week | -2
        over the weekend | weekend | -1
        the weekend before last | weekend | -2
        last Wednesday | weekday | -1
        this past Saturday | weekday | -1
        on Thursday | weekday | -1
        a month ago | month | -1
        six months ago | month | -6
        two years ago | year | -2
        back in February | named | -1
        last October | named | -10
        late last year | year | -1
    """),
    future=read_times("""
        tomorrow morning | day | 1
        this evening | day | 0
        in ten days | day | 10
        in two weeks' time | week | 2
        this coming Friday | weekday | 1
        next Sunday | weekday | 1
        on Wednesday | weekday | 1
        in two months | month | 2
        in November | named | 1
        later next year | year | 1
        the week after next | week | 2
    """),
    past_frames=(
        "So {time} I {event}, can you believe it?",
        "Honestly, I {event} {time} and everything hurts.",
        "News from me: I {event} {time}!",
        "Oh, did I tell you? {time} I {event}.",
        "Well, I {event} {time}, which took for ever.",
    ),
    future_frames=(
        "Just so you know, I {event} {time}.",
        "Busy times: {time} I {event}.",
        "Keep your fingers crossed, I {event} {time}!",
    ),
    fillers=(
        "Morning! Everything fine over there?",
        "No way, tell me more.",
        "You deserve it, really.",
        "I was just thinking of you.",
        "Sorry, my phone was dead.",
        "The kids are driving me up the wall.",
        "Fancy a coffee one of these days?",
        "Same old, same old.",
        "That sounds like hard work.",
        "I can't stop laughing.",
        "Is your mother better now?",
        "Yes, please keep me posted.",
        "Our boss is in a foul mood again.",
    ),
    vague=("several months ago", "a while back", "many years ago", "quite recently"),
    forms=("brackets-us", "signal", "date-line", "divider", "journal", "mail"),
)
