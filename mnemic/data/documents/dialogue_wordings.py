"""What people say in generated dialogues, and what is asked about it.

A quarter of each list is for validation and a quarter for test (``pools.select_pool``): order
matters, and each list has at least four items. ``{value}`` is the answer, ``{when}`` a time.
"""

from collections.abc import Sequence
from typing import NamedTuple

from mnemic.data.documents import pools


class Topic(NamedTuple):
    """A thing that somebody tells once in a dialogue."""

    values: Sequence[str]
    statements: Sequence[str]  # in the first person
    questions: Sequence[str]  # about the value
    when: Sequence[str] = ()  # questions about the time
    is_future: bool = False
    is_list: bool = False  # the value is two to five items


TOPICS: dict[str, Topic] = {
    "trip": Topic(
        pools.CITIES,
        (
            "I got back from {value}, we flew home {when}.",
            "Guess what, {when} I took the train to {value}!",
            "I went to {value} {when} and walked until my feet hurt.",
            "We drove down to {value} {when}.",
            "{when}, finally, I got to see {value} with my own eyes.",
            "My sister and I visited {value} {when}.",
            "I was in {value} {when} for a wedding.",
            "We had a short break in {value} {when}.",
        ),
        (
            "Where did {speaker} go?",
            "Which city did {speaker} travel to?",
            "What town did {speaker} spend time in?",
            "What was the destination of {speaker}'s trip?",
            "Which place did {speaker} see?",
            "Where was {speaker} on the trip?",
            "What city did {speaker} visit?",
            "To which city did {speaker} make a journey?",
        ),
        (
            "When did {speaker} go to {value}?",
            "When was {speaker} in {value}?",
            "At what time did {speaker} see {value}?",
            "On what date did {speaker} visit {value}?",
            "When did {speaker} travel to {value}?",
            "What day did {speaker} take the trip to {value}?",
            "When exactly was {speaker}'s stay in {value}?",
            "When did {speaker}'s trip to {value} happen?",
        ),
    ),
    "pet": Topic(
        pools.ANIMALS,
        (
            "We adopted a {value} {when}.",
            "{when} the shelter called and now we have a {value}.",
            "I brought home a little {value} {when}.",
            "A {value} moved in with us {when}, the kids are thrilled.",
            "I finally did it, I got a {value} {when}.",
            "You won't believe it: {when} I rescued a {value}.",
            "Our family grew {when}, by one {value}.",
            "There is a {value} in my kitchen, I picked it up {when}.",
        ),
        (
            "What animal did {speaker} get?",
            "Which pet does {speaker} have now?",
            "What kind of pet did {speaker} take in?",
            "What sort of animal lives with {speaker}?",
            "What did {speaker} adopt?",
            "What kind of animal is {speaker}'s new pet?",
            "Which animal did {speaker} give a home?",
            "What pet joined {speaker}'s household?",
        ),
        (
            "When did {speaker} adopt the {value}?",
            "When did {speaker} get the {value}?",
            "On which day did the {value} come to {speaker}?",
            "When was the {value} brought home by {speaker}?",
            "Since when does {speaker} have a {value}?",
            "When did {speaker}'s {value} move in?",
            "What day did {speaker} pick up the {value}?",
            "When did the {value} join {speaker}'s family?",
        ),
    ),
    "purchase": Topic(
        pools.THINGS,
        (
            "I bought a new {value} {when}.",
            "{when} I ordered a {value} online.",
            "The {value} broke, so I got another one {when}.",
            "I treated myself to a {value} {when}.",
            "They delivered my {value} {when}.",
            "I found a second-hand {value} {when}, a real bargain.",
            "We spent far too much on a {value} {when}.",
            "I traded my old radio for a {value} {when}.",
        ),
        (
            "What did {speaker} buy?",
            "Which item did {speaker} purchase?",
            "What is new at {speaker}'s home?",
            "What thing did {speaker} acquire?",
            "What did {speaker} get for the house?",
            "Which object did {speaker} spend money on?",
            "What purchase did {speaker} make?",
            "What did {speaker} become the owner of?",
        ),
        (
            "When did {speaker} buy the {value}?",
            "When did {speaker} get the {value}?",
            "On what day was the {value} bought by {speaker}?",
            "When did {speaker} become the owner of the {value}?",
            "When was {speaker}'s {value} purchased?",
            "What day did {speaker} order the {value}?",
            "At what time did {speaker} obtain the {value}?",
            "When was the {value} acquired by {speaker}?",
        ),
    ),
    "course": Topic(
        pools.HOBBIES,
        (
            "I'm starting a {value} class {when}.",
            "{when} my first {value} lesson takes place.",
            "I signed up for {value}, it begins {when}.",
            "My {value} course kicks off {when}.",
            "I'll try {value} {when}, wish me luck.",
            "They have a free {value} workshop {when} and I am going.",
            "The {value} group meets {when} and I promised to come.",
            "I have my trial hour of {value} {when}.",
        ),
        (
            "What class is {speaker} going to take?",
            "What will {speaker} learn?",
            "Which activity is {speaker} about to begin?",
            "What new hobby is {speaker} planning?",
            "What course did {speaker} sign up for?",
            "Which hobby will {speaker} take up?",
            "What kind of lessons is {speaker} looking forward to?",
            "What is {speaker} going to try?",
        ),
        (
            "When does {speaker} start {value}?",
            "When is {speaker}'s {value} class?",
            "On what day will {speaker} do {value}?",
            "When does {value} begin for {speaker}?",
            "When will {speaker} have the first {value} lesson?",
            "What day is {speaker}'s {value} planned for?",
            "When is {speaker} going to {value}?",
            "When does {speaker}'s {value} take place?",
        ),
        is_future=True,
    ),
    "meal": Topic(
        pools.FOODS,
        (
            "I cooked {value} {when} and burnt nothing.",
            "{when} we had {value} for dinner.",
            "My neighbour brought over some {value} {when}.",
            "We ate {value} {when}, it was delicious.",
            "I made {value} {when} for the first time.",
            "Everyone came round {when} for {value}.",
            "{when} I ruined a perfectly good {value}.",
            "We shared {value} {when} on the balcony.",
        ),
        (
            "What did {speaker} eat?",
            "Which dish did {speaker} mention?",
            "What was on {speaker}'s table?",
            "What meal does {speaker} talk about?",
            "What did {speaker} have to eat?",
            "Which food did {speaker} enjoy?",
            "What was {speaker}'s dinner?",
            "What dish was it that {speaker} spoke of?",
        ),
        (
            "When did {speaker} have {value}?",
            "When was there {value} at {speaker}'s?",
            "On which day did {speaker} eat {value}?",
            "When did {speaker} serve {value}?",
            "When was the {value} eaten by {speaker}?",
            "What day did {speaker} have {value}?",
            "When did {speaker} dine on {value}?",
            "When was {value} on {speaker}'s plate?",
        ),
    ),
    "job": Topic(
        pools.JOBS,
        (
            "I work as a {value} now.",
            "They hired me as a {value}!",
            "I am training to be a {value}.",
            "My day job is being a {value}, you know.",
            "These days I earn my money as a {value}.",
            "I have been a {value} for ten years.",
            "You are talking to a real {value} now.",
            "I took a position as a {value}.",
        ),
        (
            "What is {speaker}'s job?",
            "What does {speaker} do for a living?",
            "What profession does {speaker} have?",
            "What is {speaker}'s occupation?",
            "As what does {speaker} work?",
            "What kind of work does {speaker} do?",
            "How does {speaker} earn money?",
            "Which trade does {speaker} follow?",
        ),
    ),
    "shopping": Topic(
        pools.GROCERIES,
        (
            "From the market I need {value}.",
            "Can you pick up {value}?",
            "Put {value} on the list, please.",
            "We have run out of {value}.",
            "I still have to buy {value}.",
            "Could somebody bring {value}?",
            "The fridge is empty: we lack {value}.",
            "I am going to the shop for {value}.",
        ),
        (
            "What does {speaker} need from the shop?",
            "Which groceries does {speaker} want?",
            "What food should be bought for {speaker}?",
            "What is missing in {speaker}'s kitchen?",
            "Which things does {speaker} want to have bought?",
            "What does {speaker} ask for?",
            "What groceries did {speaker} name?",
            "Which foods does {speaker} say are needed?",
        ),
        is_list=True,
    ),
    "hobbies": Topic(
        pools.HOBBIES,
        (
            "In my free time I love {value}.",
            "I do {value} to relax.",
            "My weekends are all {value}.",
            "What keeps me sane is {value}.",
            "I am really into {value}.",
            "After work it is {value} for me.",
            "Nothing beats {value}, if you ask me.",
            "You know my passions: {value}.",
        ),
        (
            "What are {speaker}'s hobbies?",
            "What does {speaker} like to do?",
            "Which activities does {speaker} enjoy?",
            "How does {speaker} relax?",
            "What hobbies does {speaker} have?",
            "What does {speaker} do for fun?",
            "Which pastimes did {speaker} name?",
            "What activities is {speaker} fond of?",
        ),
        is_list=True,
    ),
    "instruments": Topic(
        pools.INSTRUMENTS,
        (
            "I can play {value}.",
            "As a child I learned {value}.",
            "At home I practise {value}.",
            "In the band I am on {value}.",
            "I know my way around {value}.",
            "I used to give lessons in {value}.",
            "The only instruments I own are {value}.",
            "My teacher made me learn {value}.",
        ),
        (
            "What instruments does {speaker} play?",
            "Which instruments can {speaker} play?",
            "What musical instruments did {speaker} name?",
            "On which instruments does {speaker} make music?",
            "Which instruments does {speaker} know?",
            "What does {speaker} play?",
            "Which musical instruments is {speaker} able to play?",
            "What instruments has {speaker} learned?",
        ),
        is_list=True,
    ),
}
# Said between the topics; nothing is asked about it.
SMALL_TALK = pools.split_phrases(
    """How have you been? | That sounds great. | Oh no, really? | I am so happy for you! | Same here, to be honest.
    | Busy week, but I can't complain. | Tell me more about it. | Haha, that is so you. | The weather is awful
    here. | We should meet up soon. | I have to run in a minute. | Did you sleep well? | Good to hear from you!
    | I was thinking about you. | Say hello to your parents. | No way! | I could use a holiday. | Wow,
    congratulations! | It has been ages. | That must have been fun. | I'd love to see a picture. | My phone
    died, sorry for the silence. | Let's talk about it at the weekend. | Are you still at work? | What a day. |
    You deserve it. | I can't wait. | Take care of yourself."""
)
