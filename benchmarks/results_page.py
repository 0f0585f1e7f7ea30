"""Fill the tables of docs/results.md from the measured tables in docs/results/*.json.

    python benchmarks/results_page.py

`mnemic table … --out DIR` measures; a copy of its DIR/table.json goes to docs/results/NAME.json.
A table on the page stands between `<!-- rows: NAME NAME -->` (one line a measured table),
`<!-- networks: NAME NAME -->` (the same as the summary of `mnemic table babi --recipe all`),
`<!-- tasks: NAME NAME -->` (one line a bAbI task) or `<!-- words: NAME -->` (`mnemic table words`)
and `<!-- end -->`; the words around are free. `<!-- tuned: TASK TASK -->` has a line a task that
`benchmarks/fine_tuning.py run` measured; copies of its files are in docs/results/fine-tuning.
`<!-- long: RUN RUN -->` has a line a length; docs/results/long-context/RUN.json has a line that
`benchmarks/long_context.py` printed.
With `NAME = LABEL` on lines of their own, the rows are labelled. What the runs read is shown as
soon as one of a table's lines knows it; tables measured earlier have a dash there.
"""

import json
import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from results_long import long_rows

from mnemic.reproduce.statistics import evidence_line, summary_of

READ = (  # the head of the columns that say what was read, tasks 1 / 2 / 3
    "reads a proof, tasks 1 / 2 / 3, % | answer changes without it; without another, % | ",
    "---: | ---: | ",
)
DOCS = Path(__file__).parents[1] / "docs"
ALL = 20  # tasks of bAbI
KINDS = "rows|networks|tasks|tuned|words|long"
BLOCK = re.compile(rf"(<!-- ({KINDS}):\s(.*?)\s-->)\n.*?<!-- end -->", re.DOTALL)


def main() -> None:
    page = DOCS / "results.md"
    page.write_text(filled(page.read_text(encoding="utf-8")), encoding="utf-8")


def filled(page: str) -> str:
    """The page with every table written anew."""

    def block(found: re.Match[str]) -> str:
        head, kind, named = found[1], found[2], labelled(found[3])
        if kind == "tuned":
            lines = tuned([runs_of(name) for name in named], list(named.values()))
            return "\n".join([head, "", *lines, "", "<!-- end -->"])
        if kind == "long":
            lines = long_rows([measured(f"long-context/{name}") for name in named])
            return "\n".join([head, "", *lines, "", "<!-- end -->"])
        tables, labels = [measured(name) for name in named], list(named.values())
        kinds = {"rows": rows, "networks": networks, "tasks": task_rows, "words": word_rows}
        lines = kinds[kind](tables, labels)
        return "\n".join([head, "", *lines, "", "<!-- end -->"])

    return BLOCK.sub(block, page)


def labelled(text: str) -> dict[str, str]:
    """The names in a table's first line, each with its label or nothing."""
    if "=" not in text:
        return dict.fromkeys(text.split(), "")
    pairs = [line.partition("=") for line in text.strip().splitlines()]
    return {name.strip(): label.strip() for name, _, label in pairs}


def measured(name: str) -> dict[str, Any]:
    return json.loads((DOCS / "results" / f"{name}.json").read_text(encoding="utf-8"))


def runs_of(task: str) -> list[dict[str, Any]]:
    """What fine-tuning measured, seed by seed."""
    paths = sorted((DOCS / "results" / "fine-tuning").glob(f"{task}-[0-9]*.json"))
    found = [json.loads(path.read_text(encoding="utf-8")) for path in paths]
    if not found:
        raise SystemExit(f"docs/results/fine-tuning has no {task}-SEED.json")
    return sorted(found, key=lambda run: run["seed"])


def tuned(groups: Sequence[list[dict[str, Any]]], labels: Sequence[str]) -> Iterator[str]:
    """One line a task: the mean of all seeds; a label is what was published for a larger BERT."""
    yield (
        "| task | BERT base, published | ours: mean ± deviation | seeds | validation | begun with "
        "| recipe and settings | seconds a run | hardware |"
    )
    yield "| --- | ---: | ---: | --- | ---: | --- | --- | ---: | --- |"
    for runs, label in zip(groups, labels):
        test, held = ([next(iter(run[k].values())) for run in runs] for k in ("test", "validation"))
        spread = f" ± {stdev(test):.1f}" if len(test) > 1 else ""
        own = runs[0]
        sets = {one.partition("=")[0]: one for one in own["sets"]}  # of one name the last counts
        cells = [
            own["title"],
            label or "–",
            f"**{mean(test):.1f}**{spread}",
            ", ".join(str(run["seed"]) for run in runs),
            f"{mean(held):.1f}",
            ", then ".join(filter(None, ["MiniLM" if own["started"] else "dice", own["before"]])),
            f"`{' '.join([own['recipe'], *sets.values()])}`",
            f"{mean(run['seconds'] for run in runs):.0f}",
            "; ".join(dict.fromkeys(run["hardware"] for run in runs)),
        ]
        yield "| " + " | ".join(cells) + " |"


