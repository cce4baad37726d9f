"""A fitted classifier as a program that needs no Python: a script that answers as `predict_proba` does, and a page."""

from bayesgen.export.calculator import to_page
from bayesgen.export.learning_page import learning_page
from bayesgen.export.plain_program import program, program_or_none
from bayesgen.export.script import export, script
from bayesgen.export.wording import words_template

__all__ = ["export", "learning_page", "program", "program_or_none", "script", "to_page", "words_template"]
