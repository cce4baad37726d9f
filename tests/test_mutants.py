"""Every wrong formula of `mutants.py` can still be made; that the tests notice it is a run of its own, of minutes."""

import ast

import mutants
import pytest


@pytest.mark.compiles
@pytest.mark.parametrize("mutant", mutants.MUTANTS, ids=lambda mutant: mutant.what)
def test_a_wrong_formula_can_be_made(mutant):
    path, text = mutants.mutate(mutant)
    assert ast.unparse(ast.parse(path.read_text())) != text
    assert mutant.suite in mutants.SUITES


@pytest.mark.compiles
def test_a_formula_that_is_not_there_or_there_twice_is_told():
    for right, count in (("self.a ** _b", 0), ("self.a", 2)):
        with pytest.raises(ValueError, match=f"nothing: {count} places of BetaBernoulli.mean have the shape"):
            mutants.mutate(mutants.Mutant("nothing", "BetaBernoulli.mean", right, "0", "bits"))
    with pytest.raises(LookupError, match="neither BetaBernoulli nor a base of it defines median"):
        mutants.find("BetaBernoulli.median")
    with pytest.raises(ValueError, match="defines BetaGeometric 0 times"):
        mutants.find("BetaGeometric.mean")
