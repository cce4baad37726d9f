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
X, y = [[False], [True], [True]], [0, 1, 1]
fitted = bg.NaiveBayesClassifier(random_state=0).fit(X, y)

def told():
    child = os.fork()
    if child == 0:
        fitted.predict([[True]])  # no program
        try:
            fitted.set_params(inference=bg.NUTS(20, 20, 1)).fit(X, y)
        except RuntimeError as error:
            os._exit(17 if "spawn" in str(error) and "loky" in str(error) else 1)
        os._exit(0)
    return {{0: False, 17: True}}[os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])]

{parent}
assert told()
"""
IDLE = "import numpyro; bg.models.BetaBernoulli().predictive(); assert not told()"  # JAX is there, but has not started
DENSITY = "bg.fit(bg.models.BetaBernoulli(2, 3), [1, 0]).to_arviz(0, [1, 0])"  # the log prior is our program


@pytest.mark.compiles
@pytest.mark.parametrize(
    ("before", "parent"),
    [
        ("", f"{IDLE}; {DENSITY}"),
        ("import jax; jax.devices()", ""),  # the user's own JAX
        pytest.param("", "import jax.numpy as jnp; jnp.ones(3) + 1", marks=pytest.mark.slow),
    ],
    ids=["our program, JAX idle before it", "JAX before", "JAX after"],
)
def test_a_forked_child_is_told_rather_than_left_hanging(before, parent):
    code = FORKED.format(before=before, parent=parent)
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, timeout=120)


# -- Ctrl-C

START = {
    "module": [sys.executable, "-m", "bayesgen"],
    "script": [sys.executable, str(Path(sys.executable).with_name("bayesgen"))],
}
MODULES = ["numpy", "pandas", "scipy.special", "sklearn.base", "bayesgen.models", "typer", "bayesgen.cli.plot"]
BETWEEN = ["scipy.special", "bayesgen.models", "typer"]  # imported as the ones around them are
LATE = ["pandas", "bayesgen.cli.plot"]  # after others that take seconds
INTERRUPT = """
import os, signal, sys

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it for what runs in the background

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Finder())
"""


# How it is started makes a difference until its own modules are imported; what comes then is the same.
@pytest.mark.parametrize(
    ("start", "module"),
    [
        *(("module", name) for name in MODULES if name not in [*BETWEEN, *LATE]),
        *(pytest.param("module", name, marks=pytest.mark.compiles) for name in LATE),
        *(pytest.param("module", name, marks=pytest.mark.slow) for name in BETWEEN),
        ("script", MODULES[0]),
        pytest.param("script", MODULES[-1], marks=pytest.mark.slow),
    ],
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
    code = "try:\n import bayesgen.models\nexcept KeyboardInterrupt:\n print('own')"
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


@pytest.mark.compiles
def test_the_size_of_a_sampler_is_seen():
    """Its memory, some 20 MB a model, was measured with the process; of no program is it 0."""
    from bayesgen import NUTS, fit
    from bayesgen.models import BetaBernoulli

    fit(BetaBernoulli(), [1, 0, 1], NUTS(20, 50, 1), seed=0)
    *_, (_, size) = (v for k, v in compiled._programs.items() if k[:2] == (50, 0.8))
    assert 2e6 < size < 60e6
