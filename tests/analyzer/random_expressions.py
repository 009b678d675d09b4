"""Random descriptions in which reducers stand under functions, next to each other and inside each other.

Names of variables repeat, so that siblings share them, and the shapes of tensors sometimes disagree.
"""

from __future__ import annotations

from random import Random

EXTENTS = {"i": 3, "j": 2, "k": 4, "m": 2}
TENSORS = {"x": "ik", "y": "jk", "z": "ij", "b": "i", "c": "k", "d": "mk"}
UNARY = ("sqrt({})", "-{}", "tanh({})", "{} / 2", "x.shape[0] * {}", "log(1 + {})")
BINARY = ("({} + {})", "({} * {})", "({} - {})", "maximum({}, {})", "({} / (1 + {}))")
REDUCERS = ("Sum", "Sum", "Max", "Min", "Prod")
POSITIONS = ("ArgMax", "ArgMin")


def random_expression(random: Random) -> tuple[str, dict[str, tuple[int, ...]]]:
    """Return the text of a description, and shapes of its tensors."""
    writer = _Writer(random)
    outputs = random.choice((["i"], ["i"], ["i", "j"], []))
    lines, read = [], []
    if random.random() < 0.3:
        lines.append(f"    s = lambda i: {writer.value(2, ['i'])} + b[i]")
        read.append("s[i]" if "i" in outputs else "s[0]")
    if random.random() < 0.2:
        lines.append(f"    t = {writer.reduction(1, [])} + 1")
        read.append("t")
    writer.used.clear()
    body = writer.value(3, outputs)
    missing = [name for name in outputs if name not in writer.used]
    body = " + ".join([body, *read, *(writer.element(outputs, name) for name in missing)])
    stated = [f"{name}={EXTENTS[name]}" if random.random() < 0.2 else name for name in outputs]
    lines.append(f"    return lambda {', '.join(stated)}: {body}")
    text = "\n".join(lines)
    tensors = [name for name in TENSORS if f"{name}[" in text or f"{name}.shape" in text]
    shapes = {name: tuple(EXTENTS[v] for v in TENSORS[name]) for name in tensors}
    if random.random() < 0.15:
        name = random.choice(tensors)
        shapes[name] = tuple(extent + random.randint(0, 1) for extent in shapes[name])
    return f"def f({', '.join(tensors)}):\n{text}", shapes


class _Writer:
    """Writes values; `used` has every variable that indexes something."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.used: set[str] = set()

    def value(self, depth: int, scope: list[str]) -> str:
        match self.random.randrange(6):
            case 0 | 1 if depth:
                return self.random.choice(BINARY).format(
                    self.value(depth - 1, scope), self.value(depth - 1, scope)
                )
            case 2 if depth:
                return self.random.choice(UNARY).format(self.value(depth - 1, scope))
            case 3 | 4 if depth:
                return self.reduction(depth - 1, scope)
            case _:
                return self.element(scope)

    def reduction(self, depth: int, scope: list[str]) -> str:
        free = [name for name in EXTENTS if name not in scope]
        if not free:
            return self.element(scope)
        name = self.random.choice(free)
        body = f"({self.value(depth, [*scope, name])} + {self.element([*scope, name], name)})"
        binder = f"{name}={EXTENTS[name]}" if self.random.random() < 0.15 else name
        reducer = self.random.choice(REDUCERS if self.random.random() < 0.9 else POSITIONS)
        return f"{reducer}(lambda {binder}: {body})"

    def element(self, scope: list[str], name: str = "") -> str:
        """Return an element, at `name` if it is given; variables out of scope are replaced by numbers."""
        tensor = self.random.choice([t for t, variables in TENSORS.items() if name in variables])
        indices = []
        for variable in TENSORS[tensor]:
            if variable not in scope:
                indices.append("0")
            elif variable != name and self.random.random() < 0.15:
                indices.append(f"{EXTENTS[variable] - 1} - {variable}")
            else:
                indices.append(variable)
        self.used.update(name for name in indices if len(name) == 1)
        text = f"{tensor}[{', '.join(indices)}]"
        return f"pad({text}, 0)" if not name and self.random.random() < 0.15 else text
