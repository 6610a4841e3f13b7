"""Small coding tasks with tests, for a start without a data set and without a network.

Easier tasks and harder ones alternate, so that the last half, which is held out for evaluation, is as hard as the first.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["SAMPLE_TASKS"]


class _Task(NamedTuple):
    signature: str
    text: str
    tests: str


_TASKS = (
    _Task(
        "count_vowels(text)",
        "Return how many of the letters a, e, i, o, u are in text, in either case.",
        """
assert count_vowels("Atropos") == 3
assert count_vowels("rhythm") == 0
assert count_vowels("AEIOU aeiou") == 10
assert count_vowels("") == 0
""",
    ),
    _Task(
        "merge_ranges(ranges)",
        "ranges is a list of (start, end) pairs of integers, start <= end, both ends included. Return them merged where they\n"
        "overlap or share an end, as a list of tuples sorted by start. (1, 2) and (3, 4) do not touch.",
        """
assert merge_ranges([(5, 8), (1, 3), (2, 4)]) == [(1, 4), (5, 8)]
assert merge_ranges([(1, 2), (2, 3), (3, 4)]) == [(1, 4)]
assert merge_ranges([(1, 10), (2, 3)]) == [(1, 10)]
assert merge_ranges([(1, 2), (3, 4)]) == [(1, 2), (3, 4)]
assert merge_ranges([]) == []
""",
    ),
    _Task(
        "middle(numbers)",
        "Return the median of a non-empty list of numbers: the middle one of the sorted numbers, or the mean of the two middle\n"
        "ones. The list itself stays as it is.",
        """
assert middle([3, 1, 2]) == 2
assert middle([4, 1, 3, 2]) == 2.5
assert middle([7]) == 7
assert middle([-5, -1, -3, -3]) == -3
""",
    ),
    _Task(
        "roman(number)",
        "Return an integer from 1 to 3999 as a Roman numeral in capitals. Raise ValueError for any other number.",
        """
assert [roman(n) for n in (1, 4, 9, 14, 40, 90, 400)] == ["I", "IV", "IX", "XIV", "XL", "XC", "CD"]
assert roman(1994) == "MCMXCIV"
assert roman(3999) == "MMMCMXCIX"
for wrong in (0, -1, 4000):
    try:
        roman(wrong)
    except ValueError:
        continue
    raise AssertionError(f"no ValueError for {wrong}")
""",
    ),
    _Task(
        "initials(name)",
        "Return the first letters of the words in name, in capitals, each followed by a full stop: 'ada lovelace' gives 'A.L.'.",
        """
assert initials("ada lovelace") == "A.L."
assert initials("  grace   brewster murray hopper ") == "G.B.M.H."
assert initials("plato") == "P."
assert initials("") == ""
""",
    ),
    _Task(
        "balanced(text)",
        "Return True when the brackets (), [] and {} in text are closed in the right order, else False. Other characters do\n"
        "not matter.",
        """
assert balanced("f(a[0], {1: 2})") is True
assert balanced("([)]") is False
assert balanced("((") is False
assert balanced("}") is False
assert balanced("no brackets") is True
""",
    ),
    _Task(
        "digit_sum(number)",
        "Return the sum of the decimal digits of an integer; the sign does not matter.",
        """
assert digit_sum(1203) == 6
assert digit_sum(-99) == 18
assert digit_sum(0) == 0
assert digit_sum(10**30 + 5) == 6
""",
    ),
    _Task(
        "shortest_path(edges, start, goal)",
        "edges is a list of (a, b) pairs: one can go from a to b and back. Return the number of steps of the shortest way from\n"
        "start to goal, 0 when they are the same, and -1 when there is no way.",
        """
