"""``mnemic demo --stories``: train a memory network on stories and show its evidence."""

from pathlib import Path
from typing import Any, NamedTuple

from mnemic.cli.networks.ask_story import print_story_answer
from mnemic.cli.networks.load import load_network
from mnemic.cli.networks.train import train_with_progress
from mnemic.cli.render.console import print_json, print_text
from mnemic.cli.render.format import format_duration, format_percent
from mnemic.recipe import load_recipe

RECIPE_CHANGES = (
    'data={ kind = "generated-babi", tasks = [1, 2, 15], count = 3000 }',
    "train.epochs=30",
    "train.schedule.every=8",
    "phases.0.train.epochs=10",
)


class DemoStory(NamedTuple):
    """A story, one sentence per line, with a question and its right answer."""

    title: str
    text: str
    question: str
    answer: str


STORIES = (
    DemoStory(
        "One fact: where somebody went last.",
        "Mary moved to the bathroom.\nJohn went to the hallway.\n"
        "Mary travelled to the office.\nDaniel journeyed to the garden.",
        "Where is Mary?",
        "office",
    ),
    DemoStory(
        "Two facts: who has it, and where they went.",
        "John journeyed to the kitchen.\nMary went back to the garden.\nJohn picked up the milk there.\n"
        "Sandra moved to the bathroom.\nJohn travelled to the office.\nMary went to the hallway.",
        "Where is the milk?",
        "office",
    ),
    DemoStory(
        "A conclusion: from an animal to its kind to what the kind fears.",
        "Wolves are afraid of mice.\nSheep are afraid of wolves.\nWinona is a sheep.\nMice are afraid of cats.\n"
        "Cats are afraid of sheep.\nGertrude is a mouse.\nEmily is a wolf.\nJessica is a cat.",
        "What is Gertrude afraid of?",
        "cat",
    ),
)


def run_stories_demo(folder: Path, *, fresh: bool) -> bool:
    """Train a network, ask about three stories; return whether all answers are right."""
    print_text("A memory network (MemN2N) learns from generated stories, on this computer:")
    training = train_with_progress(load_recipe("memn2n", RECIPE_CHANGES), folder, seed=0, device="cpu", fresh=fresh)
    print_text(describe_training(training))
    checkpoint, _ = load_network(folder)
    answers = [ask_demo_story(checkpoint, story) for story in STORIES]
    print_json({"out": str(folder), "trained": training, "answers": answers})
    print_text("\nDarker means read more; each hop reads with what the one before found.")
    print_text(f'Now yours: mnemic story ask --model {folder} --sentence "…" "Where is Mary?"')
    return all(answer["right"] for answer in answers)


def describe_training(training: dict[str, Any]) -> str:
    """Describe the validation error and the time of training."""
    error, time = format_percent(training["validation_error"]), format_duration(training["seconds"])
    if training["already_trained"]:
        return f"It was trained before ({error} wrong on stories it had not seen); --fresh repeats it."
    return f"Trained in {time}; on stories it has not seen it is wrong in {error} of the cases."


def ask_demo_story(checkpoint: Any, story: DemoStory) -> dict[str, Any]:
    """Ask about one story, print the evidence, and report whether the answer is right."""
    from mnemic.predict import ask_story

    answer = ask_story(checkpoint, story.text.splitlines(), story.question)
    is_right = answer.text == story.answer
    print_text(f"\n{story.title}", style="bold")
    print_story_answer(answer, story.question, None)
    if not is_right:
        print_text(f"wrong: it should be {story.answer}", style="red")
    most_read = [evidence.text for evidence in answer.best_evidence(2)]
    report = {"question": story.question, "answer": answer.text, "right": is_right}
    return report | {"probability": answer.probability, "read_most": most_read}
