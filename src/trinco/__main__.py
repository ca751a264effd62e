"""``python -m trinco``."""

import sys

from trinco.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
