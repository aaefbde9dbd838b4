"""`python -m accelsim.ops [OPERATOR …] [options] [pytest options]`: operators' regressions."""

from __future__ import annotations

import argparse
import difflib
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from accelsim.errors import INTERRUPTED, AccelsimError, InputError
from accelsim.spec.config import CONFIGS, load_config

LONG_RANDOM = 24
SAME, ANY = "same", "any"  # sources of results that need not be made again


def main(arguments: Sequence[str]) -> int:
    """Run the chosen operators. Exit status: 0 equal, 1 different, 2 bad input, 130 interrupted."""
    try:
        return _run(arguments)
    except AccelsimError as error:
        print(f"ops: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("ops: interrupted", file=sys.stderr)
        return INTERRUPTED


def _run(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="nox -s ops --", description=__doc__)
    parser.add_argument("operators", nargs="*", metavar="OPERATOR", help="default: all")
    parser.add_argument("--config", action="append", metavar="NAME", help="default: edge8")
    parser.add_argument("--long", action="store_true", help="all configurations, more cases")
    parser.add_argument(
        "--campaign",
        action="store_true",
        help="every claim: all configurations, arithmetic on edge8 alone, a line of progress each",
    )
    parser.add_argument(
        "--resume",
        nargs="?",
        const=SAME,
        choices=(SAME, ANY),
        help="leave out what passed before, with the same seed and sources, or with any",
    )
    parser.add_argument("--seed", "--accelsim-seed", type=int, default=1)
    parser.add_argument("--random", type=int, help="random cases an operator (default: 4)")
    parser.add_argument("--case", action="append", default=[], metavar="NAME", help="or JSON")
    parser.add_argument("--extend", action="append", default=[], type=Path, metavar="FILE")
    parser.add_argument("--bug", metavar="NAME", help="plant a bug in the simulator")
    parser.add_argument("--results", metavar="FILE", help="default: build/ops/results.json")
    parser.add_argument("--stage", action="append", default=[], metavar="NAME")
    parser.add_argument("--list", action="store_true", help="print operators and cases, run none")
    options, rest = parser.parse_known_args(arguments)
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(variable, "1")

    import pytest

    from accelsim.ops import regression
    from accelsim.ops.loading import load_extension
    from accelsim.ops.operators import known_operators, operator_of
    from accelsim.ops.outcome import STAGES, Stage
    from accelsim.ops.plugin import OpsPlugin
    from accelsim.ops.results import RESULTS, origin, read_results
    from accelsim.ops.session import Selection, Session
    from accelsim.ops.specs import from_json, specs_of
    from accelsim.simulate.bugs import find

    for path in options.extend:
        load_extension(path)
    for operator in options.operators:
        operator_of(operator)
    for stage in options.stage:
        if stage not in list(STAGES):
            raise InputError(_unknown("stage", stage, [str(known) for known in STAGES]))
    everywhere = options.long or options.campaign
    names = options.config or (list(CONFIGS) if everywhere else ["edge8"])
    configs = tuple(load_config(name) for name in names)
    random = options.random
    if random is None:
        random = LONG_RANDOM if options.long else 4
    if options.seed < 0 or random < 0:
        raise InputError("a seed and a number of random cases are not negative")
    if options.bug is not None:
        find(options.bug)
    written = [case for case in options.case if case.startswith("{")]
    if written and (len(options.operators) != 1 or len(written) < len(options.case)):
        raise InputError("cases written as JSON stand alone, behind the name of one operator")
    selection = Selection(
        operators=tuple(options.operators or known_operators()),
        configs=configs,
        seed=options.seed,
        random=random,
        stages=tuple(Stage(stage) for stage in options.stage) or STAGES,
        cases=() if written else tuple(options.case),
        specs=tuple(from_json(operator_of(options.operators[0]), case) for case in written),
        bug=options.bug,
        extensions=tuple(str(path) for path in options.extend),
        claimed=options.campaign,
    )
    for case in selection.cases:
        known = {
            spec.name
            for operator in selection.operators
            for config in configs
            for spec in specs_of(operator_of(operator), config, options.seed, random)
        }
        if case not in known and not case.removeprefix("random").isdigit():
            raise InputError(_unknown("case", case, sorted(known)))
    path = Path(options.results or RESULTS)
    session = Session(selection, path, origin(options.seed))
    if options.resume:
        session.resume(read_results(path), session.origin if options.resume == SAME else None)
    if options.list:
        for item in session.left():
            print(item)
        return 0
    if options.resume:
        print(f"ops: {len(session.finished)} done before, {len(session.left())} to do", flush=True)
        if not session.left():
            print("\n".join(session.table()))
            return 0
    arguments = ["-q", "-p", "no:xdist", "--timeout=0", *rest, regression.__file__]
    xml = Path("build/junit/ops.xml")
    if not any(argument.startswith("--junit") for argument in rest):
        arguments.insert(0, f"--junitxml={xml}")
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        code = int(pytest.main(arguments, plugins=[OpsPlugin(session, options.campaign)]))
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if session.interrupted:
        print(f"ops: interrupted; what was compared is in {path}", file=sys.stderr)
        return INTERRUPTED
    return code if code in (0, 1, 2, 3) else 2


def _unknown(kind: str, name: str, known: list[str]) -> str:
    near = difflib.get_close_matches(name, known, n=3)
    return f"unknown {kind} {name!r}: use {', '.join(near or known)}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
