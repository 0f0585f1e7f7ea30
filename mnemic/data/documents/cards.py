"""Generate cards of "Key: value" lines, and questions about their values."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from mnemic.data.documents import pools
from mnemic.data.documents.pools import SplitSampler, split_phrases
from mnemic.data.documents.times import DAY_FORMATS, draw_day
from mnemic.data.documents.writer import DocumentWriter, GeneratedQuestion, Spans, ask_question


class Field(NamedTuple):
    """A line of a card: names of its key, its value, and questions about ``{subject}``."""

    keys: Sequence[str]
    make_value: Callable[[SplitSampler], str]
    questions: Sequence[str]


class CardKind(NamedTuple):
    """The words of one kind of card."""

    make_subject: Callable[[SplitSampler], str]
    title_keys: Sequence[str]  # of the line that names the subject; empty: the subject alone
    fields: Mapping[str, Field]


def make_email(sampler: SplitSampler) -> str:
    """Make a mail address."""
    name = sampler.draw_name().lower().replace(" ", sampler.generator.choice((".", "_", "")))
    return f"{name}@{sampler.choose(DOMAINS)}"


def make_phone(sampler: SplitSampler) -> str:
    """Make a phone number."""
    country = sampler.generator.randint(30, 99)
    return f"+{country} {sampler.draw_digits(3)} {sampler.draw_digits(3)} {sampler.draw_digits(2)}"


def make_street(sampler: SplitSampler) -> str:
    """Make a street with a number."""
    return f"{sampler.generator.randint(1, 140)} {sampler.choose(pools.STREETS)}"


def make_date(sampler: SplitSampler) -> str:
    """Make a date in one of the usual formats."""
    return sampler.generator.choice(DAY_FORMATS)(draw_day(sampler.generator))


def make_code(sampler: SplitSampler) -> str:
    """Make a number of a contract, a ticket or a device."""
    letters = "".join(sampler.generator.sample("ABCDEFGHKLMNPRSTUVWXYZ", 2))
    return f"{letters}-{sampler.draw_digits(sampler.generator.choice((4, 6)))}"


DOMAINS = split_phrases(
    """mail.example | post.example | inbox.example | letters.example | web.example | note.example |
            home.example | office.example"""
)
PHONE = Field(
    split_phrases("Phone | Tel. | Mobile | Telephone | Phone number | Call | Contact number | Cell"),
    make_phone,
    split_phrases(
        """What is the phone number of {subject}? | How can I call {subject}? | What is {subject}'s number? |
            Which number do I dial for {subject}? | What is {subject}'s phone number? | Under which number is
            {subject} reached? | What is the telephone number of {subject}? | What number does {subject} have?"""
    ),
)
MAIL = Field(
    split_phrases("""E-mail | Email | Mail | E-Mail address | Email address | Mail to | Electronic mail | Inbox"""),
    make_email,
    split_phrases(
        """What is the e-mail address of {subject}? | Where can I write to {subject}? | What is {subject}'s
            e-mail? | Which mail address has {subject}? | What is {subject}'s mail address? | To which address
            do I mail {subject}? | What e-mail does {subject} use? | What is {subject}'s inbox?"""
    ),
)
ADDRESS = Field(
    split_phrases("""Address | Street | Lives at | Home | Home address | Postal address | Residence | Located at"""),
    make_street,
    split_phrases(
        """What is the address of {subject}? | Where does {subject} live? | What is {subject}'s street? | At
            which address is {subject}? | What is {subject}'s address? | On which street is {subject}? | Where
            is {subject} at home? | Where can {subject} be found?"""
    ),
)
BIRTHDAY = Field(
    split_phrases("Birthday | Born | Date of birth | Born on | Birth date | DOB | Birth | Day of birth"),
    make_date,
    split_phrases(
        """When was {subject} born? | What is {subject}'s birthday? | When is the birthday of {subject}? |
            What is the birth date of {subject}? | On what day was {subject} born? | What is {subject}'s date
            of birth? | When does {subject} have a birthday? | When did {subject} come into the world?"""
    ),
)
JOB = Field(
    split_phrases("Job | Occupation | Works as | Profession | Position | Role | Job title | Employed as"),
    lambda sampler: sampler.choose(pools.JOBS),
    split_phrases(
        """What does {subject} do? | What is {subject}'s job? | What is the profession of {subject}? | As
            what does {subject} work? | What is {subject}'s position? | What is the occupation of {subject}? |
            What job does {subject} have? | What role has {subject}?"""
    ),
)
NUMBER = Field(
    split_phrases("Number | No. | Reference | Contract no. | Customer number | ID | Policy | Ref."),
    make_code,
    split_phrases(
        """What is the number of {subject}? | What is our reference at {subject}? | Which number do we have
            with {subject}? | What is the customer number at {subject}? | What is the contract number of
            {subject}? | Which reference belongs to {subject}? | What ID do we have at {subject}? | What is
            the reference for {subject}?"""
    ),
)
PRICE = Field(
    split_phrases("Price | Monthly fee | Cost | Amount | To pay | Fee | Rate | Total"),
    lambda sampler: sampler.draw_amount(5, 2500),
    split_phrases(
        """How much does {subject} cost? | What do we pay for {subject}? | What is the price of {subject}? |
            How expensive is {subject}? | What is the cost of {subject}? | How much is {subject}? | What
            amount is paid for {subject}? | How much money goes to {subject}?"""
    ),
)
START = Field(
    split_phrases("Start | Since | From | Begins | Valid from | Starting | Begin | Effective"),
    make_date,
    split_phrases(
        """When does {subject} start? | Since when do we have {subject}? | When did {subject} begin? | From
            which day on is {subject} valid? | What is the start date of {subject}? | What day does {subject}
            begin? | When did we start with {subject}? | On what date does {subject} start?"""
    ),
)
END = Field(
    split_phrases("End | Ends | Valid until | Cancel by | Expires | Until | Runs out | Term ends"),
    make_date,
    split_phrases(
        """When does {subject} end? | Until when does {subject} run? | When does {subject} expire? | What is
            the last day of {subject}? | When is {subject} over? | On what date does {subject} run out? | What
            is the end date of {subject}? | Till when is {subject} valid?"""
    ),
)
COLOR = Field(
    split_phrases("Color | Colour | Finish | Paint | Shade | Painted | Surface | Look"),
    lambda sampler: sampler.choose(pools.COLORS),
    split_phrases(
        """What color is {subject}? | Which colour does {subject} have? | What is the color of {subject}? |
            In which color is {subject}? | What shade does {subject} have? | How is {subject} painted? | What
            colour is {subject} in? | Which paint does {subject} have?"""
    ),
)
SELLER = Field(
    split_phrases("Bought from | Seller | Shop | Dealer | Purchased at | Vendor | Store | From the shop"),
    lambda sampler: sampler.choose(pools.COMPANIES),
    split_phrases(
        """Where was {subject} bought? | Who sold {subject}? | From whom is {subject}? | Which shop sold us
            {subject}? | Where does {subject} come from? | Who is the seller of {subject}? | At which store
            was {subject} purchased? | What company sold {subject}?"""
    ),
)
CARD_KINDS = (
    CardKind(
        SplitSampler.draw_name,
        split_phrases("Name | Person | Contact | Full name | Who | Neighbor | Colleague | Patient"),
        {"phone": PHONE, "mail": MAIL, "address": ADDRESS, "birthday": BIRTHDAY, "job": JOB},
    ),
    CardKind(
        lambda sampler: sampler.choose(pools.COMPANIES),
        split_phrases("""Company | Provider | Contract with | Firm | Account at | Supplier | Partner | Business"""),
        {"number": NUMBER, "price": PRICE, "start": START, "end": END, "phone": PHONE, "mail": MAIL},
    ),
    CardKind(
        lambda sampler: f"the {sampler.choose(pools.THINGS)}",
        split_phrases("Item | Device | Object | Inventory | Article | Product | Belonging | Asset"),
        {
            "price": PRICE,
            "color": COLOR,
            "seller": SELLER,
            "number": NUMBER,
            "end": END._replace(
                keys=split_phrases("Warranty until | Guarantee until | Warranty ends | Guarantee ends"),
                questions=split_phrases(
                    """When does the warranty of {subject} end? | Until when is {subject} under guarantee? | How long
            does the warranty of {subject} last? | When does the guarantee of {subject} run out?"""
                ),
            ),
        },
    ),
)


