"""Broken source files, made from the rules' examples: `python -m tests.benchmarks.mutations COUNT` lints that many.

Each has to come to an outcome that is stated; a crash, a hang or a bug in a rule is printed, and makes the exit
status 1.
"""

import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from tpuport import catalog, engine, kinds, survey
from tpuport.kinds.plain import Plain
from tpuport.model import Facts, Outcome, Project, Status

TIME_LIMIT = 20.0
Mutation = Callable[[random.Random, bytes], bytes]


def truncated(choice: random.Random, raw: bytes) -> bytes:
    return raw[: choice.randrange(len(raw) + 1)]


def flipped(choice: random.Random, raw: bytes) -> bytes:
    content = bytearray(raw)
    for _ in range(choice.randint(1, 8)):
        content[choice.randrange(len(content))] = choice.randrange(256)
    return bytes(content)


def without_a_piece(choice: random.Random, raw: bytes) -> bytes:
    start = choice.randrange(len(raw))
    return raw[:start] + raw[start + choice.randint(1, 12) :]


def doubled(choice: random.Random, raw: bytes) -> bytes:
    start = choice.randrange(len(raw))
    return raw + raw[start:] + raw


def shuffled_lines(choice: random.Random, raw: bytes) -> bytes:
    lines = raw.split(b"\n")
    choice.shuffle(lines)
    return b"\n".join(lines)


def swapped_words(choice: random.Random, raw: bytes) -> bytes:
    words = [b"cuda", b"torch", b"device", b"is_available", b"if", b"(", b")", b".", b"=", b"'cuda'", b"None", b"not"]
    return raw.replace(choice.choice(words), choice.choice(words), choice.randint(1, 3))


def with_odd_bytes(choice: random.Random, raw: bytes) -> bytes:
    odd = [
        b"\0",
        b"\x0c",
        b"\r",
        b"\r\n",
        b"\xff",
        b"\xc3\x28",
        b"\xe2\x80\xae",
        b"\xf0\x9f\x92\xa9",
        b"\t",
        b"\x1a",
        b"\\\n",
    ]
    start = choice.randrange(len(raw))
    return raw[:start] + choice.choice(odd) + raw[start:]


def in_another_encoding(choice: random.Random, raw: bytes) -> bytes:
    text = raw.decode(errors="replace") + "# \u00e9\u4e2d\n"
    declared = choice.choice(
        ["utf-8", "latin-1", "utf-16", "cp1252", "utf-7", "rot13", "base64", "nonsense", "shift_jis"]
    )
    used = choice.choice(["utf-8", "utf-8-sig", "latin-1", "utf-16", "utf-32", "shift_jis", "cp1252"])
    return f"# -*- coding: {declared} -*-\n{text}".encode(used, errors="replace")


def nested(choice: random.Random, raw: bytes) -> bytes:
    depth = choice.choice([50, 99, 101, 500, 3000, 20000])
    opening, closing = choice.choice(
        [(b"(", b")"), (b"[", b"]"), (b"{0:", b"}"), (b"-", b""), (b"not ", b""), (b"f(", b")"), (b"lambda: ", b""),
         (b"x if y else ", b""), (b"a.", b""), (b"a+", b""), (b"f'{", b"}'"), (b"await ", b""), (b"*", b"")]
    )  # fmt: skip
    return raw + b"\ny = " + opening * depth + b"x.cuda()" + closing * depth + b"\n"


def indented(choice: random.Random, raw: bytes) -> bytes:
    depth = choice.choice([20, 90, 99, 101, 400])
    word = choice.choice(
        [b"if torch.cuda.is_available():", b"def f():", b"class A:", b"for x in y:", b"with a:", b"try:"]
    )
    lines = [b" " * level + word for level in range(depth)]
    return raw + b"\n" + b"\n".join(lines) + b"\n" + b" " * depth + b"x.cuda()\n"


