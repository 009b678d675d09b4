"""Random texts for fuzzing: written by the grammar, damaged by tokens, damaged by bytes."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from random import Random

from tofu.tdl.functions import FUNCTIONS

SEEDS = (
    "def conv1d(data, filters):\n"
    "    return lambda b, co, x: Sum(lambda ci, dx: data[b, ci, x + dx] * filters[ci, co, dx])\n",
    "def f(m, *, k=(1, 2), n=3):\n"
    "    C = Opaque()\n"
    "    s = lambda b: Max(lambda i: pad(m[b, i - 1, 0], -inf))\n"
    "    return lambda b, i, j: C(m[b, :, :])[i, j] + s[b] * k[0], lambda *z: m[*z] if n else exp(1e3)\n",
    "def pool(data, *, kernel=(2, 2), stride=(2, 2)):\n"
    "    return lambda b, c, y, x: Max(lambda dy=kernel[0], dx=kernel[1]:\n"
    "        data[b, c, y * stride[0] + dy, x * stride[1] + dx])\n",
    "def lse(x):\n"
    "    LogSumExp = Reducer(lambda a, b: log(exp(a) + exp(b)), -inf)\n"
    "    return lambda i: LogSumExp(lambda k: x[i, k])\n",
    "def softmax(x):\n"
    "    top = lambda b: Max(lambda k: x[b, k])\n"
    "    e = lambda b, j: exp(x[b, j] - top[b])\n"
    "    return lambda b, j: e[b, j] / Sum(lambda k: e[b, k])\n",
    "def dot(a, b):\n    return lambda *i, *j: Sum(lambda k: a[*i, k] * b[k, *j])\n",
    "def norm(x, *, groups=2):\n"
    "    size = x.shape[1] // groups\n"
    "    mean = Sum(lambda n, c: x[n, c]) / (size * groups)\n"
    "    best = lambda n: ArgMax(lambda c: x[n, c])\n"
    "    return lambda n, g=groups: Sum(lambda c=size: x[n, g * size + c] - mean) * best[n]\n",
    "def embed(weight, data):\n    return lambda b, j: weight[data[b], j]\n",
    "def part(x, *, n=2):\n"
    "    half = x.shape[0] // n\n"
    "    return lambda: Sum(lambda k=half: x[k]) / half\n"
    "def exps(x):\n"
    "    return lambda j: exp(x[j] - Max(lambda k: x[k]))\n"
    "def mix(q, r):\n"
    "    total = Sum(lambda i, j: q[i, j])\n"
    "    best = lambda i: ArgMin(lambda k: q[i, k])\n"
    "    return lambda i, j: exps(q[i, :])[j] * r[best[i]] / total + part(q[i, :], n=3)[()]\n",
    'def border(x, *, width=1, mode="edge"):\n'
    "    return lambda i=x.shape[0] + 2 * width: (\n"
    '        x[minimum(maximum(i - width, 0), x.shape[0] - 1)] if mode == "edge"\n'
    '        else pad(x[i - width], 0) if mode != "wrap" else x[(i - width) % x.shape[0]])\n',
    "def attend(scores, values, w, *, a=2):\n"
    '    active = lambda *i: Activation(values[:, :], act_type="tanh")[*i]\n'
    "    soft = lambda b, t: softmax(scores[b, :], axis=-1)[t] * active[b, t]\n"
    "    return lambda b, d: Sum(lambda t: soft[b, t] * values[t, d]) + sum(w[:, :], axis=0)[d]\n",
    "def layer(x, w):\n"
    "    first = lambda i, j: dot(x[:, :], w[:, :], transpose_b=1)[i, j]\n"
    "    return lambda i, j: clip(first[i, :], a_min=-1, a_max=1)[j]\n",
    "def reverse(a):\n"
    "    return lambda i=a.shape[0]: a[a.shape[0] - 1 - i] if i % 2 == 0 and i // 3 < 4 else -i\n",
)
TOKENS = (
    *("(", ")", "[", "]", ":", ",", "*", "**", "/", "//", "%", "+", "-", "<", "<=", "==", "!=", "="),
    *(".", ";", "@", "#", "'", '"', "\\", "!", "{", "def", "lambda", "return", "if", "else", "and", "or"),
    *("not", "Sum", "Max", "Min", "Prod", "Opaque", "Reducer", "pad", "where", "exp", "tofu", "shape", "a"),
    *("b", "i", "j", "f", "g", "0", "1", "2.5", "1e9", "inf", "pi", "True", "-1", "9223372036854775807"),
    *('__import__("os")', ".__class__", "eval", "\n", "\0", "\u00e9", "\uff11", "\u202e", "'''", "*i", "()"),
)
_TOKEN = re.compile(r"\s+|\w+|[^\w\s]")
_OPERATORS = ("+", "-", "*", "/", "//", "%", "**", "<", "<=", "==", "!=", "and", "or")
_DEPTH = 3
_SLIP = 0.01
"""How often a written text breaks a rule, per choice."""


def written(random: Random) -> str:
    """A description by the grammar, most often a meaningful one."""
    return _Writer(random).description()


def damaged_tokens(random: Random, corpus: Sequence[str]) -> str:
    """A text of the corpus with a few tokens deleted, repeated, swapped, replaced or taken from another."""
    tokens = _TOKEN.findall(random.choice(corpus))
    for _ in range(random.randint(1, 4)):
        at = random.randrange(len(tokens) + 1)
        end = min(len(tokens), at + random.choice((1, 1, 1, 2, 5)))
        match random.randrange(6):
            case 0:
                tokens[at:end] = []
            case 1:
                tokens[at:at] = tokens[at:end]
            case 2:
                tokens[at:end] = reversed(tokens[at:end])
            case 3:
                tokens[at:end] = [random.choice(TOKENS)]
            case 4:
                tokens[at:at] = [random.choice(TOKENS)]
            case _:
                other = _TOKEN.findall(random.choice(corpus))
                start = random.randrange(len(other))
                tokens[at:end] = other[start : start + random.randint(1, 12)]
    return "".join(tokens)


def damaged_bytes(random: Random, corpus: Sequence[str]) -> str:
    """A text of the corpus with a few bytes changed, or random bytes."""
    if random.random() < 0.1:
        return random.randbytes(random.randrange(200)).decode("latin-1")
    data = bytearray(random.choice(corpus).encode())
    for _ in range(random.randint(1, 6)):
        at = random.randrange(len(data) + 1)
        match random.randrange(4):
            case 0:
                data[at : at + random.randint(1, 8)] = b""
            case 1:
                data[at : at + 1] = random.randbytes(1)
            case 2:
                data[at:at] = bytes(
                    random.choices(b"()[]:,*+-/%<>=!. \n\t'\"#\\;0123456789abij", k=random.randint(1, 4))
                )
            case _:
                if at < len(data):
                    data[at] ^= 1 << random.randrange(8)
    return bytes(data).decode(random.choice(("latin-1", "utf-8")), "surrogateescape")


NESTED = (
    *(
        "({} % {n})",
        "({} // {n})",
        "(-{} % {n})",
        "({} % a.shape[0])",
        "minimum({}, i % {n})",
        "abs({} - {n})",
    ),
    *("({} * {n})", "({} * a.shape[0] + {n})", "({} + {})", "({} // 2 + {} % 2)", "maximum({} + i, {n})"),
    *("({} * (a.shape[0] + {n}))", "(a.shape[0] ** {n} + {})"),
)
"""Constructs of an index that may stand inside each other; `{n}` is a number."""
_PLACES = (
    *("lambda i=9: pad(a[{0}], 0)", "lambda i: a[{0}]", "lambda i=9: pad(a[{0}], 0) + pad(a[({0}) // 2], 0)"),
    *("lambda i: Sum(lambda k=3: pad(a[{0} + k], 0))", "lambda i: where(({0}) < 3, a[i], 0)"),
    "lambda i: Sum(lambda k={1}: a[i] + k)",
)


def nested(random: Random) -> str:
    """A text of a few constructs that stand inside each other up to 40 times, or next to each other."""
    constructs = random.sample(NESTED, random.randint(1, 3))
    index = random.choice(("i", "a.shape[0]"))
    for _ in range(random.choices((2, 4, 8, 16, 40), (40, 30, 20, 9, 1))[0]):
        construct = random.choice(constructs).replace("{n}", str(random.choice((2, 3, 7, 9**9, 97))))
        if len(index) * construct.count("{}") > 8000:
            break
        index = construct.replace("{}", index)
    whole = index.replace("(i", "(a.shape[0]").replace(" i ", " a.shape[0] ").replace(" i)", " a.shape[0])")
    return f"def f(a):\n    return {random.choice(_PLACES).format(index, whole)}"


class _Writer:
    """Writes one description; names are drawn so that most uses are right."""

    def __init__(self, random: Random) -> None:
        self.random = random
        names = random.sample(["a", "b", "data", "w", "N", "I", "E", "x1"], random.randint(1, 3))
        self.ranks = {name: random.choice((0, 1, 1, 2, 2, 3)) for name in names}
        self.numbers = random.sample(["n", "s", "gamma_"], random.choice((0, 0, 1, 2)))
        self.tuples = random.sample(["kernel", "stride"], random.choice((0, 0, 1)))
        self.opaque = random.random() < 0.1
        self.reducer = random.random() < 0.15

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def description(self) -> str:
        defaults = [f"{name}={self.random.choice((1, 2, 3, 0.5, 'True'))}" for name in self.numbers]
        defaults += [f"{name}=({self.random.randint(0, 3)}, 2)" for name in self.tuples]
        tensors = list(self.ranks)
        lines: list[str] = []
        if self.opaque:
            lines.append("    g = Opaque()")
        if self.reducer:
            bodies = ("p + q, 0", "p * q, 1", "maximum(p, q), -inf", "p + q - p * q, 0", "p - q, 0")
            lines.append(f"    Fold = Reducer(lambda p, q: {self.random.choice(bodies)})")
        if self.chance(0.2):
            lines.append(f"    total = {self.extent()} + {self.constant()}")
            self.numbers.append("total")
        for number in range(self.random.choice((0, 0, 0, 1, 2))):
            rank = self.random.randint(0, 2)
            lines.append(f"    stage{number} = {self.function(rank)}")
            self.ranks[f"stage{number}"] = rank
        outputs = [self.function(self.random.randint(0, 3)) for _ in range(self.random.choice((1, 1, 1, 2)))]
        lines.append(f"    return {', '.join(outputs)}")
        lines = [line for number, line in enumerate(lines) if self.used(line.split()[0], lines[number + 1 :])]
        tensors = [tensor for tensor in tensors if self.used(tensor, lines)]
        header = ", ".join([*tensors, *(["*", *defaults] if defaults else [])])
        return "\n".join([f"def f({header}):", *lines])

    def used(self, name: str, lines: Sequence[str]) -> bool:
        """Whether a declaration is worth keeping: a rare one is kept though nothing uses it."""
        return name == "return" or any(name in line for line in lines) or self.chance(_SLIP)

    def function(self, rank: int) -> str:
        names = [f"i{position}" for position in range(rank)]
        return self.binding("lambda", names, [])

    def binding(self, head: str, names: list[str], outer: list[str]) -> str:
        binders = []
        for name in names:
            stated = self.chance(0.15)
            binders.append(f"{name}={self.extent()}" if stated else name)
        body = self.value(_DEPTH, [*outer, *names])
        for name in names:
            if not re.search(rf"\b{name}\b", body) and not self.chance(_SLIP):
                body = f"{body} * {self.element([name] * 3, one=name)}"
        return f"{head} {', '.join(binders)}: {body}"

    def extent(self) -> str:
        tensor = self.random.choice(list(self.ranks))
        if self.ranks[tensor] and self.chance(0.5):
            shape = f"{tensor}.shape[{self.random.randint(-1, self.ranks[tensor] - 1)}]"
            return self.random.choice((shape, f"{shape} // 2", f"({shape} + 1) // 2", f"{shape} - 1"))
        return str(self.constant())

    def constant(self) -> str:
        choices = [str(self.random.randint(1, 4)), *self.numbers, *(f"{name}[0]" for name in self.tuples)]
        return self.random.choice(choices)

    def index(self, scope: list[str]) -> str:
        if not scope or self.chance(0.08):
            return self.random.choice(("0", "1", self.constant()))
        name, other = self.random.choice(scope), self.random.choice(scope)
        if self.chance(0.6):
            return name
        forms: list[Callable[[], str]] = [
            lambda: f"{name} + {other}",
            lambda: f"{name} - {self.constant()}",
            lambda: f"{name} + {self.constant()}",
            lambda: f"{self.constant()} * {name} + {other}",
            lambda: f"{self.constant()} - {name}",
            lambda: f"{name} // {self.constant()}",
            lambda: f"({name} + {other}) // 2",
            lambda: f"{name} % {self.constant()}",
            lambda: f"-{name}",
            lambda: f"{name} * {other}" if self.chance(_SLIP) else f"{name} * 2 - {other}",
            lambda: self.element(scope) if self.chance(0.5) else name,
        ]
        return self.random.choice(forms)()

    def element(self, scope: list[str], one: str = "") -> str:
        tensor = self.random.choice(
            [t for t, rank in self.ranks.items() if rank or not one] or list(self.ranks)
        )
        rank = self.ranks[tensor] + (self.random.choice((-1, 1)) if self.chance(_SLIP) else 0)
        indices = [self.index(scope) for _ in range(rank)]
        if one and indices:
            indices[self.random.randrange(len(indices))] = one
        if self.chance(_SLIP):
            tensor += "x"
        text = f"{tensor}[{', '.join(indices) or '()'}]"
        return f"pad({text}, {self.random.choice(('0', '-inf', '1'))})" if self.chance(0.15) else text

    def value(self, depth: int, scope: list[str]) -> str:
        if depth == 0 or self.chance(0.3):
            return self.leaf(scope)
        inner = depth - 1
        match self.random.randrange(9):
            case 0 | 1 | 2:
                operator = self.random.choice(_OPERATORS)
                left, right = self.value(inner, scope), self.value(inner, scope)
                return f"({left}) {operator} ({right})"
            case 3:
                return f"{self.random.choice(('-', 'not '))}({self.value(inner, scope)})"
            case 4 | 5:
                name, function = self.random.choice(list(FUNCTIONS.items()))
                count = function.arity + (1 if self.chance(_SLIP) else 0)
                return f"{name}({', '.join(self.value(inner, scope) for _ in range(count))})"
            case 6 | 7:
                return self.reduction(scope)
            case _:
                condition = f"{self.value(0, scope)} > {self.value(0, scope)}"
                return f"({self.value(inner, scope)} if {condition} else {self.value(inner, scope)})"

    def reduction(self, scope: list[str]) -> str:
        if len(scope) > 4:
            return self.leaf(scope)
        names = [f"k{len(scope) + position}" for position in range(self.random.choice((1, 1, 2)))]
        own = ["Fold"] * 3 if self.reducer else []
        positions = ("ArgMax", "ArgMin") if len(names) == 1 or self.chance(_SLIP) else ()
        reducer = self.random.choice(("Sum", "Max", "Min", "Prod", *own, *positions))
        return self.binding(f"{reducer}(lambda", names, scope) + ")"

    def leaf(self, scope: list[str]) -> str:
        match self.random.randrange(12):
            case 0:
                return self.random.choice(("0", "1", "2", "0.5", "1e-3", "inf", "pi", "True"))
            case 1:
                return self.constant()
            case 2:
                return self.random.choice(scope) if scope else "1"
            case 3:
                return self.extent()
            case 4 if self.opaque:
                tensor = self.random.choice(list(self.ranks))
                slices = [self.random.choice((":", self.index(scope))) for _ in range(self.ranks[tensor])]
                indices = [self.index(scope) for part in slices if part == ":"]
                return f"g({tensor}[{', '.join(slices) or '()'}])[{', '.join(indices) or '()'}]"
            case _:
                return self.element(scope)