edges = [("a", "b"), ("b", "c"), ("c", "d"), ("a", "d"), ("x", "y")]
assert shortest_path(edges, "a", "c") == 2
assert shortest_path(edges, "d", "b") == 2
assert shortest_path(edges, "c", "c") == 0
assert shortest_path(edges, "a", "x") == -1
assert shortest_path([], "a", "a") == 0
assert shortest_path([(n, n + 1) for n in range(50)], 50, 0) == 50
""",
    ),
    _Task(
        "unique(items)",
        "Return the items of a list without repetitions, in the order in which they come first.",
        """
assert unique([3, 1, 3, 2, 1]) == [3, 1, 2]
assert unique(["b", "a", "b"]) == ["b", "a"]
assert unique([]) == []
assert unique([[1], [2], [1]]) == [[1], [2]]
""",
    ),
    _Task(
        "run_lengths(text)",
        "Return text run-length encoded: each run of one character as the character and, where it is longer than 1, its\n"
        "length. 'aaabcc' gives 'a3bc2'.",
        """
assert run_lengths("aaabcc") == "a3bc2"
assert run_lengths("abc") == "abc"
assert run_lengths("zzzzzzzzzzzz") == "z12"
assert run_lengths("aabaa") == "a2ba2"
assert run_lengths("") == ""
""",
    ),
    _Task(
        "is_leap(year)",
        "Return True when a year of the Gregorian calendar is a leap year, else False.",
        """
assert [is_leap(year) for year in (2023, 2024, 1900, 2000, 2100, 2400)] == [False, True, False, True, False, True]
""",
    ),
    _Task(
        "calculate(expression)",
        "Return the value of an arithmetic expression of non-negative integers, +, -, *, parentheses and spaces, with the usual\n"
        "precedence. Do not use eval.",
        """
assert calculate("1 + 2 * 3") == 7
assert calculate("(1 + 2) * 3") == 9
assert calculate("10 - 4 - 3") == 3
assert calculate("2 * (3 + (4 - 1)) * 5") == 60
assert calculate("42") == 42
""",
    ),
    _Task(
        "caesar(text, shift)",
        "Return text with each letter a-z and A-Z moved by shift places in the alphabet, going round at its end; shift may be\n"
        "negative or large. Other characters stay.",
        """
assert caesar("Hello, World!", 3) == "Khoor, Zruog!"
assert caesar("xyz", 3) == "abc"
assert caesar(caesar("Round Trip", 17), -17) == "Round Trip"
assert caesar("abc", 26) == "abc"
assert caesar("abc", -27) == "zab"
""",
    ),
    _Task(
        "rotate(matrix)",
        "Return a matrix, given as a list of rows of equal length, turned by 90 degrees clockwise.",
        """
assert rotate([[1, 2], [3, 4]]) == [[3, 1], [4, 2]]
assert rotate([[1, 2, 3], [4, 5, 6]]) == [[4, 1], [5, 2], [6, 3]]
assert rotate([[7]]) == [[7]]
assert rotate([]) == []
""",
    ),
    _Task(
        "longest_word(sentence)",
        "Return the longest word of a sentence, the first of several that are equally long. Words are separated by white space;\n"
        "the characters . , ; : ! ? at their ends do not belong to them. Return '' when there is no word.",
        """
assert longest_word("The quick brown fox.") == "quick"
assert longest_word("Well, well, wonderful!") == "wonderful"
assert longest_word("a bb cc") == "bb"
assert longest_word("  ") == ""
""",
    ),
    _Task(
        "change(amount, coins)",
        "Return the smallest number of coins that add up to amount, or -1 when that cannot be done. Each kind of coin may be\n"
        "used any number of times. Both are non-negative integers; coins are positive.",
        """
assert change(11, [1, 2, 5]) == 3
assert change(6, [1, 3, 4]) == 2
assert change(3, [2]) == -1
assert change(0, [5]) == 0
assert change(999, [1, 7, 50]) == 26
""",
    ),
    _Task(
        "to_binary(number)",
        "Return a non-negative integer in base 2, as a string of 0 and 1 without leading zeros; 0 gives '0'.",
        """
