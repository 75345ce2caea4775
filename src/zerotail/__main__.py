"""`python -m zerotail` is the `zerotail` program."""

from zerotail.cli import main

main()
