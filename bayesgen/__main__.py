"""`python -m bayesgen` is the command line."""

from bayesgen.cli import app

app(prog_name="bayesgen")
