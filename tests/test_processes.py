"""Processes: forked children, Ctrl-C in the midst of imports, and compiled programs within their budget of memory."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bayesgen.posterior import compiled

# -- a forked child

FORKED = """
{before}
import os, bayesgen as bg
X, y = [[0.0], [1.0], [2.0]], [0, 1, 1]
fitted = bg.NaiveBayesClassifier(random_state=0).fit(X, y)
{parent}
child = os.fork()
if child == 0:
    fitted.predict([[1.0]])  # no program
    try:
        fitted.set_params(inference=bg.NUTS(20, 20, 1)).fit(X, y)
    except RuntimeError as error:
        os._exit(17 if "spawn" in str(error) and "loky" in str(error) else 1)
    os._exit(0)
os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
SAMPLED = "bg.fit(bg.models.BetaBernoulli(), [1, 0], bg.NUTS(20, 20, 1), seed=0)"


@pytest.mark.parametrize(
    ("before", "parent", "told"),
    [
        ("", SAMPLED, True),
        ("import jax; jax.devices()", "", True),  # the user's own JAX
        ("", "import jax.numpy as jnp; jnp.ones(3) + 1", True),
        ("import numpyro", "bg.models.BetaBernoulli().predictive()", False),  # JAX is there, but has not started
    ],
    ids=["our program", "JAX before", "JAX after", "JAX idle"],
)
def test_a_forked_child_is_told_rather_than_left_hanging(before, parent, told):
    code = FORKED.format(before=before, parent=parent)
    call = [sys.executable, "-W", "ignore", "-c", code]
    assert subprocess.run(call, check=False, timeout=120).returncode == (17 if told else 0)


# -- Ctrl-C

START = {
    "module": [sys.executable, "-m", "bayesgen"],
    "script": [sys.executable, str(Path(sys.executable).with_name("bayesgen"))],
}
MODULES = ["numpy", "pandas", "scipy.special", "sklearn.base", "bayesgen.models", "typer", "bayesgen.cli.plot"]
INTERRUPT = """
import os, signal, sys

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Finder())
"""


# How it is started makes a difference until its own modules are imported; what comes then is the same.
@pytest.mark.parametrize(
    ("start", "module"), [*(("module", name) for name in MODULES), ("script", MODULES[0]), ("script", MODULES[-1])]
)
def test_an_interrupt_during_imports_ends_the_command_line_in_silence(start, module, tmp_path):
    (tmp_path / "sitecustomize.py").write_text(INTERRUPT.format(module=module))
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(Path(__file__).parents[1])])}
    call = [*START[start], "--version"]
    done = subprocess.run(call, cwd=tmp_path, env=environment, capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"")


def test_imports_of_other_programs_keep_their_interrupts(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(INTERRUPT.format(module="bayesgen.models"))
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(Path(__file__).parents[1])])}
    code = "try:\n import bayesgen\nexcept KeyboardInterrupt:\n print('own')"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, check=True)
    assert done.stdout.split() == [b"own"]


# -- programs


class Program:
    """As much of a compiled program as is measured."""

    def __init__(self, size):
        self.size = size

    def as_text(self):
        return "x" * (self.size // compiled._BYTES)


def test_programs_are_kept_within_a_budget_of_memory(monkeypatch):
    monkeypatch.setattr(compiled, "_programs", type(compiled._programs)())
    monkeypatch.setattr(compiled, "_BUDGET", 1000)
    made = []

    def kept(kind, *sizes):
        def make():
            made.append(kind)
            programs = tuple(Program(size) for size in sizes)
            return programs if len(programs) > 1 else programs[0]

        return compiled.kept(kind, make)

    first = kept("a", 400)
    kept("b", 200, 200)
    assert kept("a", 400) is first and made == ["a", "b"]
    kept("c", 400)  # b was not used for longest
    assert kept("a", 400) is first and made == ["a", "b", "c"]
    large = kept("d", 5000)
    assert kept("d", 5000) is large and list(compiled._programs) == ["d"]
    kept("e", 100)
    assert list(compiled._programs) == ["e"]


def test_the_size_of_a_sampler_is_seen():
    """Its memory, some 20 MB a model, was measured with the process; of no program is it 0."""
    from bayesgen import NUTS, fit
    from bayesgen.models import BetaBernoulli

    fit(BetaBernoulli(), [1, 0, 1], NUTS(20, 30, 1), seed=0)
    *_, (_, size) = (v for k, v in compiled._programs.items() if k[:2] == (30, 0.8))
    assert 2e6 < size < 60e6
