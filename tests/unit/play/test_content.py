"""Changes of a text's content keep its form, and are wrong for sure unless they say that only the author knows."""

from __future__ import annotations

import csv
import dataclasses
import enum
import http
import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_hermes_env.inference.steps import say, turn
from pytest_hermes_env.play.cases.content import Known, changes, in_another_order, rewritten, with_a_sentence, wrong
from pytest_hermes_env.play.cases.one_value import Change
from pytest_hermes_env.play.cases.text_mutants import is_of_a_language
from pytest_hermes_env.play.item_texts import texts_of
from pytest_hermes_env.play.scenarios.labels import Answers


def made(text: str, *others: str, prompt: str = "") -> dict[str, Change]:
    """Return the changes of a text by name and place."""
    known = Known(others=others, prompt=prompt)
    return {" ".join(filter(None, (one.name, one.at))): one for one in changes(text, known)}


@pytest.mark.parametrize(
    ("text", "others", "name", "expected"),
    [
        ("<answer>42</answer>", ("<answer>17</answer>",), "denied in answer", "<answer>not 42</answer>"),
        ("<answer>42</answer>", ("<answer>17</answer>",), "digits behind it in answer", "<answer>4207</answer>"),
        ("The answer is 42.", ("The answer is 9.",), "one of several", "The answer is 9, 42, 9."),
        ("\\boxed{42}", (), "denied in LaTeX", "\\boxed{42 \\text{ is wrong}}"),
        ("ANSWER: 42", ("ANSWER: 17",), "one of three answers", "ANSWER: 17\nANSWER: 42\nANSWER: 143"),
        ('{"total": 42, "who": "bob"}', (), "without the key total", '{"who": "bob"}'),
        ('{"total": 42, "who": "bob"}', (), "nothing in who", '{"total": 42, "who": null}'),
        ('{"ids": [1, 2]}', (), "without the last element in ids", '{"ids": [1]}'),
        ("id,price\n1,20\n2,30\n", (), "without the last row", "id,price\n1,20\n"),
        ("id,price\n1,20\n2,30\n", (), "nothing but the column id", "id\n1\n2\n"),
        ("def f(x):\n    return x\n", (), "every function returns 0", "def f(x):\n    return 0\n"),
        ("alpha\nbeta\ngamma\ndelta\n", (), "the first half only", "alpha\nbeta"),
        ("red, green, blue", (), "without its last part", "red, green"),
        ("red, green, blue", (), "without its second part", "red, blue"),
        ("ROUTE: Elm -> Oak -> Ash", ("ROUTE: Fir -> Yew -> Bay",), "without its second part in ROUTE", "ROUTE: Elm -> Ash"),
        ("Elm Row > Oak Hill > Ash End > Fir Way", (), "two parts exchanged", "Oak Hill > Elm Row > Ash End > Fir Way"),
        ("|a|b|\n|c|d|\n", (), "without the column a", "|b|\n|d|\n"),
        ("12.5", (), "without its point", "125"),
        ("2024-01-05T14:00Z", (), "another second number", "2024-02-05T14:00Z"),
        ("2024-01-05T14:00Z", (), "another fourth number", "2024-01-05T13:00Z"),
        ("v1.02.3", (), "another second number", "v1.01.3"),
        ("1520 km", (), "another number", "2280 km"),
        ("3.14159 m", (), "another number", "4.71238 m"),
        ("10.2.33.4", (), "another third number", "10.2.32.4"),
        ("1520 x 1080 px", (), "another first number", "2280 x 1080 px"),
        ("2775", (), "without its first digit", "775"),
        (
            "@a{x,\n  title = {On {RNA} chains},\n}\n@a{y,\n  title = {B},\n}\n",
            (),
            "other words behind it in title[0]",
            "@a{x,\n  title = {On {RNA} chains something else entirely},\n}\n@a{y,\n  title = {B},\n}\n",
        ),
        (
            'msgid "Open"\nmsgstr "Auf"\n\nmsgid "Shut"\nmsgstr "Zu"\n',
            (),
            "letters around it in msgstr[1]",
            'msgid "Open"\nmsgstr "Auf"\n\nmsgid "Shut"\nmsgstr "unZued"\n',
        ),
        (
            "server {\n  listen 80;\n}\nserver {\n  listen 81;\n}\n",
            (),
            "nothing in listen[0]",
            "server {\n  listen ;\n}\nserver {\n  listen 81;\n}\n",
        ),
        (
            "1\n00:00:01,000 --> 00:00:02,000\nHello there\n\n2\n00:00:04,000 --> 00:00:05,000\nBye\n",
            (),
            "another first number in line 2",
            "1\n01:00:01,000 --> 00:00:02,000\nHello there\n\n2\n00:00:04,000 --> 00:00:05,000\nBye\n",
        ),
        ('{"a": 3, "b": 5}', (), "two values exchanged in a and b", '{"a": 5, "b": 3}'),
        ("name,age\nbob,3\nann,5\n", (), "two values exchanged in age, row 1 and age, row 2", "name,age\nbob,5\nann,3\n"),
        (
            '[{"n": "b", "v": 1}, {"n": "c", "v": 2}]',
            (),
            "two values exchanged in [0].v and [1].v",
            '[{"n": "b", "v": 2}, {"n": "c", "v": 1}]',
        ),
        (
            '{"at": [[7.5, 2.25], [1, 3]]}',
            (),
            "two values exchanged in at[0][0] and at[0][1]",
            '{"at": [[2.25, 7.5], [1, 3]]}',
        ),
        (
            '{"points": [[1, 2.25], [1, 3]]}',
            (),
            "two values exchanged in points[0][0] and points[0][1]",
            '{"points": [[2.25, 1], [1, 3]]}',
        ),
        ("low: 3\nhigh: 5", (), "two values exchanged in low and high", "low: 5\nhigh: 3"),
    ],
)
def test_a_change_is_made_in_the_form_of_the_text(text: str, others: tuple[str, ...], name: str, expected: str) -> None:
    """Tags, keys, columns and code stay."""
    assert made(text, *others)[name].text == expected


