"""What the tests of a problem use, and what a program defines."""

import pytest

from parley.rules.python_tests import find_definitions, parse_tests


@pytest.mark.parametrize(
    "test",
    [
        "match f(1):\n    case {'a': 1, **rest}:\n        assert rest == {}",
        "match f(1):\n    case [1, *rest] as whole:\n        assert rest or whole",
        "try:\n    f(1)\nexcept ValueError as error:\n    assert error.args",
        "assert [each for each in f(1)] == (lambda given: given)([])",
    ],
)
def test_a_name_that_a_test_binds_itself_is_not_the_programs(test):
    assert parse_tests((test,), "", "").names == ("f",)


def test_a_program_defines_functions_classes_and_variables():
    code = "class A: pass\nasync def f(): pass\ng = f\nh: object = f\ni: int\n"
    assert find_definitions(code) == {"A": True, "f": False, "g": False, "h": False}


def test_a_name_from_a_star_import_is_refused_with_what_to_do():
    found = parse_tests(("assert sqrt(f(4)) == 2",), "from math import *", "")
    assert "import it by its name" in found.find_undefined(("f",))
