"""``mnemic trust``: use memories that another user owns, or that everybody can write."""

from pathlib import Path
from typing import Annotated

from mnemic.cli import options as opt
from mnemic.cli.render.console import print_json, print_text


def trust(
    path: Annotated[Path | None, opt.Argument("PATH", "A folder with a memory (.mnemic), or a memory's file.")] = None,
    remove: Annotated[bool, opt.Option("--remove", "No longer trust it.")] = False,
    only_list: Annotated[bool, opt.Option("--list", "List what is trusted, and change nothing.")] = False,
) -> None:
    """Trust the memory of a folder that another user owns, or that everybody can write.

    mnemic does not use such a memory by itself: others may read what you remember there, and may
    have written what it answers. Without PATH, it is the current folder.

    Example: mnemic trust /srv/team

    To take it back: mnemic trust --remove /srv/team
    """
    from mnemic.store.trust import distrust_path, list_trusted_paths, trust_path

    if not only_list:
        changed_path = (distrust_path if remove else trust_path)(path or Path.cwd())
        print_text(f"{changed_path} is {'no longer ' if remove else ''}trusted")
    paths = [str(trusted) for trusted in list_trusted_paths()]
    print_json({"trusted": paths})
    if only_list:
        print_text("\n".join(paths) or "no memory of others is trusted")