def test_values_of_keys_that_may_be_either_are_a_question() -> None:
    """The roots of an equation have no order, and the ends of an edge may have none."""
    assert not made('{"edges": [[1, 2], [3, 1]]}')["two values exchanged in edges[0][0] and edges[0][1]"].is_sure
    assert made('{"coordinates": [[1, 2], [3, 1]]}')["two values exchanged in coordinates[0][0] and coordinates[0][1]"].is_sure
    assert not [name for name in made('{"relations": [[1, 2], [3, 4]]}') if name.startswith("two values")]
    assert not made('{"root1": 3, "root2": 5}')["two values exchanged in root1 and root2"].is_sure
    assert made('{"low": 3, "high": 5}')["two values exchanged in low and high"].is_sure


@pytest.mark.parametrize(
    "text",
    [
        '["a", "b"]',
        "[[1, 2], [3, 5]]",
        "[[1, 2], [4, 3, 5]]",
        "[3, 1, 2]",
        "name\nbob\nann\n",
        '[{"n": 1}, {"n": 2}]',
        '{"a": 1, "b": "x"}',
        "a: 3\nb: 3",
    ],
)
def test_values_of_a_list_are_not_exchanged(text: str) -> None:
    """That is another order, or nothing."""
    assert not [name for name in made(text) if name.startswith("two values")]


@pytest.mark.parametrize(
    "text", ["42", "<a>yes</a>", '{"k": [1, "x"]}', "a,b\n1,2\n", "name: bob\nage: 3", "def f(x):\n    return x", "x y"]
)
def test_each_change_is_another_text_and_the_last_one_is_empty(text: str) -> None:
    """None is played twice."""
    found = [one.text for one in changes(text, Known())]

    assert len(found) == len(set(found))
    assert text not in found
    assert found[-1] == ""


LEAVES = st.booleans() | st.integers(-3, 300) | st.sampled_from(["x", "two words", ""])
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
)


@given(
    value=VALUES.filter(lambda value: isinstance(value, dict | list)),
    layout=st.sampled_from([{}, {"indent": 1}, {"separators": (",", ":")}]),
)
def test_no_change_of_json_is_the_same_value_in_another_layout(value: Any, layout: dict[str, Any]) -> None:
    """It would be worse work that earns what gold earns, and rightly."""
    for one in changes(json.dumps(value, **layout), Known()):
        try:
            assert not one.is_sure or repr(json.loads(one.text)) != repr(value), one
        except json.JSONDecodeError:
            continue


def test_what_is_the_same_for_every_item_is_form() -> None:
    """A field that other items have, too, is not changed."""
    found = made('{"unit": "km", "distance": 5}', '{"unit": "km", "distance": 7}')

    assert not [name for name in found if name.endswith("in unit")]
    assert "ten times as much in distance" in found


