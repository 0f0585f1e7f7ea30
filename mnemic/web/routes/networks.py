"""The routes of networks: models, stories, recipes and tables."""

from itertools import islice
from typing import Annotated

from fastapi import APIRouter, Query, Request

from mnemic.store.retrieve.models import THREAD_LIMIT
from mnemic.web.limits import MAX_NUMBER
from mnemic.web.problems import Problem, document_problems
from mnemic.web.schemas.networks import (
    ModelList,
    RecipeInfo,
    RecipeList,
    RecipeText,
    StoryCandidate,
    StoryExampleInfo,
    StoryHop,
    StoryQuestionBody,
    StoryResult,
    StorySlots,
    TableList,
)
from mnemic.web.server import Server, WebServer
from mnemic.web.tables import list_tables

NUM_EXAMPLES = 50  # questions that are generated, of which one is taken
PROBLEMS = document_problems(404, 422, 429, 504)
router = APIRouter(prefix="/v1", tags=["networks"])


@router.get("/models", responses=document_problems(429, 504))
async def list_models(server: Server) -> ModelList:
    """List the trained networks."""
    return await server.readers.run(lambda: ModelList(models=server.networks.list_infos()))


@router.get("/recipes", responses=document_problems(429, 504))
async def list_recipes(server: Server) -> RecipeList:
    """List the recipes of published systems."""
    return await server.readers.run(describe_recipes)


def describe_recipes() -> RecipeList:
    """Describe all recipes by their first comments."""
    from mnemic.recipe import recipe_comment, recipe_names

    return RecipeList(recipes=[RecipeInfo(name=name, description=recipe_comment(name)) for name in recipe_names()])


@router.get("/recipes/{name}", responses=PROBLEMS)
async def get_recipe(name: str, server: Server) -> RecipeText:
    """Return a recipe as it is written."""
    return await server.readers.run(lambda: read_recipe(name))


def read_recipe(name: str) -> RecipeText:
    """Read the text of a recipe."""
    from mnemic.recipe import recipe_comment, recipe_names
    from mnemic.recipe.load import find_recipe

    if name not in recipe_names():
        raise Problem(404, f"There is no recipe {name[:80]!r}; /v1/recipes lists them.")
    text = find_recipe(name).read_text(encoding="utf-8")
    return RecipeText(name=name, description=recipe_comment(name), toml=text)


@router.get("/tables", responses=document_problems(429, 504))
async def get_tables(server: Server) -> TableList:
    """List published systems, what their papers print and what they reach here."""
    return await server.readers.run(lambda: TableList(tables=list_tables()))


@router.get("/stories/example", responses=PROBLEMS)
async def get_story(
    server: Server,
    model: Annotated[str | None, Query(max_length=100, description="A network; its first task is the default.")] = None,
    task: Annotated[int | None, Query(ge=1, le=20, description="A bAbI task.")] = None,
    seed: Annotated[int, Query(ge=0, le=MAX_NUMBER)] = 0,
) -> StoryExampleInfo:
    """Generate a story with a question."""
    return await server.readers.run(lambda: generate_story(server, model, task, seed))


def generate_story(server: WebServer, model: str | None, task: int | None, seed: int) -> StoryExampleInfo:
    """Generate a story of a task; some seeds give other questions of a story."""
    from mnemic.data.babi.format import StoryQuestion
    from mnemic.data.babi.generate import generate_stories

    if model is not None and model not in server.networks.folders:
        raise Problem(404, f"There is no network {model[:80]!r}; there are: {', '.join(server.networks.folders)}.")
    tasks = server.networks.describe(model).tasks if model is not None and task is None else []
    number = task or (tasks[0] if tasks else 1)
    story = next(islice(generate_stories(number, NUM_EXAMPLES, seed=seed), 1))
    question = next(line for line in reversed(story) if isinstance(line, StoryQuestion))
    before = [line for line in story if line.number < question.number and not isinstance(line, StoryQuestion)]
    positions = {line.number: position for position, line in enumerate(before)}
    return StoryExampleInfo(
        task=number,
        sentences=[line.text.strip() for line in before],
        question=question.text.strip(),
        answer=question.answer,
        facts=[positions[fact] for fact in question.facts if fact in positions],
    )


@router.post("/stories/ask", responses=PROBLEMS)
async def ask_story(body: StoryQuestionBody, server: Server, request: Request) -> StoryResult:
    """Ask a network about a story, and show what it read and wrote."""
    request.state.audit = {"model": body.model, "question": body.question}
    return await server.readers.run(lambda: answer_story(server, body))


def answer_story(server: WebServer, body: StoryQuestionBody) -> StoryResult:
    """Answer a question about a story, with the weights of hops and slots."""
    model = server.networks.load(body.model, "ask_story")
    sentences = [sentence for sentence in body.sentences if sentence.strip()]
    with THREAD_LIMIT.apply():
        answer = model.ask_story(sentences, body.question)
    num_hops = max((len(row.weights) for row in answer.evidence), default=0)
    weights = [[0.0] * len(sentences) for _ in range(num_hops)]
    for row in answer.evidence:
        for hop, weight in enumerate(row.weights):
            weights[hop][row.sentence] = weight
    gates = [*answer.taken, *[None] * (num_hops - len(answer.taken))]
    hops = [
        StoryHop(label=f"hop {number}", weights=row, gate=gate)
        for number, (row, gate) in enumerate(zip(weights, gates), 1)
    ]
    slots = None
    if answer.slots is not None:
        steps = [[0.0] * len(answer.slots.names) for _ in sentences]
        for row, gate_row in zip(answer.evidence, answer.slots.gates):
            steps[row.sentence] = list(gate_row)
        slots = StorySlots(names=list(answer.slots.names), steps=steps, read=list(answer.slots.read))
    return StoryResult(
        answer=answer.text,
        candidates=[StoryCandidate(text=text, probability=probability) for text, probability in answer.ranked],
        hops=hops,
        slots=slots,
        memory=answer.memory,
        notes=list(answer.notes),
    )
