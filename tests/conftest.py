"""Every test: asserts in the laws explain themselves as those of a test do; programs are compiled without polish."""

import os

import pytest

# Nearly all programs of the tests run for less time than LLVM would take to make them faster. JAX reads this when it is
# imported, here and in the processes that tests start; `JAX_DISABLE_MOST_OPTIMIZATIONS=0` tests what users run.
os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")

pytest.register_assert_rewrite("laws", "refusals", "commands")

collect_ignore = ["typing"]  # for type checkers; `test_typing` runs what is to be run


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
