"""`python -m kwire`: the `kwire` command."""

from __future__ import annotations

from kwire.cli.main import main

if __name__ == "__main__":
    raise SystemExit(main())
