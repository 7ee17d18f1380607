"""Small problems in the manner of MBPP: a task's tests, a right program and one that is wrong."""

# ruff: noqa: E501 (programs keep their lines)

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Problem:
    right: str
    wrong: str
    tests: tuple[str, ...]


def problem(right: str, tests: str, replaced: str, by: str) -> Problem:
    assert replaced in right
    return Problem(
        right,
        right.replace(replaced, by, 1),
        tuple(f"assert {each.strip()}" for each in tests.split(";")),
    )


PROBLEMS = (
    problem("def add(a, b):\n    return a + b", "add(1, 2) == 3; add(-1, 1) == 0; add(10, 5) == 15", "a + b", "a - b"),
    problem("def is_even(n):\n    return n % 2 == 0", "is_even(4); not is_even(7); is_even(0)", "== 0", "== 1"),
    problem("def factorial(n):\n    return 1 if n < 2 else n * factorial(n - 1)", "factorial(5) == 120; factorial(0) == 1; factorial(3) == 6", "n * f", "n + f"),
    problem("def reverse(s):\n    return s[::-1]", "reverse('abc') == 'cba'; reverse('') == ''; reverse('ab') == 'ba'", "-1", "1"),
    problem("def largest(xs):\n    return max(xs)", "largest([1, 5, 3]) == 5; largest([-1, -2]) == -1; largest([7]) == 7", "max", "min"),
    problem("def vowels(s):\n    return sum(c in 'aeiou' for c in s)", "vowels('hello') == 2; vowels('xyz') == 0; vowels('aeiou') == 5", "aeiou", "aeio"),
    problem("def fib(n):\n    a, b = 0, 1\n    for _ in range(n):\n        a, b = b, a + b\n    return a", "fib(10) == 55; fib(0) == 0; fib(1) == 1", "0, 1", "1, 1"),
    problem("def unique(xs):\n    return sorted(set(xs))", "unique([3, 1, 3]) == [1, 3]; unique([]) == []; unique([2, 2]) == [2]", "set", "list"),
    problem("def palindrome(s):\n    return s == s[::-1]", "palindrome('abba'); not palindrome('abc'); palindrome('')", "==", "!="),
    problem("def squares(n):\n    return [i * i for i in range(n)]", "squares(4) == [0, 1, 4, 9]; squares(0) == []; squares(1) == [0]", "i * i", "i + i"),
    problem("import math\ndef area(r):\n    return math.pi * r * r", "abs(area(1) - 3.14159) < 1e-3; area(0) == 0; abs(area(2) - 12.566) < 1e-2", "r * r", "r"),
    problem("def flatten(xs):\n    return [y for x in xs for y in x]", "flatten([[1], [2, 3]]) == [1, 2, 3]; flatten([]) == []; flatten([[0]]) == [0]", "y for", "x for"),
    problem("def word_count(s):\n    out = {}\n    for w in s.split():\n        out[w] = out.get(w, 0) + 1\n    return out", "word_count('a b a') == {'a': 2, 'b': 1}; word_count('') == {}; word_count('x') == {'x': 1}", ", 0)", ", 1)"),
    problem("def gcd(a, b):\n    while b:\n        a, b = b, a % b\n    return a", "gcd(12, 18) == 6; gcd(7, 5) == 1; gcd(0, 4) == 4", "return a", "return b"),
    problem("def is_prime(n):\n    return n > 1 and all(n % i for i in range(2, int(n ** 0.5) + 1))", "is_prime(7); not is_prime(9); not is_prime(1)", "+ 1", "- 1"),
    problem("def merge(a, b):\n    return sorted(a + b)", "merge([1, 3], [2]) == [1, 2, 3]; merge([], []) == []; merge([2], [1]) == [1, 2]", "sorted(a + b)", "a + b"),
    problem("def second(xs):\n    return sorted(set(xs))[-2]", "second([1, 2, 3]) == 2; second([5, 5, 4]) == 4; second([9, 8]) == 8", "-2", "-1"),
    problem("def title(s):\n    return ' '.join(w.capitalize() for w in s.split())", "title('ab cd') == 'Ab Cd'; title('x') == 'X'; title('') == ''", "capitalize", "upper"),
    problem("def binary(n):\n    return bin(n)[2:]", "binary(5) == '101'; binary(0) == '0'; binary(8) == '1000'", "2:", "1:"),
    problem("def rotate(xs, k):\n    k %= len(xs)\n    return xs[-k:] + xs[:-k]", "rotate([1, 2, 3], 1) == [3, 1, 2]; rotate([1, 2], 2) == [1, 2]; rotate([5, 6, 7], 2) == [6, 7, 5]", "-k:]", "k:]"),
    problem("from collections import Counter\ndef common(s):\n    return Counter(s).most_common(1)[0][0]", "common('aab') == 'a'; common('zz') == 'z'; common('abb') == 'b'", "[0][0]", "[0][1]"),
    problem("def pairs(xs):\n    return [(a, b) for a, b in zip(xs, xs[1:])]", "pairs([1, 2, 3]) == [(1, 2), (2, 3)]; pairs([1]) == []; pairs([]) == []", "(a, b) for", "(b, a) for"),
    problem("def clamp(x, low, high):\n    return max(low, min(x, high))", "clamp(5, 0, 3) == 3; clamp(-1, 0, 3) == 0; clamp(2, 0, 3) == 2", "max(low", "min(low"),
    problem("def digits(n):\n    return sum(int(d) for d in str(abs(n)))", "digits(123) == 6; digits(-45) == 9; digits(0) == 0", "abs(n)", "n * 2"),
    problem("def transpose(m):\n    return [list(r) for r in zip(*m)]", "transpose([[1, 2], [3, 4]]) == [[1, 3], [2, 4]]; transpose([[1]]) == [[1]]; transpose([]) == []", "list(r)", "r"),
    problem("def mean(xs):\n    return sum(xs) / len(xs)", "mean([1, 2, 3]) == 2; mean([4]) == 4; mean([1, 2]) == 1.5", "/ len", "// len"),
    problem("def evens(xs):\n    return [x for x in xs if x % 2 == 0]", "evens([1, 2, 4]) == [2, 4]; evens([1]) == []; evens([]) == []", "== 0", ""),
    problem("def remove(s, c):\n    return s.replace(c, '')", "remove('banana', 'a') == 'bnn'; remove('x', 'y') == 'x'; remove('', 'a') == ''", "''", "c, 1"),
    problem("def power(a, n):\n    return a ** n", "power(2, 3) == 8; power(5, 0) == 1; power(2, 100) == 1267650600228229401496703205376", "**", "*"),
    problem("def anagram(a, b):\n    return sorted(a) == sorted(b)", "anagram('abc', 'cab'); not anagram('a', 'b'); anagram('', '')", "==", "is"),
)  # fmt: skip
