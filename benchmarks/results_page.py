"""Fill the tables of docs/explain/results.md from the measured tables in docs/results/*.json.

    python benchmarks/results_page.py

`mnemic table … --out DIR` measures; copy its DIR/table.json to docs/results/NAME.json. A table of
the page is between `<!-- rows: NAME NAME -->` (one line per measured table),
`<!-- networks: NAME NAME -->` (the same as the summary of `mnemic table babi --recipe all`),
`<!-- tasks: NAME NAME -->` (one line per bAbI task), `<!-- words: NAME -->` (`mnemic table
words`), `<!-- vectors: NAME -->` (`mnemic table vectors`), `<!-- students: NAME -->` (runs of
`mnemic table students`) or `<!-- baseline: NAME -->` (`benchmarks/fasttext_baseline.py`) and
`<!-- end -->`; the text around it is free.
`<!-- tuned: TASK TASK -->` has one line per task that `benchmarks/fine_tuning.py run` measured;
copies of its files are in docs/results/fine-tuning. `<!-- long: RUN RUN -->` has one line per
length; docs/results/long-context/RUN.json has a line that `benchmarks/long_context.py` printed.
With lines `NAME = LABEL` the rows have labels. The columns of evidence are shown if one line of a
table has evidence; tables measured earlier have a dash there.
"""

import json
import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from mnemic.reproduce.commands import format_babi_command
from mnemic.reproduce.statistics import format_evidence, summarize_table
from mnemic.reproduce.student_recipes import NETWORKS

EVIDENCE_COLUMNS = (  # heads of the columns of evidence, tasks 1 / 2 / 3
    "reads a proof, tasks 1 / 2 / 3, % | answer changes without it; without another, % | ",
    "---: | ---: | ",
)
DOCS = Path(__file__).parents[1] / "docs"
BASELINE = "fasttext-classes"
METRIC_TITLES = {"accuracy": "accuracy", "f1": "F1", "matthews": "Matthews", "pearson": "Pearson"}
KINDS = "rows|networks|tasks|tuned|words|vectors|students|baseline|long"
# Published on BABILong (Kuratov et al. 2024, arXiv:2406.10149; Rodkin et al. 2024), 137M weights,
# one network per task: mean accuracy of tasks 1-5 by tokens.
ARMT = {0: 99.3, 4000: 98.1, 32_000: 98.0, 128_000: 96.9, 1_000_000: 93.4, 10_000_000: 76.6}
RMT = {0: 99.4, 4000: 92.3, 32_000: 77.9, 128_000: 58.5, 1_000_000: 42.8, 10_000_000: 33.8}
ANSWER_SOURCES = {"memory": "memory", "window": "the last window", "retrieval": "sentences most like it"}
BLOCK = re.compile(rf"(<!-- ({KINDS}):\s(.*?)\s-->)\n.*?<!-- end -->", re.DOTALL)


def main() -> None:
    page = DOCS / "explain" / "results.md"
    page.write_text(fill_tables(page.read_text(encoding="utf-8")), encoding="utf-8")


def fill_tables(page: str) -> str:
    """Replace every table of a page."""

    def replace_block(match: re.Match[str]) -> str:
        """Format the table of one block."""
        head, kind, labels_by_name = match[1], match[2], parse_names(match[3])
        if kind == "tuned":
            lines = format_tuned_table([read_runs(name) for name in labels_by_name], list(labels_by_name.values()))
            return "\n".join([head, "", *lines, "", "<!-- end -->"])
        if kind == "long":
            lines = format_long_table([read_table(f"long-context/{name}") for name in labels_by_name])
            return "\n".join([head, "", *lines, "", "<!-- end -->"])
        tables, labels = [read_table(name) for name in labels_by_name], list(labels_by_name.values())
        kinds = {
            "rows": format_settings_table,
            "networks": format_networks_table,
            "tasks": format_tasks_table,
            "words": format_words_table,
            "vectors": format_vectors_table,
            "students": format_students_table,
            "baseline": format_baseline_table,
        }
        lines = kinds[kind](tables, labels)
        return "\n".join([head, "", *lines, "", "<!-- end -->"])

    return BLOCK.sub(replace_block, page)


def parse_names(text: str) -> dict[str, str]:
    """Parse the names in a table's first line, each with its label or nothing."""
    if "=" not in text:
        return dict.fromkeys(text.split(), "")
    pairs = [line.partition("=") for line in text.strip().splitlines()]
    return {name.strip(): label.strip() for name, _, label in pairs}


