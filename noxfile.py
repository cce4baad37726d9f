#!/usr/bin/env -S uv run --script
# /// script
# dependencies = ["nox>=2025.5"]
# ///
"""The commands of CONTRIBUTING.md as sessions, each in an environment made for it: `nox`, or `nox -s tests-3.14`."""

import nox

nox.needs_version = ">=2025.5"
nox.options.default_venv_backend = "uv|virtualenv"


@nox.session(python=["3.11", "3.12", "3.13", "3.14"], default=False)
def tests(session):
    """Run tests and doctests; what follows `--` is for pytest, such as `-m slow`."""
    session.install("-e", ".[test]")
    session.run("python", "-m", "pytest", "-n", "2", *session.posargs)


@nox.session(default=False)
def coverage(session):
    """Run the default tests and say what they cover; less than the floor of pyproject.toml fails."""
    session.install("-e", ".[dev]")
    session.run("coverage", "run", "-m", "pytest", "-n", "2")
    session.run("coverage", "combine")
    session.run("coverage", "report")


@nox.session
def lint(session):
    """Check style, layout, spelling and the workflows."""
    session.install("-e", ".[dev]")
    session.run("ruff", "check")
    session.run("ruff", "format", "--check")
    session.run("codespell")
    session.run("zizmor", "--offline", "--quiet", ".github")


@nox.session
def types(session):
    """Check the types of the package, and of what its users write."""
    session.install("-e", ".[dev]")
    session.run("pyright")
    session.run("mypy")


@nox.session(default=False)
def site(session):
    """Build the site, which runs the code of its pages."""
    session.install("-e", ".[docs]")
    session.run("sphinx-build", "-W", "-j", "2", "docs", "docs/_build/html")


@nox.session(default=False)
def browser(session):
    """Build the site with the notebooks that open in the browser, where nothing is installed."""
    session.install("-e", ".[docs,browser]")
    session.run("sphinx-build", "-W", "-j", "2", "-A", "browser=1", "docs", "docs/_build/html")
    session.run("python", "docs/browser.py")


@nox.session(default=False)
def package(session):
    """Build the package, and do the main job with the wheel alone."""
    session.run("bash", ".ci/package", *session.posargs, external=True)


@nox.session(default=False)
def lowest(session):
    """Run tests under the lowest versions that are declared."""
    session.run("bash", ".ci/lowest", external=True)


if __name__ == "__main__":
    nox.main()
