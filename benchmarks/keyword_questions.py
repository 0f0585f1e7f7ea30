"""Ask a memory of ten short notes in keywords, with and without typing errors.

    python benchmarks/keyword_questions.py

Prints each question with its answer, how many of the 20 are right, and how many of the 10 that the
notes cannot answer are declined.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

from mnemic import Memory

NOTES = {
    "insurance.txt": """\
Household insurance
Provider: Helvetia
Insurance premium: 318.40 euros a year
Deductible: 150 euros
Sum insured: 82,000 euros
Policy number: HV-2210-77
""",
    "lease.txt": """\
Lease of the flat in Ackerstrasse 12.
Monthly rent: EUR 1,184.50
Notice period: three months to the end of a quarter
Landlady: Margit Oberholzer
The deposit is three monthly rents.
""",
    "car.md": """\
# Car

The winter tyres are stored at Garage Huber.
The mileage at the last service was 84,210 km.
The licence plate is ZH 48211.
""",
    "wifi.txt": """\
Wifi password: zaunkoenig-4711-tief
Provider: Quickline
Router model: FritzBox 7590
""",
    "recipe.md": """\
# Bread

Bake the bread for 45 minutes at 230 degrees. Use 10 grams of salt for 500 grams of flour.
""",
    "trip.txt": """\
Flight LX 318 to London leaves on 14 May at 07:05.
The booking code is QX7T2K.
The hotel is the Langham in Portland Place.
""",
    "dentist.txt": """\
The next dentist appointment is on 3 September at 10:30 with Dr. Steiner.
""",
    "school.md": """\
Anna's teacher is Mrs.
Brunner.
The parents' evening is on 21 November.
The class trip costs 240 francs.
""",
    "garden.txt": """\
The apple tree was planted in 2016.
Honey yield this year: 23 kilograms.
The compost is turned every October.
""",
    "bank.txt": """\
IBAN: CH93 0076 2011 6238 5295 7
Mortgage rate: 1.45 percent fixed until 2029
Account manager: Urs Keller
""",
}
QUESTIONS = [
    ("rent", "1,184.50"),
    ("insurance premium", "318.40"),
    ("insurence premum", "318.40"),
    ("deductible", "150"),
    ("wifi password", "zaunkoenig"),
    ("wifi pasword", "zaunkoenig"),
    ("notice period", "three months"),
    ("landlady", "Oberholzer"),
    ("booking code", "QX7T2K"),
    ("boking code", "QX7T2K"),
    ("dentist appointment", "3 September"),
    ("dentist apointment", "3 September"),
    ("licence plate", "48211"),
    ("mortgage rate", "1.45"),
    ("morgage rate", "1.45"),
    ("honey yield", "23"),
    ("Anna teacher", "Brunner"),
    ("What is the milage?", "84,210"),
    ("Where are the winter tyers?", "Huber"),
    ("IBAN", "CH93"),
]
UNANSWERABLE = [
    "passport number",
    "boat",
    "electricity bill",
    "Who is the president?",
    "dog name",
    "blood type",
    "shoe size",
    "train ticket",
    "Where is the tent?",
    "What is the price of the boat?",
]


def main() -> None:
    """Remember the notes and ask."""
    with TemporaryDirectory() as folder, Memory(Path(folder, "memory.db")) as memory:
        for name, text in NOTES.items():
            Path(folder, name).write_text(text, encoding="utf-8")
        memory.remember(folder)
        num_right = 0
        for question, expected in QUESTIONS:
            answer = memory.ask(question)
            num_right += expected in answer.text
            print(f"{question}: {answer.text or None} ({answer.score:.2f}) {'; '.join(answer.notes)}")
        num_declined = sum(not memory.ask(question).has_answer for question in UNANSWERABLE)
    print(f"{num_right} of {len(QUESTIONS)} right, {num_declined} of {len(UNANSWERABLE)} declined")


if __name__ == "__main__":
    main()
