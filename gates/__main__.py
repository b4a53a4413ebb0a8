"""`python -m gates`."""

from gates.cli import main

main()
