"""`python -m accelsim.mutate [--config NAME] [--count N] [--seed S] [--list]`: a campaign.

Exit code 0 if at least `--least` percent of the bugs were caught, 1 if not, 2 for bad input.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from accelsim.errors import AccelsimError
from accelsim.mutate.campaign import Mutants, campaign, draw
from accelsim.sources import build_root
from accelsim.spec.config import load_config
from accelsim.vectors import case_folders, read_case

VECTORS = Path(__file__).resolve().parents[2] / "vectors"


def main(arguments: list[str]) -> int:
    """Draw, run and count."""
    parser = argparse.ArgumentParser(prog="mutation", description=__doc__)
    parser.add_argument("--config", default="edge8")
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--least", type=float, default=80.0, help="percent to be caught")
    parser.add_argument("--list", action="store_true", help="list all sites and stop")
    options = parser.parse_args(arguments)
    try:
        return _run(options)
    except AccelsimError as error:
        print(f"mutation: {error}", file=sys.stderr)
        return error.exit_code


def _run(options: argparse.Namespace) -> int:
    config = load_config(options.config)
    mutants = Mutants.of(config, build_root() / "mutants" / config.name)
    if options.list:
        for site in mutants.sites:
            print(f"{site.number} {site.engine} {site.kind} {site}")
        return 0
    cases = [read_case(f) for f in case_folders(VECTORS) if f.parent.name == config.name]
    if not cases or options.count < 1:
        raise SystemExit("mutation: nothing to run: no vectors, or --count below 1")
    chosen = draw(mutants.sites, options.count, options.seed)
    caught = 0
    for done, verdict in enumerate(campaign(mutants, chosen, cases), 1):
        caught += bool(verdict.caught)
        state = f"caught by {verdict.caught}" if verdict.caught else "NOT CAUGHT"
        print(
            f"{done}/{len(chosen)} {verdict.site.engine} {verdict.site.kind} {verdict.site}: "
            f"{state}",
            flush=True,
        )
    share = 100 * caught / len(chosen)
    print(
        f"{caught} of {len(chosen)} planted bugs caught, {share:.1f} %, seed {options.seed}, "
        f"{len(mutants.sites)} sites in all"
    )
    return 0 if share >= options.least else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