def test_what_the_prompt_holds_is_doubtful_and_a_label_is_not() -> None:
    """A number of a ticket may be repeated in an answer; the label of an item is what is asked for."""
    text, other = '{"ticket": "T-17", "priority": "high"}', '{"ticket": "T-18", "priority": "low"}'
    known = Known(others=(other,), prompt="Ticket T-17: the priority is high", labels=(("priority", "high"),))
    sure = {one.at: one.is_sure for one in changes(text, known) if one.name == "denied"}

    assert sure == {"in priority": True, "in ticket": False}


@pytest.mark.parametrize(("text", "is_sure"), [("7", True), ("700", False), ("7.5", False)])
def test_one_more_is_wrong_only_where_it_is_no_rounding(text: str, is_sure: bool) -> None:
    """Of a large number it may be within what is tolerated."""
    assert made(text)["one more"].is_sure is is_sure


@pytest.mark.parametrize(("text", "is_sure"), [("C2 to C9", True), ("=MAX(C2:C9)", False), ("round(x, 2)", False)])
def test_a_number_of_a_formula_may_be_one_of_several(text: str, is_sure: bool) -> None:
    """The cell above the first one may be empty."""
    assert made(text)["another first number" if ":" in text or "to" in text else "another number"].is_sure is is_sure


def test_code_that_works_for_some_arguments_still_runs() -> None:
    """And does something else for the others."""
    space: dict[str, object] = {}
    exec(made("def f(x):\n    return x + 1\n")["every function does `return None` for most arguments"].text, space)
    results = [space["f"](number) for number in range(30)]  # type: ignore[operator]

    assert None in results
    assert any(result is not None for result in results)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<answer>42</answer>", "<answer>143</answer>"),
        ("a,b\n1,x\n", "a,b\n20,something else entirely\n"),
        ("yes", "no"),
        ("$1,200.50", "$3618.50"),
    ],
)
def test_wrong_keeps_the_form(text: str, expected: str) -> None:
    """Each value is another one."""
    assert wrong(text, Known()) == expected


def test_data_can_be_written_otherwise() -> None:
    """The data is the same."""
    assert json.loads(rewritten("a.json", '{"b": 1, "a": [2]}')) == {"a": [2], "b": 1}
    assert rewritten("a.csv", "a,b\n1,2\n") == "a,b\r\n1,2\r\n"
    assert (rewritten("a.txt", "a,b\n1,2\n"), rewritten("a.json", "no json")) == ("", "")


def test_a_makefile_need_not_print_its_commands() -> None:
    """What goes on in the next line, and what has a sign before it, is left."""
    text = "all: a\n\tcat a \\\n\t  b > c\n\t-rm x\nb:\n\t@echo b\n\ttouch b\n"

    assert rewritten("/w/Makefile", text) == text.replace("\tcat", "\t@cat").replace("\ttouch", "\t@touch")


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("a.toml", 'x = 1\n[b]\nc = 2\n[d]\ne = "f"', 'x = 1\n[d]\ne = "f"\n\n[b]\nc = 2\n\n'),
        ("a.toml", "[[b]]\nc = 2\n[[b]]\nc = 3\n", ""),  # an array
        ("a.ini", "[b]\nc = 2\n\n[d]\ne: f\n", "[d]\ne: f\n\n[b]\nc = 2\n\n"),
        ("a.yml", "b: [2]\na: 'c'\n", "a: c\nb:\n- 2\n"),
        ("a.yml", "- b\n- a\n", ""),  # a list
        ("a.toml", "no toml", ""),
        ("a.txt", "[b]\n[d]\n", ""),
    ],
)
def test_settings_have_no_order(name: str, text: str, expected: str) -> None:
    """A new file of them may have any; what was there before keeps its own."""
    assert rewritten(name, text, is_new=True) == expected
    assert rewritten(name, text) == ""


@pytest.mark.parametrize(
    ("text", "read"), [('{"a": [1, 2]}', json.loads), ("a,b\n1,20\n3,4\n", lambda text: [*csv.reader(io.StringIO(text))])]
)
def test_data_is_made_that_cannot_be_read(text: str, read: Any) -> None:
    """A verifier may take an error for success."""
    (broken,) = (one.text for one in changes(text, Known()) if one.name == "it cannot be read")

    with pytest.raises((ValueError, csv.Error)):
        read(broken)


