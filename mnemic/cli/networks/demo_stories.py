"""``mnemic demo --stories``: a memory network learns from stories, and shows what it reads."""

from pathlib import Path
from typing import Any, NamedTuple

from mnemic.cli.networks.train import follow
from mnemic.cli.render.console import duration, out, percent, print_json
from mnemic.cli.render.evidence_table import tell

SETS = (
    'data={ kind = "generated", tasks = [1, 2, 15], count = 3000 }',
    "train.epochs=30",
    "train.schedule.every=8",
    "phases.0.train.epochs=10",
)


class Asked(NamedTuple):
    """A story to ask about, and what is right."""

    about: str
    sentences: tuple[str, ...]
    question: str
    answer: str


ASKED = (
    Asked(
        "One fact: where somebody went last.",
        (
            "Mary moved to the bathroom.",
            "John went to the hallway.",
            "Mary travelled to the office.",
            "Daniel journeyed to the garden.",
        ),
        "Where is Mary?",
        "office",
    ),
    Asked(
        "Two facts: who has it, and where they went.",
        (
            "John journeyed to the kitchen.",
            "Mary went back to the garden.",
            "John picked up the milk there.",
            "Sandra moved to the bathroom.",
            "John travelled to the office.",
            "Mary went to the hallway.",
        ),
        "Where is the milk?",
        "office",
    ),
    Asked(
        "A conclusion: from an animal to its kind to what the kind fears.",
        (
            "Wolves are afraid of mice.",
            "Sheep are afraid of wolves.",
            "Winona is a sheep.",
            "Mice are afraid of cats.",
            "Cats are afraid of sheep.",
            "Gertrude is a mouse.",
            "Emily is a wolf.",
            "Jessica is a cat.",
        ),
        "What is Gertrude afraid of?",
        "cat",
    ),
)


def stories(folder: Path, *, fresh: bool, as_json: bool) -> bool:
    """Train, ask, show; whether all answers are right."""
    from mnemic.checkpoint.folder import load
    from mnemic.recipe import load as load_recipe

    screen = out()
    if not as_json:
        screen.print("A memory network (MemN2N) learns from generated stories, on this computer:")
    trained = follow(load_recipe("memn2n", SETS), folder, seed=0, device="cpu", fresh=fresh)
    if not as_json:
        tell_trained(trained)
    checkpoint = load(folder)
    answers = [ask(checkpoint, one, as_json) for one in ASKED]
    if as_json:
        print_json({"out": str(folder), "trained": trained, "answers": answers})
    else:
        screen.print("\nDarker means read more; each hop reads with what the one before found.")
        screen.print(f'Now yours: mnemic ask --model {folder} --sentence "…" "Where is Mary?"')
    return all(answer["right"] for answer in answers)


def tell_trained(trained: dict[str, Any]) -> None:
    error = percent(trained["validation_error"])
    if trained["already_trained"]:
        said = (
            f"It was trained before ({error} wrong on stories it had not seen); --fresh repeats it."
        )
    else:
        took = duration(trained["seconds"])
        said = f"Trained in {took}; on stories it has not seen it is wrong in {error} of the cases."
    out().print(said, soft_wrap=True)


def ask(checkpoint: Any, one: Asked, as_json: bool) -> dict[str, Any]:
    """Ask about a story and show the evidence."""
    from mnemic.predict import ask_story

    answer = ask_story(checkpoint, one.sentences, one.question)
    right = answer.text == one.answer
    if not as_json:
        out().print(f"\n[bold]{one.about}[/]")
        tell(answer, one.question, None)
        if not right:
            out().print(f"[red]wrong:[/] it should be {one.answer}")
    read = [evidence.text for evidence in answer.best_evidence(2)]
    return {
        "question": one.question,
        "answer": answer.text,
        "right": right,
        "probability": answer.probability,
        "read_most": read,
    }