def read_table(name: str) -> dict[str, Any]:
    """Read a measured table."""
    return json.loads((DOCS / "results" / f"{name}.json").read_text(encoding="utf-8"))


def read_runs(task: str) -> list[dict[str, Any]]:
    """Read the fine-tuning results of a task, ordered by seed."""
    paths = sorted((DOCS / "results" / "fine-tuning").glob(f"{task}-[0-9]*.json"))
    runs = [json.loads(path.read_text(encoding="utf-8")) for path in paths]
    if not runs:
        raise SystemExit(f"docs/results/fine-tuning has no {task}-SEED.json")
    return sorted(runs, key=lambda run: run["seed"])


def read_baseline() -> dict[str, str]:
    """Read the mean of the baseline for each of its tasks."""
    return {row["task"]: f"{row['mean']:.1f}" for row in read_table(BASELINE)["rows"]}


def format_tuned_table(groups: Sequence[list[dict[str, Any]]], labels: Sequence[str]) -> Iterator[str]:
    """Format one line per fine-tuned task: the mean of all seeds.

    The labels are published results of a larger BERT.
    """
    yield (
        f"| task | BERT base, published | ours: mean ± deviation | `{BASELINE}` | seeds | validation | begun with "
        "| recipe and settings | seconds a run | hardware |"
    )
    yield "| --- | ---: | ---: | ---: | --- | ---: | --- | --- | ---: | --- |"
    baseline = read_baseline()
    for runs, label in zip(groups, labels):
        test_scores, validation_scores = ([next(iter(run[k].values())) for run in runs] for k in ("test", "validation"))
        spread = f" ± {stdev(test_scores):.1f}" if len(test_scores) > 1 else ""
        first_run = runs[0]
        sets = {setting.partition("=")[0]: setting for setting in first_run["sets"]}  # of one name the last counts
        cells = [
            first_run["title"],
            label or "–",
            f"**{mean(test_scores):.1f}**{spread}",
            baseline.get(first_run["task"].partition("-")[0], "–"),
            ", ".join(str(run["seed"]) for run in runs),
            f"{mean(validation_scores):.1f}",
            ", then ".join(filter(None, ["MiniLM" if first_run["started"] else "dice", first_run["before"]])),
            f"`{' '.join([first_run['recipe'], *sets.values()])}`",
            f"{mean(run['seconds'] for run in runs):.0f}",
            "; ".join(dict.fromkeys(run["hardware"] for run in runs)),
        ]
        yield "| " + " | ".join(cells) + " |"


def format_settings_table(tables: Sequence[dict[str, Any]], labels: Sequence[str]) -> Iterator[str]:
    """Format one line per measured table: published and ours."""
    has_evidence = any(table["ours"].get("evidence") for table in tables)
    yield (
        "| setting | published | ours: best | mean ± deviation | median | failed, published / ours "
        f"| seeds | {EVIDENCE_COLUMNS[0] * has_evidence}command | hardware |"
    )
    yield f"| --- | ---: | ---: | ---: | ---: | ---: | --- | {EVIDENCE_COLUMNS[1] * has_evidence}--- | --- |"
    for table, label in zip(tables, labels):
        measured, paper = table["ours"], table["published"]
        same = not table["overrides"]
        published, published_failed = (paper["mean_error"], paper["failed"]) if paper and same else ("–", "–")
        cells = [
            label or f"{table['size']} {table['setting']}",
            str(published),
            f"**{measured['best']:.1f}**",
            format_spread(measured, len(table["seeds"])),
            f"{measured['median']:.1f}",
            f"{published_failed} / {measured['failed']}",
            f"0–{len(table['seeds']) - 1}",
            *(format_evidence_cells(measured.get("evidence", {})) if has_evidence else ()),
            f"`{format_babi_command(table)}`",
            table["hardware"],
        ]
        yield "| " + " | ".join(cells) + " |"


def format_spread(statistics: dict[str, Any], seeds: int) -> str:
    """Format a mean with its deviation, if there are several runs."""
    return f"{statistics['mean_error']:.1f}" + (f" ± {statistics['std']:.1f}" if seeds > 1 else "")


