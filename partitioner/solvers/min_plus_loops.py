"""Sum and minimise in compiled loops. Import this module only if numba is installed, see `compiled`.

Nothing is kept of the sums but their minima, so no table of sums is written to memory.
"""

from __future__ import annotations

import math

import numpy as np

from ...support.compiled import Numbers, machine_code
from .semiring import Table

FEWER = 4
"""Values that are within a budget by one table are looked at alone if all are this many times more."""

SPREADING = np.uint64(0x9E3779B97F4A7C15)
"""2^64 divided by the golden ratio, made odd. The high bits of its multiples differ even for near keys."""


@machine_code
def least_differences(rows: Table, least: Table) -> None:
    """Write `[a, b]`: the least of `rows[a, c] - rows[b, c]` over all `c`."""
    for a in range(rows.shape[0]):
        for b in range(rows.shape[0]):
            lowest = rows[a, 0] - rows[b, 0]
            for c in range(1, rows.shape[1]):
                difference = rows[a, c] - rows[b, c]
                lowest = difference if difference < lowest else lowest
            least[a, b] = lowest


@machine_code
def least_products(first: Table, second: Table, first_row: Table, second_row: Table, least: Table) -> None:
    """Write `[r, b]`: the least of `first[first_row[r], x] + second[second_row[r], x, b]` over all `x`."""
    for r in range(least.shape[0]):
        costs, table, row = first[first_row[r]], second[second_row[r]], least[r]
        for b in range(row.shape[0]):
            row[b] = costs[0] + table[0, b]
        for x in range(1, costs.shape[0]):
            cost = costs[x]
            for b in range(row.shape[0]):
                total = cost + table[x, b]
                row[b] = total if total < row[b] else row[b]


@machine_code
def send_all(
    variables: Numbers,
    target_at: Numbers,
    targets: Numbers,
    tables: Numbers,
    table_at: Numbers,
    messages: Numbers,
    message_at: Numbers,
    opposite: Numbers,
    unary: Numbers,
    unary_at: Numbers,
    chains: Numbers,
    incoming_at: Numbers,
    incoming: Numbers,
    costs: Numbers,
) -> float:
    """Send the messages of variables, one after the other; return the constant that comes out.

    This is `MessagePassing._send` for arrays that lie one after the other: `targets` are the numbers of the
    messages that a variable sends, and `opposite` those of the messages the other way.
    """
    constant = 0.0
    for variable in variables:
        first, domain = unary_at[variable], unary_at[variable + 1] - unary_at[variable]
        for a in range(domain):
            costs[a] = unary[first + a]
        for place in range(incoming_at[variable], incoming_at[variable + 1]):
            start = message_at[incoming[place]]
            for a in range(domain):
                costs[a] += messages[start + a]
        least = costs[0]
        for a in range(1, domain):
            least = costs[a] if costs[a] < least else least
        constant += least
        for a in range(domain):
            costs[a] = math.floor((costs[a] - least) / chains[variable])
        for place in range(target_at[variable], target_at[variable + 1]):
            number = targets[place]
            message = messages[message_at[number] : message_at[number + 1]]
            start, back = table_at[number], message_at[opposite[number]]
            for a in range(domain):
                row = tables[start + a * len(message) : start + (a + 1) * len(message)]
                cost = costs[a] - messages[back + a]
                if a == 0:
                    for b in range(len(message)):
                        message[b] = cost + row[b]
                else:
                    for b in range(len(message)):
                        total = cost + row[b]
                        message[b] = total if total < message[b] else message[b]
            common = message[0]
            for b in range(1, len(message)):
                common = message[b] if message[b] < common else common
            for b in range(len(message)):
                message[b] -= common
            constant += common
    return constant


@machine_code
def extend(
    costs: Table,
    own: Table,
    values: Table,
    columns: Numbers,
    tables: Table,
    table_at: Numbers,
    leading: int,
    ascending: Table,
    ranked: Numbers,
    budget: float,
    closes: bool,
    most: int,
    found: tuple[Table, Table, Table],
) -> tuple[int, int]:
    """Write the extensions of states that are within a budget: states, values and costs.

    See `BoundedSearch._extensions`. `ascending` and `ranked` have the costs and the values of the `leading`
    column's table with `own`, row by row from the cheapest. They show which values are within the budget
    before the other tables are added. Without them, all tables are added for all values. Ends after the
    state at which there are more than `most`; returns their number and that of the states that were extended.
    """
    count, domain = 0, len(own)
    rows, taken, kept = found
    sums = np.empty(domain)
    for state in range(len(costs)):
        row, order, near, start = ascending[0], ranked[0], domain, count
        if leading >= 0:
            at = values[state, columns[leading]]
            row, order = ascending[at], ranked[at]
            near = np.searchsorted(row, budget - costs[state], side="right")
        if FEWER * near <= domain:
            for rank in range(near):
                value, total = order[rank], costs[state] + row[rank]
                for place in range(len(columns)):
                    if place != leading:
                        total += tables[table_at[place] + values[state, columns[place]] * domain + value]
                if total <= budget:
                    place = count
                    while place > start and taken[place - 1] > value:
                        taken[place], kept[place] = taken[place - 1], kept[place - 1]
                        place -= 1
                    rows[count], taken[place], kept[place] = state, value, total
                    count += 1
        else:
            for value in range(domain):
                sums[value] = costs[state] + own[value]
            for place in range(len(columns)):
                at = table_at[place] + values[state, columns[place]] * domain
                added = tables[at : at + domain]
                for value in range(domain):
                    sums[value] += added[value]
            for value in range(domain):
                if sums[value] <= budget:
                    rows[count], taken[count], kept[count] = state, value, sums[value]
                    count += 1
        if closes and count > start:
            best = start
            for place in range(start + 1, count):
                best = place if kept[place] < kept[best] else best
            taken[start], kept[start] = taken[best], kept[best]
            count = start + 1
        if count > most:
            return count, state + 1
    return count, len(costs)


@machine_code
def cheapest(keys: Numbers, costs: Table, slots: Numbers, bits: int) -> None:
    """Write, for every different key, the place of the first of its least costs into some slot.

    There are `1 << bits` slots, more than keys, and all hold -1 before.
    """
    shift = np.uint64(64 - bits)
    for place in range(len(keys)):
        slot = np.int64((np.uint64(keys[place]) * SPREADING) >> shift)
        while slots[slot] >= 0 and keys[slots[slot]] != keys[place]:
            slot = (slot + 1) % len(slots)
        if slots[slot] < 0 or costs[place] < costs[slots[slot]]:
            slots[slot] = place
