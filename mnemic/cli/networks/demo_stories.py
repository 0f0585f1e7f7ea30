"""``mnemic demo --stories``: train a memory network on stories and show its evidence."""

from pathlib import Path
from typing import Any, NamedTuple

from mnemic.cli.networks.ask_story import print_story_answer
from mnemic.cli.networks.train import train_with_progress
from mnemic.cli.render.console import print_json, print_text
from mnemic.cli.render.format import format_duration, format_percent

RECIPE_CHANGES = (
    'data={ kind = "generated-babi", tasks = [1, 2, 15], count = 3000 }',
    "train.epochs=30",
    "train.schedule.every=8",
    "phases.0.train.epochs=10",
)


class DemoStory(NamedTuple):
    """A story with a question and its right answer."""

    title: str
    sentences: tuple[str, ...]
    question: str
    answer: str


STORIES = (
    DemoStory(
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
    DemoStory(
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
    DemoStory(
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


def run_stories_demo(folder: Path, *, fresh: bool, as_json: bool) -> bool:
    """Train a network, ask about three stories; return whether all answers are right."""
    from mnemic.checkpoint.folder import load_checkpoint
    from mnemic.recipe import load_recipe

    if not as_json:
        print_text("A memory network (MemN2N) learns from generated stories, on this computer:")
    training = train_with_progress(load_recipe("memn2n", RECIPE_CHANGES), folder, seed=0, device="cpu", fresh=fresh)
    if not as_json:
        print_training(training)
    checkpoint = load_checkpoint(folder)
    answers = [ask_demo_story(checkpoint, story, as_json) for story in STORIES]
    if as_json:
        print_json({"out": str(folder), "trained": training, "answers": answers})
    else:
        print_text("\nDarker means read more; each hop reads with what the one before found.")
        print_text(f'Now yours: mnemic story ask --model {folder} --sentence "…" "Where is Mary?"')
    return all(answer["right"] for answer in answers)


def print_training(training: dict[str, Any]) -> None:
    """Print the validation error and the time of training."""
    error = format_percent(training["validation_error"])
    if training["already_trained"]:
        message = f"It was trained before ({error} wrong on stories it had not seen); --fresh repeats it."
    else:
        time = format_duration(training["seconds"])
        message = f"Trained in {time}; on stories it has not seen it is wrong in {error} of the cases."
    print_text(message)


def ask_demo_story(checkpoint: Any, story: DemoStory, as_json: bool) -> dict[str, Any]:
    """Ask about one story, print the evidence, and report whether the answer is right."""
    from mnemic.predict import ask_story

    answer = ask_story(checkpoint, story.sentences, story.question)
    is_right = answer.text == story.answer
    if not as_json:
        print_text(f"\n{story.title}", style="bold")
        print_story_answer(answer, story.question, None)
        if not is_right:
            print_text(f"wrong: it should be {story.answer}", style="red")
    most_read = [evidence.text for evidence in answer.best_evidence(2)]
    return {
        "question": story.question,
        "answer": answer.text,
        "right": is_right,
        "probability": answer.probability,
        "read_most": most_read,
    }