def format_networks_table(tables: Sequence[dict[str, Any]], labels: Sequence[str]) -> Iterator[str]:
    """Format one line per network: published and ours, evidence, and cost."""
    yield (
        "| network | published: error / failed | ours: best / failed | mean ± deviation | seeds "
        f"| best chosen by | {EVIDENCE_COLUMNS[0]}minutes | hardware |"
    )
    yield f"| --- | ---: | ---: | ---: | ---: | --- | {EVIDENCE_COLUMNS[1]}---: | --- |"
    for table, label in zip(tables, labels):
        row = summarize_table(table)
        goal, failed = row["published"], row["published_failed"]
        cells = [
            label or f"{row['recipe']}, {row['size']} {row['setting']}",
            "–" if goal is None else f"{goal} / {failed}",
            f"**{row['best']:.1f} / {row['failed']}**",
            format_spread(row, row["seeds"]),
            str(row["seeds"]),
            row["selection"],
            *format_evidence_cells(row["evidence"]),
            f"{row['minutes']:.0f}",
            row["hardware"],
        ]
        yield "| " + " | ".join(cells) + " |"


def format_evidence_cells(evidence: dict[str, dict[str, float]]) -> list[str]:
    """Format two cells: how often a proof is read, and how often needed."""
    if not evidence:
        return ["–", "–"]
    supporting, needed, unrelated = (format_evidence(evidence, k) for k in ("supporting", "most_read", "other"))
    return [supporting, f"{needed}; {unrelated}"]


def format_tasks_table(tables: Sequence[dict[str, Any]], labels: Sequence[str]) -> Iterator[str]:
    """Format one line per task, three columns per measured table."""
    default_labels = [f"{table['size']} {table['setting']}" for table in tables]
    titles = [f"{label or name}: {{}}" for label, name in zip(labels, default_labels)]
    names = [title.format(statistic) for title in titles for statistic in ("published", "best", "mean")]
    yield "| task | " + " | ".join(names) + " |"
    yield "| --- |" + " ---: |" * len(names)
    for task in tables[0]["ours"]["per_task"]:
        cells = []
        for table in tables:
            paper = table["published"].get("per_task", {})
            cells.append(f"{paper[task]:.1f}" if task in paper else "–")
            cells += [f"{table['ours'][key][task]:.1f}" for key in ("per_task", "per_task_mean")]
        yield f"| {task} | " + " | ".join(cells) + " |"


def format_words_table(tables: Sequence[dict[str, Any]], labels: Sequence[str]) -> Iterator[str]:
    """Format one line per language model, after the unigram baseline."""
    heads = "network | perplexity | of known words | weights | words read | seconds | seeds"
    yield f"| {heads} | hardware |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: | --- | --- |"
    for table in tables:
        unigram, seeds = table["unigram"], len(table["seeds"])
        yield (
            f"| word frequencies | {unigram['perplexity']:.1f} | {unigram['known words']:.1f} | | "
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
            f"A vocabulary of {table['vocab']:,}; {unigram['unknown %']:.1f} % of the "
            f"{table['words']['test']:,} words asked for are not in it. "
            f"`{format_words_command(table)}`"
        )


def format_vectors_table(tables: Sequence[dict[str, Any]], labels: Sequence[str]) -> Iterator[str]:
    """Format one line per kind of word vectors."""
    yield "| kind | WordSim-353 | SimLex-999 | analogies, % | SST-2 by the mean, % | seconds | seed | hardware |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: | --- | --- |"
    for table in tables:
        for row in table["rows"]:
            figures = [f"{row['wordsim'] / 100:.3f}", f"{row['simlex'] / 100:.3f}", f"{row['analogies']:.1f}"]
            cells = [f"`{row['kind']}`", *figures, f"{row['classes']:.1f}", f"{row['seconds']:,.0f}"]
            yield "| " + " | ".join([*cells, str(row["seed"]), row["hardware"]]) + " |"