def rows(tables: Sequence[dict[str, Any]], labels: Sequence[str]) -> Iterator[str]:
    """One line a measured table: published beside ours."""
    read = any(table["ours"].get("evidence") for table in tables)
    yield (
        "| setting | published | ours: best | mean ± deviation | median | failed, published / ours "
        f"| seeds | {READ[0] * read}command | hardware |"
    )
    yield f"| --- | ---: | ---: | ---: | ---: | ---: | --- | {READ[1] * read}--- | --- |"
    for table, label in zip(tables, labels):
        ours, paper = table["ours"], table["published"]
        same = not table["overrides"]
        published, theirs = (paper["mean_error"], paper["failed"]) if paper and same else ("–", "–")
        cells = [
            label or f"{table['size']} {table['setting']}",
            str(published),
            f"**{ours['best']:.1f}**",
            spread(ours, len(table["seeds"])),
            f"{ours['median']:.1f}",
            f"{theirs} / {ours['failed']}",
            f"0–{len(table['seeds']) - 1}",
            *(reads(ours.get("evidence", {})) if read else ()),
            f"`{command(table)}`",
            table["hardware"],
        ]
        yield "| " + " | ".join(cells) + " |"


def spread(ours: dict[str, Any], seeds: int) -> str:
    """The mean with its deviation, which one run does not have."""
    return f"{ours['mean_error']:.1f}" + (f" ± {ours['std']:.1f}" if seeds > 1 else "")


def networks(tables: Sequence[dict[str, Any]], labels: Sequence[str]) -> Iterator[str]:
    """One line a network: published beside ours, what it read, and what it cost."""
    yield (
        "| network | published: error / failed | ours: best / failed | mean ± deviation | seeds "
        f"| best chosen by | {READ[0]}minutes | hardware |"
    )
    yield f"| --- | ---: | ---: | ---: | ---: | --- | {READ[1]}---: | --- |"
    for table, label in zip(tables, labels):
        row = summary_of(table)
        goal, failed = row["published"], row["published_failed"]
        cells = [
            label or f"{row['recipe']}, {row['size']} {row['setting']}",
            "–" if goal is None else f"{goal} / {failed}",
            f"**{row['best']:.1f} / {row['failed']}**",
            spread(row, row["seeds"]),
            str(row["seeds"]),
            row["selection"],
            *reads(row["evidence"]),
            f"{row['minutes']:.0f}",
            row["hardware"],
        ]
        yield "| " + " | ".join(cells) + " |"


def reads(evidence: dict[str, dict[str, float]]) -> list[str]:
    """Two cells: how often a proof is read; how often the answer needs it, and another one."""
    if not evidence:
        return ["–", "–"]
    found, needed, other = (
        evidence_line(evidence, k) for k in ("supporting", "most_read", "other")
    )
    return [found, f"{needed}; {other}"]


def task_rows(tables: Sequence[dict[str, Any]], labels: Sequence[str]) -> Iterator[str]:
    """One line a task, two columns a measured table."""
    own = [f"{table['size']} {table['setting']}" for table in tables]
    titles = [f"{label or name}: {{}}" for label, name in zip(labels, own)]
    names = [title.format(what) for title in titles for what in ("published", "best", "mean")]
    yield "| task | " + " | ".join(names) + " |"
    yield "| --- |" + " ---: |" * len(names)
    for task in tables[0]["ours"]["per_task"]:
        cells = []
        for table in tables:
            paper = table["published"].get("per_task", {})
            cells.append(f"{paper[task]:.1f}" if task in paper else "–")
            cells += [f"{table['ours'][key][task]:.1f}" for key in ("per_task", "per_task_mean")]
        yield f"| {task} | " + " | ".join(cells) + " |"


def word_rows(tables: Sequence[dict[str, Any]], labels: Sequence[str]) -> Iterator[str]:
    """One line a language model; above them what guessing by frequency would give."""
    heads = "network | perplexity | of known words | weights | words read | seconds | seeds"
    yield f"| {heads} | hardware |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: | --- | --- |"
    for table in tables:
        guess, seeds = table["unigram"], len(table["seeds"])
        yield (
            f"| word frequencies | {guess['perplexity']:.1f} | {guess['known words']:.1f} | | "
            f"{table['words']['train']:,} | | | |"
        )
        for row in table["rows"]:
            deviation = f" ± {row['std']:.1f}" if seeds > 1 else ""
            cells = [
                f"`{row['recipe']}`",
                f"**{row['perplexity']:.1f}**{deviation}",
                f"{row['known words']:.1f}",
                f"{row['weights']:,}",
                f"{row['words_read']:,}",
                f"{row['seconds']:.0f}",
                "0" if seeds == 1 else f"0–{seeds - 1}",
                table["hardware"],
            ]
            yield "| " + " | ".join(cells) + " |"
        yield ""
        yield (
            f"A vocabulary of {table['vocab']:,}; {guess['unknown %']:.1f} % of the "
            f"{table['words']['test']:,} words asked for are not in it. "
            f"`{words_command(table)}`"
        )


def words_command(table: dict[str, Any]) -> str:
    """What was typed to measure it."""
    words = ["mnemic", "table", "words", "--data", "DIR"]
    words += ["--seeds", str(len(table["seeds"]))] if len(table["seeds"]) > 1 else []
    for text in table["overrides"]:
        words += ["--set", text]
    return shlex.join(words)


def command(table: dict[str, Any]) -> str:
    """What was typed to measure it."""
    words = ["mnemic", "table", "babi", "--recipe", table["recipe"], "--size", table["size"]]
    words += ["--joint"] if table["setting"] == "joint" else []
    words += ["--seeds", str(len(table["seeds"])), "--data", "DIR"]
    if len(tasks := table["ours"]["per_task"]) < ALL:
        words += ["--tasks", ",".join(tasks)]
    for text in table["overrides"]:
        words += ["--set", text]
    return shlex.join(words)


if __name__ == "__main__":
    main()
