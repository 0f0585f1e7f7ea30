"""``python -m mnemic`` is ``mnemic``."""

import sys

from mnemic.app.main import main

if __name__ == "__main__":
    sys.exit(main())
