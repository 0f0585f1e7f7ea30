"""``python -m mnemic`` is ``mnemic``; training also works without the command line's packages."""

import os
import sys
from importlib.util import find_spec

if __name__ == "__main__":
    bare = sys.argv[1:2] in (["average"], ["prepare"], ["ship"])
    if bare or "RANK" in os.environ or find_spec("typer") is None:
        from mnemic.cli.bare import main
    else:
        from mnemic.cli.main import main
    sys.exit(main())
