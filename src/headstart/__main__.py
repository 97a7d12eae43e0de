"""`python -m headstart` is `headstart`."""

from headstart.cli.app import main

main()
