"""``mnemic table students``: compare small networks with the teachers that they learn from."""

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from mnemic.cli import options as opt
from mnemic.cli.render.console import print_json, print_table, print_text
from mnemic.cli.render.format import format_duration
from mnemic.cli.render.progress import ProgressBars
from mnemic.train.interrupt import defer_interrupts

if TYPE_CHECKING:
    from mnemic.reproduce.students_table import StudentsTable

DEFAULT_FOLDER = Path("runs/table-students")
SQUAD_HELP = "Folder of SQuAD: train….json and dev….json, also .gz."
GLUE_HELP = "Folder of GLUE: SST-2, MRPC, RTE, STS-B and CoLA, each with train.tsv and dev.tsv."
START_HELP = "Weights that teachers start from: a run, a network that ships, or a Hugging Face folder."
TASKS_HELP = "Of sst2, mrpc, rte, stsb, cola, squad and retrieval, separated by commas."
CROSS_ENCODER_HELP = "Teacher of one more row of retrieval: a run, or a Hugging Face folder."


def compare_students(
    squad: Annotated[str, opt.Option("--squad DIR", SQUAD_HELP, "none")] = "",
    glue: Annotated[str, opt.Option("--glue DIR", GLUE_HELP, "none")] = "",
    start: Annotated[str, opt.Option("--start DIR", START_HELP, "random weights")] = "",
    tasks: Annotated[str, opt.Option("--tasks", TASKS_HELP, "all but retrieval, if files are there")] = "",
    depth: Annotated[int, opt.Option("--depth", "Layers of a student.", minimum=1)] = 3,
    width: Annotated[int, opt.Option("--width", "Of a student's vectors.", "its teacher's", minimum=0)] = 0,
    teachers: Annotated[int, opt.Option("--teachers", "Teachers of the ensemble.", minimum=2)] = 3,
    cross_encoder: Annotated[str, opt.Option("--cross-encoder DIR", CROSS_ENCODER_HELP, "none")] = "",
    seeds: Annotated[int, opt.Option("--seeds", "Runs per network, from seed 0 on.", minimum=1)] = 1,
    sets: opt.Sets = None,
    device: opt.Device = "auto",
    folder: Annotated[Path, opt.Option("--out DIR", "Folder for the runs and the table.")] = DEFAULT_FOLDER,
) -> None:
    """Train teachers and students on GLUE and SQuAD; compare quality, size and time.

    Students learn from labels alone, from a teacher's soft labels, from its layers and then soft
    labels, or from several teachers. A student of its teacher's width begins with evenly
    spaced layers of --start, another one with random weights. Students of the task retrieval differ
    in the articles of a batch, whose texts are their negatives. An interrupted table resumes when
    the command is repeated.

    Example: mnemic table students --squad squad --glue GLUE --start MINILM --seeds 3
    """
    from mnemic.reproduce.students_table import StudentsTable, save_students

    table = StudentsTable(
        squad=squad, glue=glue, start=start, tasks=[name for name in tasks.replace(" ", "").split(",") if name],
        depth=depth, width=width, teachers=teachers, cross_encoder=cross_encoder, seeds=seeds, sets=sets or [],
        device=opt.resolve_device(device),
    )  # fmt: skip
    for reason in table.skipped.values():
        print_text(f"left out: {reason}")
    train_with_progress(table, folder)
    result = save_students(table, folder)
    print_json(result)
    print_students(result)
    print_text(f"{format_duration(result['seconds'])} of training on {result['hardware']}")
    print_text(f"kept in {folder / 'table.json'}", style="dim")


def train_with_progress(table: "StudentsTable", folder: Path) -> None:
    """Train the missing runs with a progress bar; Ctrl-C saves between two steps."""
    from mnemic.reproduce.students_table import train_missing_students

    with (
        defer_interrupts() as should_stop,
        ProgressBars() as bars,
        closing(train_missing_students(table, folder)) as steps,
    ):
        for step in steps:
            report = step.report
            done = step.number + (report.phase + report.step / report.total_steps) / report.num_phases
            detail = f"{step.task}, {step.network}, seed {step.seed}, step {report.step} of {report.total_steps}"
            bars.show("runs", done, step.total, detail)
            if report.row is not None:
                name, metric = next(iter(report.row.get("figures", {}).items()), ("", 0.0))
                held_out = f"  held out: {name} {metric:.1f}" if name else ""
                bars.print_line(f"{detail}  loss {report.row['loss']:.4f}{held_out}")
            if should_stop():
                raise KeyboardInterrupt(f"stopped in run {step.number + 1} of {step.total}, and saved")


def print_students(result: dict[str, Any]) -> None:
    """Print one row per task and network."""
    from mnemic.reproduce.student_recipes import NETWORKS
    from mnemic.reproduce.student_tasks import TASKS

    rows = []
    for name, task in result["tasks"].items():
        for row in task["rows"]:
            metrics = ", ".join(
                f"{metric} {format_mean(row['metrics'][metric], len(result['seeds']))}" for metric in task["metrics"]
            )
            share = "" if row["share_of_teacher"] is None else f"{row['share_of_teacher']:.1f} %"
            title = TASKS[name].title if row is task["rows"][0] else ""
            rows.append([title, NETWORKS[row["network"]], metrics, share, f"{row['mb']:.1f}", f"{row['ms']:.2f}"])
    headers = ["task", "network", "dev", ">of the teacher", ">MB", ">ms a text"]
    caption = (
        f"MB: weights in int8; ms: median of batches of {result['texts_per_batch']} texts of dev, without tokenizing, "
        f"{result['cpu']}; best epoch chosen on texts held out of train"
    )
    print_table(headers, rows, title="students and their teachers", caption=caption)
    for name, task in result["tasks"].items():
        teacher = f"teacher of depth {task['teacher_depth']}; " if task["teacher_depth"] else ""
        print_text(
            f"{TASKS[name].title}: {teacher}student of depth {result['depth']} and "
            f"width {task['student_width']}, from {task['student_start']}"
        )


def format_mean(score: dict[str, float], num_seeds: int) -> str:
    """Format a metric, with its deviation over several seeds."""
    return f"{score['mean']:.1f}" + (f" ± {score['std']:.1f}" if num_seeds > 1 else "")
