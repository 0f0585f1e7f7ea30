"""Measure how long a ping waits while an assistant has a folder remembered.

    python -m benchmarks.mcp_latency --files 200

The server is a process of its own, the client the SDK's, over stdio. The first `remember` of a
server also imports torch and loads the embedder.
"""

import argparse
import os
import random
import statistics
import sys
import tempfile
import time
import warnings
from pathlib import Path

import anyio
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.shared.exceptions import MCPDeprecationWarning

WORDS = ["the", "lease", "rent", "river", "boat", "winter", "garden", "letter", "bank", "engine", "paper", "train"]


def write_files(folder: Path, num_files: int, num_sentences: int, seed: int) -> None:
    """Write text files of random sentences."""
    generator = random.Random(seed)
    folder.mkdir()
    for number in range(num_files):
        sentences = (" ".join(generator.choices(WORDS, k=12)).capitalize() + "." for _ in range(num_sentences))
        (folder / f"{number:04}.txt").write_text(" ".join(sentences), encoding="utf-8")


async def measure_pings(client: Client, folder: Path) -> tuple[float, list[float]]:
    """Remember a folder and ping meanwhile; return its seconds and those of the pings."""
    seconds: list[float] = []
    start = time.perf_counter()
    async with anyio.create_task_group() as group:

        async def ping() -> None:
            while True:
                sent = time.perf_counter()
                await client.send_ping()
                seconds.append(time.perf_counter() - sent)
                await anyio.sleep(0.02)

        group.start_soon(ping)
        result = await client.call_tool("remember", {"paths": [str(folder)]})
        group.cancel_scope.cancel()
    assert not result.is_error, result.content
    return time.perf_counter() - start, seconds


async def run_benchmark(options: argparse.Namespace) -> None:
    """Serve a new memory, and print the latency of pings for two folders."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        arguments = ["-m", "mnemic", "mcp", "--memory", str(root / "memory.db"), "--folder", str(root)]
        arguments += ["--embedder", options.embedder]
        server = StdioServerParameters(command=sys.executable, args=arguments, env=dict(os.environ))
        async with Client(stdio_client(server), mode="legacy") as client:
            for seed, title in enumerate(("first", "second")):
                write_files(root / title, options.files, options.sentences, seed)
                duration, seconds = await measure_pings(client, root / title)
                quantiles = statistics.quantiles(seconds, n=100)
                times = f"p50 {1e3 * quantiles[49]:.1f}, p99 {1e3 * quantiles[98]:.1f}, max {1e3 * max(seconds):.1f} ms"
                print(f"{title} remember: {duration:.1f} s, {len(seconds)} pings: {times}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=200)
    parser.add_argument("--sentences", type=int, default=40)
    parser.add_argument("--embedder", default="reader-small")
    warnings.simplefilter("ignore", MCPDeprecationWarning)  # a newer protocol has no ping
    anyio.run(run_benchmark, parser.parse_args())


if __name__ == "__main__":
    main()
