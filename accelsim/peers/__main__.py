"""Run the peers' cases: exit code 0 if all passed, 1 if not, 2 where that cannot be said."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from accelsim.artifacts import Backend
from accelsim.errors import INTERRUPTED, AccelsimError, InputError
from accelsim.files import whole_file, writing
from accelsim.peers.case import PeerCase
from accelsim.peers.outcome import FAILED, Outcome, document, table
from accelsim.peers.run import run
from accelsim.peers.scope import judged, read_list, unused
from accelsim.peers.suites import SUITES, discover
from accelsim.simulate import Simulator
from accelsim.spec.config import Config, load_config

DATA = "ACCELSIM_PEER_DATA"
DEFAULT_DATA = Path(__file__).parents[2] / ".." / "shared" / "data"


def main(arguments: Sequence[str]) -> int:
    """Parse, run, print; see `--help`."""
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(variable, "1")
    options = _parser().parse_args(arguments)
    try:
        return _run(options)
    except AccelsimError as error:
        print(f"accelsim.peers: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("accelsim.peers: interrupted", file=sys.stderr)
        return INTERRUPTED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="accelsim.peers", description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the counts here")
    parser.add_argument("--data", type=Path, metavar="FOLDER", help=f"default: ${DATA}")
    parser.add_argument("--suite", action="append", metavar="NAME", help="default: all")
    parser.add_argument("--case", action="append", metavar="NAME", help="default: all")
    parser.add_argument("--config", default="edge8", metavar="NAME")
    parser.add_argument("--rtl", action="store_true", help="on the RTL too")
    parser.add_argument("--list", action="store_true", help="print the cases, run none")
    return parser


def _run(options: argparse.Namespace) -> int:
    config = load_config(options.config)
    suites = options.suite or list(SUITES)
    folder = options.data or Path(os.environ.get(DATA) or DEFAULT_DATA)
    if not folder.is_dir():
        raise InputError(f"there is no data folder {folder}: set {DATA} or use --data")
    if options.json:
        _open_folder(options.json)
    cases = list(_cases(suites, folder, options.case))
    if options.list:
        print("\n".join(f"{case.suite}/{case.name}" for case in cases))
        return 0
    entries = read_list()
    with ExitStack() as stack:
        backends = _backends(config, options.rtl, stack)
        outcomes = judged([_told(case, config, backends) for case in cases], entries)
    outcomes += unused(outcomes, entries)
    failed = [outcome for outcome in outcomes if outcome.status == FAILED]
    for outcome in failed:
        print(
            f"FAILED {outcome.suite}/{outcome.case}: {outcome.detail}\n{_replay(outcome, options)}"
        )
    print("\n".join(table(suites, outcomes)))
    if options.json:
        text = json.dumps(document(suites, outcomes), indent=2, ensure_ascii=False)
        with writing(options.json), whole_file(options.json) as partial:
            partial.write_text(text + "\n", encoding="utf-8")
    return 1 if failed else 0


def _open_folder(path: Path) -> None:
    """Make the folder of a file that will be written; refuse what cannot be, before long work."""
    if path.is_dir():
        raise InputError(f"cannot write {path}: it is a folder")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from None


def _cases(suites: Sequence[str], folder: Path, wanted: Sequence[str] | None) -> Iterator[PeerCase]:
    found = [case for suite in suites for case in discover(suite, folder)]
    for name in wanted or ():
        if not any(case.name == name for case in found):
            raise InputError(f"no case {name!r} in {', '.join(suites)}; --list prints all")
    if not found:
        raise InputError(f"no case of {', '.join(suites)} in {folder}")
    return (case for case in found if not wanted or case.name in wanted)


def _backends(config: Config, rtl: bool, stack: ExitStack) -> list[Backend]:
    backends: list[Backend] = [Simulator(config).run]
    if rtl:
        from accelsim.cosim.session import Cosim

        backends.append(stack.enter_context(Cosim(config)).launch)
    return backends


def _told(case: PeerCase, config: Config, backends: Sequence[Backend]) -> Outcome:
    """Run a case; an exception of ours is its failure, not the end of the run."""
    try:
        return run(case, config, backends)
    except Exception as error:  # kept as the case's outcome, so that the others run
        return Outcome(case.suite, case.name, FAILED, f"{type(error).__name__}: {error}")


def _replay(outcome: Outcome, options: argparse.Namespace) -> str:
    more = f" --data {options.data}" if options.data else ""
    more += " --rtl" if options.rtl else ""
    where = f"--suite {outcome.suite} --case {outcome.case} --config {options.config}"
    return f"replay: nox -s peers -- {where}{more}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
