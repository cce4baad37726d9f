"""Every test: asserts of shared files explain themselves as in a test; each process has one thread of the BLAS."""

import os
from importlib.metadata import version
from pathlib import Path

import pytest

# Read when NumPy and SciPy are imported, here and in processes that tests start. Where as many workers as cores have
# more threads each, these wait for each other in loops, and some tests take ten times as long.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")

# A user's programs are compiled in half the time without the newer emitter of fused loops, as ours are everywhere
# (`bayesgen.core.program.compiled`). Later releases of JAX end where they are told of it, and run with their defaults.
if version("jax").startswith("0.10."):
    os.environ.setdefault("XLA_FLAGS", "--xla_cpu_use_fusion_emitters=false")
else:
    # Programs here are compiled once and run on few rows: without most optimisations the files of NUTS take a quarter
    # less time. Our own compiled programs set the options that they need. JAX 0.10 makes NaN of a Hessian of the
    # softmax so: with it the tests compile as users do.
    os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")

# A program that one worker, process or run has compiled is read by the next. A first run takes a tenth less time, since
# workers share; a second one, of the files that compile most, less than half.
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(Path(__file__).parents[1] / ".pytest_cache" / "programs"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")

pytest.register_assert_rewrite("refusals", "commands")

collect_ignore = ["typing"]  # for type checkers; `test_typing` runs them where needed

# Examples that sample, or fit an average, for seconds; the second command runs them (`compiles` in pyproject.toml).
LONG_EXAMPLES = {
    "bayesgen.inference.laplace.Laplace",
    "bayesgen.inspection.probabilities.draw_reliability",
    "bayesgen.inspection.leave_one_out.loo_given_x",
    "bayesgen.comparison.number_of_classes.compare_classes",
    "bayesgen.inspection.labelling.unlabelled_weight",
    "bayesgen.inference.base.fit",
    "bayesgen.models.pooled.Pooled",
    "bayesgen.models.pooled_groups.PooledGroups",
    "bayesgen.models.row_leaf.RowLeaf",
    "bayesgen.estimators.averaged.AveragedClassifier",
}


def pytest_collection_modifyitems(items):
    for item in items:
        if item.name in LONG_EXAMPLES:
            item.add_marker(pytest.mark.compiles)


@pytest.fixture
def few_members(monkeypatch):
    """Average two quick families alone, where a test is about something else; files of the average have them all."""
    from bayesgen.averaging import families

    quick = [own for own in families.FAMILIES if families.name_of(own) in ("gaussian", "category", "outside")]
    monkeypatch.setattr(families, "FAMILIES", quick)


@pytest.fixture
def no_sampling(monkeypatch):
    """Fail where a test gets as far as a sampler."""
    from bayesgen.inference import nuts

    monkeypatch.setattr(nuts, "blocks", lambda *args: pytest.fail("sampling began"))


@pytest.fixture
def paged(tmp_path):
    """Give what opens the page of a classifier in an engine without a browser."""
    from py_mini_racer import MiniRacer
    from scorers import Page

    engines = []

    def open_page(classifier, **options):
        classifier.to_page(tmp_path / "page.html", **options)
        engines.append(MiniRacer())
        return Page(tmp_path / "page.html", engines[-1])

    yield open_page
    for engine in engines:
        engine.close()