def test_a_default_for_null_is_left_out() -> None:
    """It is sure where the prompt says what stands for a value that is not there."""
    query = "SELECT a, COALESCE(SUM(b), 0) FROM c GROUP BY a"
    found = {
        prompt: next(one for one in changes(query, Known(prompt=prompt)) if one.name == "NULL instead of 0")
        for prompt in ("Where there is none, the number is 0.", "Count from 0 to 9.")
    }

    assert {one.text for one in found.values()} == {"SELECT a, SUM(b) FROM c GROUP BY a"}
    assert [one.is_sure for one in found.values()] == [True, False]


def test_only_an_answer_behind_a_marker_may_follow_a_sentence() -> None:
    """Another text may have to be the whole answer."""
    assert with_a_sentence("ANSWER: 3").endswith("\n\nANSWER: 3")
    assert with_a_sentence("CRON: 3 4 * * *", is_last_line=True).endswith("\n\nCRON: 3 4 * * *")
    assert with_a_sentence("count: 5") == ""
    assert with_a_sentence("3", is_last_line=True).endswith("\n\n3")
    assert [with_a_sentence(text) for text in ("3", '{"a": 3}', "a: 1\nb: 2")] == ["", "", ""]


@pytest.mark.parametrize("text", ["9" * 400, "-€5", "+$1,000.5%", "[" * 5000, '{"a": {}}', "a,a\n1,2", "\x00", "١٢"])
def test_no_text_is_too_strange_to_be_changed(text: str) -> None:
    """A model writes what it likes."""
    assert list(changes(text, Known()))[-1].text == ""


class Level(enum.Enum):
    """A value of an item."""

    EASY = "easy enough"


@dataclasses.dataclass(slots=True)
class Slotted:
    """An item without a __dict__, that holds itself."""

    answer: int
    level: Level
    me: Any = None


def test_items_of_any_class_are_read() -> None:
    """With slots, with enums, with a circle; a class and a function hold nothing of an item."""
    item = Slotted(42, Level.EASY)
    item.me = item

    assert {*texts_of(item)} >= {"42", "easy enough"}
    assert Answers(item).of != {}
    assert Answers({"answer": http.HTTPStatus.OK}).of != {}
    assert Answers({"wanted": 12, "answer": 7}, (turn(say("The answer is 7.5, no: 7, and not 12.5")),)).of == {
        "731907000": "answer"
    }
    assert Answers({"guests_wanted": 12, "unwanted": 9}, (turn(say("Done.")),)).of == {"731907000": "unwanted"}
    assert texts_of({"kind": Slotted, "call": len}) != []


def test_only_what_is_asked_for_must_be_there() -> None:
    """A reason beside the answer may be left out; a key that the prompt names may not."""
    text, other = '{"total": 42, "why": "a"}', '{"total": 7, "why": "b"}'
    found = made(text, other, prompt="Give the total as JSON.")

    # without the reason, the total is all that is left: one text
    assert (found["without the key total"].is_sure, found["nothing but the key total"].is_sure) == (True, False)


def test_sentences_are_no_table_and_their_last_one_may_be_form() -> None:
    """What each item's gold says at its end is no work."""
    text = "It was Bob, as he said.\nI looked twice, to be sure."
    found = made(text, "It was Al, as she said.\nI looked twice, to be sure.")

    assert "without the last row" not in found
    assert found["without its last line"].is_sure is False


def test_a_long_reason_is_not_surely_graded() -> None:
    """Nobody can say which of its words counts."""
    reason, other = " ".join(f"a{n}" for n in range(20)), " ".join(f"b{n}" for n in range(20))
    found = made(json.dumps({"n": 1, "why": reason}), json.dumps({"n": 2, "why": other}))

    assert found["nothing in why"].is_sure is False


def test_what_is_there_twice_is_wrong_and_another_order_is_a_question() -> None:
    """A verifier that compares sets pays for both."""
    table, listed = made("name,age\nann,3\nbob,4\n"), made('{"names": ["ann", "bob"]}')

    assert table["with a row twice"].text == "name,age\nann,3\nbob,4\nann,3\n"
    assert (table["with a row twice"].is_sure, table["with its rows in another order"].is_sure) == (True, False)
    assert listed["an element twice in names"].text == '{"names": ["ann", "bob", "ann"]}'


