"""One right solution for every sample task of HermesSweEnv, in one file: it solves each of them."""

import re
from collections import Counter, deque


def count_vowels(text):
    return sum(letter in "aeiou" for letter in text.lower())


def merge_ranges(ranges):
    merged = []
    for start, end in sorted(ranges):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def middle(numbers):
    ordered = sorted(numbers)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def roman(number):
    if not 0 < number < 4000:
        raise ValueError(number)
    signs = "M:1000 CM:900 D:500 CD:400 C:100 XC:90 L:50 XL:40 X:10 IX:9 V:5 IV:4 I:1"
    text = ""
    for sign, value in (pair.split(":") for pair in signs.split()):
        while number >= int(value):
            text += sign
            number -= int(value)
    return text


def initials(name):
    return "".join(f"{word[0].upper()}." for word in name.split())


def balanced(text):
    opened = []
    for letter in text:
        if letter in "([{":
            opened.append(letter)
        elif letter in ")]}" and (not opened or opened.pop() + letter not in {"()", "[]", "{}"}):
            return False
    return not opened


def digit_sum(number):
    return sum(map(int, str(abs(number))))


def shortest_path(edges, start, goal):
    seen, queue = {start}, deque([(start, 0)])
    while queue:
        here, steps = queue.popleft()
        if here == goal:
            return steps
        for one, other in [*edges, *((b, a) for a, b in edges)]:
            if one == here and other not in seen:
                seen.add(other)
                queue.append((other, steps + 1))
    return -1


def unique(items):
    return [item for place, item in enumerate(items) if item not in items[:place]]


def run_lengths(text):
    return re.sub(r"(.)\1+", lambda run: run[1] + str(len(run[0])), text, flags=re.DOTALL)


def invert(mapping):
    return {value: sorted(key for key, other in mapping.items() if other == value) for value in mapping.values()}


def queens(size, row=0, columns=frozenset(), falling=frozenset(), rising=frozenset()):
    if row == size:
        return 1
    return sum(
        queens(size, row + 1, columns | {column}, falling | {row - column}, rising | {row + column})
        for column in range(size)
        if column not in columns and row - column not in falling and row + column not in rising
    )


def seconds_of(clock):
    seconds = 0
    for part in clock.split(":"):
        seconds = seconds * 60 + int(part)
    return seconds


def longest_increasing(numbers):
    lengths = []
    for place, number in enumerate(numbers):
        lengths.append(1 + max((lengths[other] for other in range(place) if numbers[other] < number), default=0))
    return max(lengths, default=0)


def transpose(rows):
    return [list(column) for column in zip(*rows, strict=True)]


def fill_template(template, values):
    def text(found):
        return found[0][0] if found[0] in {"{{", "}}"} else str(values[found[1]])

    return re.sub(r"\{\{|\}\}|\{(\w+)\}", text, template)


def second_largest(numbers):
    different = sorted(set(numbers))
    return different[-2] if len(different) > 1 else None


def knapsack(items, capacity):
    best = [0] * (capacity + 1)
    for weight, value in items:
        for room in range(capacity, weight - 1, -1):
            best[room] = max(best[room], best[room - weight] + value)
    return best[capacity]


def pairs_with_sum(numbers, total):
    pairs = {
        tuple(sorted((one, other)))
        for place, one in enumerate(numbers)
        for other in numbers[place + 1 :]
        if one + other == total
    }
    return sorted(pairs)


def life(cells):
    alive = set(cells)
    around = [(x, y) for x in (-1, 0, 1) for y in (-1, 0, 1) if x or y]
    neighbours = Counter((x + dx, y + dy) for x, y in alive for dx, dy in around)
    return sorted(cell for cell, count in neighbours.items() if count == 3 or (count == 2 and cell in alive))