assert to_binary(10) == "1010"
assert to_binary(0) == "0"
assert to_binary(1) == "1"
assert to_binary(2**70) == "1" + "0" * 70
""",
    ),
    _Task(
        "flatten(nested)",
        "Return a flat list of everything in a list that may hold lists, which may hold lists, to any depth.",
        """
assert flatten([1, [2, [3, [4]]], 5]) == [1, 2, 3, 4, 5]
assert flatten([[], [[]], [[[]]]]) == []
assert flatten(["ab", ["cd"]]) == ["ab", "cd"]
assert flatten([]) == []
""",
    ),
    _Task(
        "common(first, second)",
        "Return a sorted list of the numbers that are in both lists, each once.",
        """
assert common([1, 2, 3, 4], [3, 4, 5]) == [3, 4]
assert common([5, 5, 1], [1, 5, 5]) == [1, 5]
assert common([1], [2]) == []
assert common([], [1]) == []
""",
    ),
    _Task(
        "schedule(needs)",
        "needs maps each task to the list of tasks that must be done before it; every task is a key. Return the tasks in an\n"
        "order that respects this, and among those that could come next always the alphabetically first. Raise ValueError\n"
        "when there is no such order.",
        """
assert schedule({"shoes": ["socks"], "socks": [], "hat": []}) == ["hat", "socks", "shoes"]
assert schedule({"c": ["b"], "b": ["a"], "a": []}) == ["a", "b", "c"]
assert schedule({"a": ["z"], "z": [], "m": ["a"]}) == ["z", "a", "m"]
assert schedule({}) == []
try:
    schedule({"a": ["b"], "b": ["a"]})
except ValueError:
    pass
else:
    raise AssertionError("a circle has no order")
""",
    ),
    _Task(
        "is_palindrome(text)",
        "Return True when text reads the same backwards, looking at letters and digits only and not at their case.",
        """