def format_students_table(tables: Sequence[dict[str, Any]], labels: Sequence[str]) -> Iterator[str]:
    """Format one line per task: its main metric by network."""
    for table in tables:
        rows = {name: {row["network"]: row for row in task["rows"]} for name, task in table["tasks"].items()}
        sizes = [{row[name]["mb"] for row in rows.values() if name in row} for name in NETWORKS]
        heads = [f"{title}, {min(mb):.1f} MB" for title, mb in zip(NETWORKS.values(), sizes) if mb]
        yield "| " + " | ".join(["task, dev", f"`{BASELINE}`", *heads, "seconds of training"]) + " |"
        yield "| --- |" + " ---: |" * (len(heads) + 2)
        baseline = read_baseline()
        for name, task in table["tasks"].items():
            metric = task["metrics"][0]
            cells = [f"{task['title']}, {METRIC_TITLES[metric]}", baseline.get(name, "–")]
            cells += [
                format_scores([run["metrics"][metric] for run in rows[name][network]["runs"]])
                if network in rows[name]
                else "–"
                for network, mb in zip(NETWORKS, sizes)
                if mb
            ]
            seconds = sum(run["seconds"] for row in rows[name].values() for run in row["runs"])
            yield "| " + " | ".join([*cells, f"{seconds:,.0f}"]) + " |"


def format_scores(scores: Sequence[float]) -> str:
    """Format a mean, with its deviation if there are several scores."""
    return f"{mean(scores):.1f}" + (f" ± {stdev(scores):.1f}" if len(scores) > 1 else "")


def format_baseline_table(tables: Sequence[dict[str, Any]], labels: Sequence[str]) -> Iterator[str]:
    """Format one line per task of the baseline."""
    yield "| task | ours: mean ± deviation | seeds | validation | settings | seconds a run | hardware |"
    yield "| --- | ---: | --- | ---: | --- | ---: | --- |"
    for table in tables:
        for row in table["rows"]:
            metric = METRIC_TITLES[row["metric"]]
            settings = " ".join(f"`{text}`" for text in row["sets"]) or "–"
            cells = [f"{row['title']}, {metric}", f"**{row['mean']:.1f}** ± {row['deviation']:.1f}"]
            cells += [", ".join(map(str, row["seeds"])), f"{row['validation']:.1f}", settings]
            yield "| " + " | ".join([*cells, f"{row['seconds']:.0f}", row["hardware"]]) + " |"


def format_words_command(table: dict[str, Any]) -> str:
    """Format the command that measured a table of language models."""
    command = ["mnemic", "table", "words", "--data", "DIR"]
    command += ["--seeds", str(len(table["seeds"]))] if len(table["seeds"]) > 1 else []
    for text in table["overrides"]:
        command += ["--set", text]
    return shlex.join(command)


def format_long_table(runs: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Format one line per source of answers and length: the mean over all seeds."""
    yield (
        "| answered from | tokens | 1 | 2 | 3 | 4 | 5 | mean ± deviation | ARMT | RMT | seeds "
        "| questions a task | tokens a second |"
    )
    yield "| --- |" + " ---: |" * 12
    for (way, tokens), rows in sorted(group_by_length(runs).items(), key=sort_key_of):
        means, tasks = [row["mean"] for row in rows], list(rows[0]["accuracy"])
        spread = f" ± {stdev(means):.1f}" if len(means) > 1 else ""
        published = (ARMT, RMT) if way == "memory" else ({}, {})
        cells = [
            ANSWER_SOURCES[way],
            f"{tokens:,}",
            *(f"{mean(row['accuracy'][task] for row in rows):.1f}" for task in tasks),
            f"**{mean(means):.1f}**{spread}",
            *(str(accuracies.get(tokens, "–")) for accuracies in published),
            str(len(rows)),
            str(rows[0]["questions"] // len(tasks)),
            format_pace(rows) if tokens and way != "window" else "–",
        ]
        yield "| " + " | ".join(cells) + " |"


def format_pace(rows: Sequence[dict[str, Any]]) -> str:
    """Format the mean tokens per second, if all runs read all tokens."""
    paces = [row["tokens a second"] for row in rows if "tokens a second" in row]
    return f"{mean(paces):,.0f}" if len(paces) == len(rows) else "–"


def group_by_length(runs: Sequence[dict[str, Any]]) -> dict[tuple[str, int], list[dict[str, Any]]]:
    """Group the rows of all runs by source of answers and number of tokens."""
    rows_by_length: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for run in runs:
        for row in run["rows"]:
            rows_by_length.setdefault((run["way"], row["tokens"]), []).append(row)
    return rows_by_length


def sort_key_of(group: tuple[tuple[str, int], Any]) -> tuple[int, int]:
    """Return the key that sorts groups by source of answers, then by length."""
    (way, tokens), _ = group
    return list(ANSWER_SOURCES).index(way), tokens


if __name__ == "__main__":
    main()
