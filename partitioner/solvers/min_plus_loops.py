"""Sum and minimise in compiled loops. Import this module only if numba is installed, see `compiled`.

Nothing is kept of the sums but their minima, so no table of sums is written to memory.
"""

from __future__ import annotations

import math

import numpy as np

from ...support.compiled import Numbers, compiled
from .semiring import Table


@compiled
def least_differences(rows: Table, least: Table) -> None:
    """Write `[a, b]`: the least of `rows[a, c] - rows[b, c]` over all `c`."""
    for a in range(rows.shape[0]):
        for b in range(rows.shape[0]):
            lowest = rows[a, 0] - rows[b, 0]
            for c in range(1, rows.shape[1]):
                difference = rows[a, c] - rows[b, c]
                lowest = difference if difference < lowest else lowest
            least[a, b] = lowest


@compiled
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


@compiled
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


@compiled
def extend(
    costs: Table,
    own: Table,
    values: Table,
    columns: Numbers,
    tables: Table,
    table_at: Numbers,
    budget: float,
    closes: bool,
    most: int,
    found: tuple[Table, Table, Table],
) -> tuple[int, int]:
    """Write the extensions of states that are within a budget: states, values and costs.

    See `BoundedSearch._extensions`. Ends after the state at which there are more than `most`; returns their
    number and that of the states that were extended.
    """
    count, domain = 0, len(own)
    rows, taken, kept = found
    sums = np.empty(domain)
    for state in range(len(costs)):
        for value in range(domain):
            sums[value] = costs[state] + own[value]
        for place in range(len(columns)):
            start = table_at[place] + values[state, columns[place]] * domain
            row = tables[start : start + domain]
            for value in range(domain):
                sums[value] += row[value]
        least = sums[0]
        for value in range(1, domain):
            least = sums[value] if sums[value] < least else least
        if least > budget:
            continue
        for value in range(domain):
            if sums[value] == least if closes else sums[value] <= budget:
                rows[count], taken[count], kept[count] = state, value, sums[value]
                count += 1
                if closes:
                    break
        if count > most:
            return count, state + 1
    return count, len(costs)