assert is_palindrome("A man, a plan, a canal: Panama") is True
assert is_palindrome("No lemon, no melon") is True
assert is_palindrome("12 21") is True
assert is_palindrome("hermes") is False
assert is_palindrome("") is True
""",
    ),
    _Task(
        "parse_csv_line(line)",
        "Return the fields of one line of CSV as a list of strings. Fields are separated by commas; a field in double quotes\n"
        "may hold commas, and in it two double quotes mean one. Do not use the csv module.",
        '''
assert parse_csv_line("a,b,c") == ["a", "b", "c"]
assert parse_csv_line('a,"b,c",d') == ["a", "b,c", "d"]
assert parse_csv_line('"say ""hi""",x') == ['say "hi"', "x"]
assert parse_csv_line("a,,") == ["a", "", ""]
assert parse_csv_line("") == [""]
''',
    ),
    _Task(
        "clamp(value, low, high)",
        "Return value, or the nearer of low and high when it lies outside of them. Raise ValueError when low > high.",
        """
assert clamp(5, 0, 10) == 5
assert clamp(-5, 0, 10) == 0
assert clamp(50, 0, 10) == 10
assert clamp(1.5, 1, 1.25) == 1.25
try:
    clamp(1, 3, 2)
except ValueError:
    pass
else:
    raise AssertionError("low above high")
""",
    ),
    _Task(
        "spiral(matrix)",
        "Return the values of a matrix, given as a list of rows of equal length, clockwise from the top left corner inwards.",
        """
assert spiral([[1, 2, 3], [4, 5, 6], [7, 8, 9]]) == [1, 2, 3, 6, 9, 8, 7, 4, 5]
assert spiral([[1, 2], [3, 4], [5, 6]]) == [1, 2, 4, 6, 5, 3]
assert spiral([[1, 2, 3]]) == [1, 2, 3]
assert spiral([[1], [2], [3]]) == [1, 2, 3]
assert spiral([]) == []
""",
    ),
    _Task(
        "word_counts(text)",
        "Return a dictionary from each word of text, in small letters, to the number of times that it occurs. A word is a run\n"
        "of letters.",
        """
assert word_counts("The cat and the hat") == {"the": 2, "cat": 1, "and": 1, "hat": 1}
assert word_counts("One, one; ONE!") == {"one": 3}
assert word_counts("a1b a") == {"a": 2, "b": 1}
assert word_counts("") == {}
""",
    ),
    _Task(
        "edit_distance(first, second)",
        "Return the smallest number of insertions, deletions and replacements of single characters that turn the one string\n"
        "into the other.",
        """
assert edit_distance("kitten", "sitting") == 3
assert edit_distance("flaw", "lawn") == 2
assert edit_distance("", "abc") == 3
assert edit_distance("same", "same") == 0
assert edit_distance("abcdef" * 10, "azcdef" * 10) == 10
""",
    ),
    _Task(
        "chunks(items, size)",
        "Return the list items cut into lists of length size, the last one shorter if it must be. Raise ValueError when size\n"
        "is less than 1.",
        """
assert chunks([1, 2, 3, 4, 5], 2) == [[1, 2], [3, 4], [5]]
assert chunks([1, 2], 5) == [[1, 2]]
assert chunks([], 3) == []
try:
    chunks([1], 0)
except ValueError:
    pass
else:
    raise AssertionError("size 0")
""",
    ),
    _Task(
        "compare_versions(first, second)",
        "Compare two versions such as '1.10.2' number by number; missing numbers are 0. Return -1, 0 or 1 when the first is\n"
        "older than, the same as or newer than the second.",
        """
assert compare_versions("1.2", "1.10") == -1
assert compare_versions("2.0", "1.9.9") == 1
assert compare_versions("1.0", "1") == 0
assert compare_versions("1.0.1", "1") == 1
assert compare_versions("01.1", "1.01") == 0
""",
    ),
    _Task(
        "title_case(text)",
        "Return text with the first letter of each word in upper case and its other letters in lower case. Words are separated\n"
        "by spaces, which stay as they are.",
        """
assert title_case("hello wORLD") == "Hello World"
assert title_case("don't stop") == "Don't Stop"
assert title_case("  two  spaces ") == "  Two  Spaces "
assert title_case("") == ""
""",
    ),
    _Task(
        "primes_below(limit)",
        "Return a list of all prime numbers smaller than limit, in ascending order. It must be quick for a limit of 200000.",
        """
assert primes_below(20) == [2, 3, 5, 7, 11, 13, 17, 19]
assert primes_below(2) == []
assert primes_below(3) == [2]
assert len(primes_below(200000)) == 17984
""",
    ),
    _Task(
        "invert(mapping)",
        "Return a dictionary from each value of mapping to the sorted list of the keys that have it.",
        """
assert invert({"a": 1, "b": 2, "c": 1}) == {1: ["a", "c"], 2: ["b"]}
assert invert({}) == {}
assert invert({"z": "x", "y": "x"}) == {"x": ["y", "z"]}
""",
    ),
    _Task(
        "queens(size)",
        "Return in how many ways size queens can stand on a board of size times size fields so that none attacks another.",
        """
assert [queens(size) for size in range(1, 8)] == [1, 0, 0, 2, 10, 4, 40]
assert queens(8) == 92
""",
    ),
    _Task(
        "seconds_of(clock)",
        "Return the number of seconds in a duration written as 'H:MM:SS', 'MM:SS' or 'SS'; the numbers may have any length.",
        """
assert seconds_of("1:00:01") == 3601
assert seconds_of("02:30") == 150
assert seconds_of("7") == 7
assert seconds_of("100:00:00") == 360000
""",
    ),
    _Task(
        "longest_increasing(numbers)",
        "Return the length of the longest strictly increasing subsequence: numbers in their order, but not necessarily next to\n"
        "each other.",
        """
assert longest_increasing([10, 9, 2, 5, 3, 7, 101, 18]) == 4
assert longest_increasing([1, 1, 1]) == 1
assert longest_increasing([]) == 0
assert longest_increasing(list(range(500))) == 500
assert longest_increasing([3, 1, 2, 0, 4]) == 3
""",
    ),
    _Task(
        "transpose(rows)",
        "Return the columns of a table, given as a list of rows of equal length, as a list of lists.",
        """
assert transpose([[1, 2, 3], [4, 5, 6]]) == [[1, 4], [2, 5], [3, 6]]
assert transpose([["a"]]) == [["a"]]
assert transpose([]) == []
""",
    ),
    _Task(
        "fill_template(template, values)",
        "Replace each {name} in template by the text of values[name]; {{ and }} stand for single braces. Raise KeyError for a\n"
        "name that is not in values. Names are letters, digits and underscores. What is put in is not looked at again.",
        """
assert fill_template("Hi {name}!", {"name": "Ada"}) == "Hi Ada!"
assert fill_template("{a}{b}{a}", {"a": 1, "b": "-"}) == "1-1"
assert fill_template("{{a}} is {a}", {"a": "x"}) == "{a} is x"
assert fill_template("{a}", {"a": "{b}", "b": "no"}) == "{b}"
try:
    fill_template("{missing}", {})
except KeyError:
    pass
else:
    raise AssertionError("a missing name")
""",
    ),
    _Task(
        "second_largest(numbers)",
        "Return the second largest of the different numbers in a list, or None when there are fewer than two different ones.",
        """
assert second_largest([1, 5, 3]) == 3
assert second_largest([5, 5, 4]) == 4
assert second_largest([2, 2]) is None
assert second_largest([]) is None
assert second_largest([-1, -2, -3]) == -2
""",
    ),
    _Task(
        "knapsack(items, capacity)",
        "items is a list of (weight, value) pairs of positive integers. Return the largest sum of values of items, each taken\n"
        "at most once, whose weights add up to no more than capacity.",
        """
assert knapsack([(1, 1), (3, 4), (4, 5), (5, 7)], 7) == 9
assert knapsack([(10, 100)], 9) == 0
assert knapsack([], 10) == 0
assert knapsack([(2, 3), (2, 3), (2, 3)], 4) == 6
assert knapsack([(n, n) for n in range(1, 40)], 300) == 300
""",
    ),
    _Task(
        "pairs_with_sum(numbers, total)",
        "Return the pairs (a, b), a <= b, of numbers at different places in the list that add up to total: each pair once, as\n"
        "a sorted list of tuples.",
        """
assert pairs_with_sum([1, 2, 3, 4], 5) == [(1, 4), (2, 3)]
assert pairs_with_sum([2, 2, 2], 4) == [(2, 2)]
assert pairs_with_sum([2], 4) == []
assert pairs_with_sum([-1, 1, 0, 0], 0) == [(-1, 1), (0, 0)]
""",
    ),
    _Task(
        "life(cells)",
        "cells is a list of (x, y) tuples: the living cells of Conway's game of life on an endless grid. Return the living\n"
        "cells one step later, as a sorted list of tuples. A cell lives on with 2 or 3 living neighbours among its 8, and a\n"
        "dead one comes to life with 3.",
        """
assert life([(0, 1), (1, 1), (2, 1)]) == [(1, 0), (1, 1), (1, 2)]
assert life([(0, 0), (0, 1), (1, 0), (1, 1)]) == [(0, 0), (0, 1), (1, 0), (1, 1)]
assert life([(5, 5)]) == []
assert life([]) == []
glider = [(1, 0), (2, 1), (0, 2), (1, 2), (2, 2)]
later = glider
for _ in range(4):
    later = life(later)
assert later == sorted((x + 1, y + 1) for x, y in glider)
""",
    ),
)

SAMPLE_TASKS = [
    {
        "prompt": f"Write this Python function:\n\n    def {task.signature}\n\n{task.text}",
        "test": task.tests.strip() + "\n",
        "entry_point": task.signature.partition("(")[0],
    }
    for task in _TASKS
]
"""Coding items, see `coding_items.CodingItem`."""
