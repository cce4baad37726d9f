"""Every test: asserts in the laws explain themselves as those of a test do."""

import pytest

pytest.register_assert_rewrite("laws", "refusals", "commands")

collect_ignore = ["typing"]  # for type checkers; `test_typing` runs what is to be run


@pytest.fixture
def no_sampling(monkeypatch):
    """Fail where a test gets as far as a sampler."""
    from bayesgen.inference import nuts

    monkeypatch.setattr(nuts, "blocks", lambda *args: pytest.fail("sampling began"))