def write_cards(sampler: SplitSampler, writer: DocumentWriter) -> list[GeneratedQuestion]:
    """Write one to three cards of one kind, and ask for their values."""
    kind = sampler.generator.choice(CARD_KINDS)
    subjects = list(dict.fromkeys(kind.make_subject(sampler) for _ in range(sampler.generator.randint(2, 4))))
    *subjects, missing = subjects if len(subjects) > 1 else (*subjects, "")
    title_key, keys = (
        sampler.choose(kind.title_keys),
        {name: sampler.choose(field.keys) for name, field in kind.fields.items()},
    )
    questions: list[GeneratedQuestion] = []
    for subject in subjects:
        names = sampler.generator.sample(sorted(kind.fields), sampler.generator.randint(2, len(kind.fields) - 1))
        writer.add_line("{key}: {subject}", key=title_key, subject=subject.removeprefix("the "))
        spans: dict[str, Spans] = {}
        for name in names:
            value = kind.fields[name].make_value(sampler)
            spans[name] = writer.add_line("{key}: {value}", key=keys[name], value=value)["value"]
        for name in sampler.generator.sample(names, 2):
            questions.append(ask_question(sampler.choose(kind.fields[name].questions), spans[name], subject=subject))
        absent = sampler.generator.choice(sorted(kind.fields.keys() - {*names}))
        questions.append(ask_question(sampler.choose(kind.fields[absent].questions), subject=subject))
    if missing and sampler.flip(0.5):
        field = kind.fields[sampler.generator.choice(sorted(kind.fields))]
        questions.append(ask_question(sampler.choose(field.questions), subject=missing))
    return questions