def enormous(choice: random.Random, raw: bytes) -> bytes:
    size = choice.choice([1_000, 30_000, 200_000])
    return raw + b"\n" + choice.choice(
        [
            b"x = '" + b"cuda" * size + b"'\n",
            b"x = " + b"9" * size + b"\n",
            b"x = [" + b"'cuda'," * (size // 10) + b"]\n",
            b"x." + b"a" * size + b".cuda()\n",
            b"# tpuport: ignore[" + b"TP101," * (size // 10) + b"]\n",
            b"if a: x.cuda()\n" + b"elif b: pass\n" * (size // 300),
            b"import " + b"(" * size,
            b"from a import (\n" + b"b,\n" * (size // 10),
            b"#" + b" " * size + b"tpuport: \n",
            b"x = 1" + b" + 1" * (size // 100) + b"\n",
            b"x = '''" + b"\n" * size + b"'''; y.cuda()\n",
        ]
    )  # fmt: skip


def commented(choice: random.Random, raw: bytes) -> bytes:
    comment = choice.choice(
        [b"ignore[TP1]", b"ignore", b"off[TP]", b"on", b"ignore-file[TP1] x", b"ignore[", b"\xe9", b"ignore[,]"]
    )
    lines = raw.split(b"\n")
    place = choice.randrange(len(lines))
    lines[place] += b"  # tpuport: " + comment
    return b"\n".join(lines)


MUTATIONS: tuple[Mutation, ...] = (
    truncated,
    flipped,
    without_a_piece,
    doubled,
    shuffled_lines,
    swapped_words,
    with_odd_bytes,
    in_another_encoding,
    commented,
    truncated,
    flipped,
    without_a_piece,
    nested,
    indented,
    enormous,
)


def cases(count: int, seed: int) -> Iterator[tuple[str, bytes]]:
    """`count` texts by the name of what was done to them, a file's; the same ones for the same seed."""
    choice = random.Random(seed)
    examples = [example for rule in catalog.load(examples=True).rules for example in rule.examples]
    for number in range(count):
        mutation = MUTATIONS[number % len(MUTATIONS)]
        example = choice.choice(examples)
        yield f"{number}-{mutation.__name__}/{example.file}", mutation(choice, example.before.encode())


def settled(name: str, raw: bytes) -> Outcome:
    """What lint makes of one text: the look at its bytes that each run begins with, then the search for findings.

    Files that are no Python are rewritten too, which takes no time.
    """
    path = Path(name)
    survey.facts_of(path, raw)
    project = Project("2.11", facts=Facts(uses_torch=True))
    rewrites = isinstance(kinds.handler_of(path), Plain)
    task = engine.Task(catalog.load().rules, project, fix=rewrites, unsafe=rewrites, time_limit=TIME_LIMIT)
    return engine.settle(path, task, raw)


def fault(outcome: Outcome) -> str:
    """What is wrong with an outcome, or an empty string."""
    if "a bug in tpuport" in outcome.reason or "took longer" in outcome.reason:
        return outcome.reason
    if outcome.status in (Status.FAILED, Status.SKIPPED) and not outcome.reason:
        return "nothing says why"
    return ""


def main() -> int:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    started = time.perf_counter()
    statuses: Counter[str] = Counter()
    faults = 0
    slowest = (0.0, "")
    for name, raw in cases(count, seed):
        before = time.perf_counter()
        outcome = settled(name, raw)
        slowest = max(slowest, (time.perf_counter() - before, name))
        statuses[outcome.status] += 1
        if said := fault(outcome):
            faults += 1
            print(f"{name} (seed {seed}): {said}", flush=True)
    seconds = time.perf_counter() - started
    counts = ", ".join(f"{number} {status}" for status, number in statuses.most_common())
    print(f"{count} files in {seconds:.0f} s: {counts}; {faults} at fault")
    print(f"the slowest took {slowest[0]:.2f} s: {slowest[1]}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
