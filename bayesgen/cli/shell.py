"""How the commands speak: errors as one line, warnings as lines, hints in the words of the command line."""

import contextlib
import shlex
import warnings

import typer

from bayesgen import report

_WORDS = {  # what messages of the library call what is an option here
    "unseen='error'": "--unseen error",
    "unseen='missing'": "--unseen missing",
    "inference='exact'": "--inference exact",
    "inference='laplace'": "--inference laplace",
    "inference='map'": "--inference map",
    "inference='nuts'": "--inference nuts",
    "shared=True": "a shared covariance",
    "declare it categorical": "make it a category by --categorical",
    "('log1p')": "(--log)",
    "declare every class as classes=, of partial_fit at its first call": "fit anew, with rows of every class",
}


@contextlib.contextmanager
def one_line(err):
    """What is wrong with files and arguments as one line, and exit code 2."""
    try:
        yield
    except (ValueError, TypeError, OSError) as error:
        report.say(err, f"Error: {in_options(' '.join(str(error).split()))}")
        raise typer.Exit(2) from None


@contextlib.contextmanager
def said(out):
    """Warnings as lines, each once, below what is said meanwhile."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for text in dict.fromkeys(str(w.message) for w in caught if issubclass(w.category, UserWarning | RuntimeWarning)):
        report.say(out, in_options(text), indent=2)


def in_options(text: str) -> str:
    """A message of the library with its arguments as options of the command line."""
    for word, option in _WORDS.items():
        text = text.replace(word, option)
    return text


def command_line(context: typer.Context) -> str:
    """The command with the arguments and options that were given, as a shell takes it."""
    words = ["bayesgen", str(context.info_name)]
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if source is None or source.name != "COMMANDLINE":
            continue
        value = context.params[parameter.name or ""]
        if parameter.param_type_name == "argument":
            words.append(str(value))
        elif value is True:
            words.append(parameter.opts[0])
        else:
            values = value if isinstance(value, list | tuple) else [value]
            words += [word for one in values for word in (parameter.opts[0], str(one))]
    return shlex.join(words)