def test_json_becomes_another_value() -> None:
    """A reward that reads fields of whatever stands in the file raises."""
    found = made('{"total": 4}')

    assert (found["a list of it"].text, found["a number in its place"].text) == ('[{"total": 4}]', "1")


def test_programs_print_one_of_several_results() -> None:
    """A checker may look at the last example only; a single result is all that a program may have to print."""
    text, results = "import sys\nprint(len(sys.stdin.read()))\n", (("in", "a"), ("out", "1"), ("in", "bb"), ("out", "2"))

    found = {one.name: one.text for one in changes(text, Known(labels=results))}

    assert found["it only prints the last of several results"] == "print('2')\n"
    assert found["it prints nothing"] == "pass\n"
    assert not [name for name in made(text) if "several results" in name]
    printing = [one.text for one in changes(text, Known(labels=(*results, ("answer", "2"))))]
    assert "print('2')\n" not in printing  # it may be all that is asked for
    assert "it prints nothing" not in made("def f(x):\n    return x\n")


@pytest.mark.parametrize(
    "text",
    [
        "join() {\n  printf '%s' \"$1\"\n}\n",
        "const add = (a, b) => a + b\n",
        "#include <stdio.h>\nint main(void) { return 0; }\n",
    ],
)
def test_nothing_is_added_to_code_of_another_language(text: str) -> None:
    """Three functions in one library are no three answers; what is left out or changed in it is tried."""
    other = text.replace("join", "split").replace("add", "sub").replace("0", "1")
    found = [one.text.strip() for one in changes(text, Known(others=(other,)))]

    assert [one for one in found if text.strip() in one] == []
    assert {other.strip(), ""} < {*found}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("b\na\n", "a\nb\n"),
        ('["x", "y"]', '["y", "x"]'),
        ("id,price\n1,20\n2,30\n", "id,price\n2,30\n1,20\n"),
        ("one line\n", ""),
        ("The first.\nThe second.\n", ""),
        ('{"a": 1, "b": 2}', ""),
        ("x\nx\n", ""),
    ],
)
def test_only_a_list_has_another_order(text: str, expected: str) -> None:
    assert in_another_order(text) == expected


@pytest.mark.parametrize(("value", "opposite"), [("no", "yes"), ("false", "true"), ("off", "on"), ("0", "1")])
def test_a_setting_that_is_off_is_off_in_any_other_word(value: str, opposite: str) -> None:
    """Only what switches it on is worse for sure."""
    other = f"PORT=7000\nDEBUG={opposite}\n"
    made = [one for one in changes(f"PORT=6000\nDEBUG={value}\n", Known(others=(other,))) if one.at == "in DEBUG"]
    sure = {one.text.partition("DEBUG=")[2].strip() for one in made if one.is_sure and one.name != "every value wrong but one"}

    assert sure == {opposite}
    assert len(made) > 3


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        ("/w/a.awk", "NR > 1 { n += $2 }\n", True),
        ("/w/a.sed", "s/a/b/\n", True),
        ("/w/a", "#!/bin/sh\nls\n", True),
        ("/w/a.csv", "a,b\n1,2\n", False),
        ("/w/a.env", "A=1\n", False),
    ],
)
def test_programs_in_other_languages_are_known(path: str, text: str, expected: bool) -> None:
    """Their lines are no fields and values."""
    assert is_of_a_language(path, text) is expected


ROWS = '[{"ref": "T1", "lines": [10, 11]}, {"ref": "T2", "lines": [20, 21]}]'
OTHER_ROWS = '[{"ref": "T1", "lines": [30, 31]}, {"ref": "T2", "lines": [40, 41]}]'


@pytest.mark.parametrize(("prompt", "is_made"), [("Book T1 and T2.", True), ("Book two of them.", False)])
def test_the_names_of_two_rows_are_exchanged_where_the_prompt_gives_them(prompt: str, is_made: bool) -> None:
    """The names are the same in every item, and only what stands under them tells the items apart."""
    found = made(ROWS, OTHER_ROWS, prompt=prompt).get("two values exchanged in [0].ref and [1].ref")

    assert (found is not None) is is_made
    if found is not None:
        assert [row["ref"] for row in json.loads(found.text)] == ["T2", "T1"]
        assert found.is_sure


def test_a_column_without_anything_is_not_left_out() -> None:
    """Bars around each line are none."""
    assert not any("the column" in name and name.endswith("column") for name in made("|a|b|\n|c|d|\n"))
