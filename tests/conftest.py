"""Every test: asserts in the laws explain themselves as those of a test do."""

import pytest

pytest.register_assert_rewrite("laws")

collect_ignore = ["typing"]  # for type checkers; `test_typing` runs what is to be run
