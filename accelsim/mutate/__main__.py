"""`python -m accelsim.mutate [--config NAME] [--count N] [--seed S]`: a campaign.

What was found is printed, and written with --json, when the campaign is interrupted too. Exit code
0 if at least `--least` percent of the bugs that are not known to be equivalent were caught, 1 if
not, 2 for bad input, 130 when interrupted.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

from accelsim.errors import INTERRUPTED, AccelsimError, InputError
from accelsim.files import whole_file, writing
from accelsim.mutate.campaign import Mutants, Verdict, campaign, draw
from accelsim.mutate.equivalent import equivalents
from accelsim.mutate.sites import Site
from accelsim.mutate.statistics import document, share, summary
from accelsim.mutate.trials import trials
from accelsim.spec.config import load_config


def main(arguments: list[str]) -> int:
    """Draw, run and count."""
    parser = argparse.ArgumentParser(prog="mutation", description=__doc__)
    parser.add_argument("--config", default="edge8")
    parser.add_argument("--count", type=int, default=60, help="bugs to plant; 0 is all of them")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--scale", type=int, default=1, help="multiplies the random programs")
    parser.add_argument("--least", type=float, default=95.0, help="percent to be caught")
    parser.add_argument("--json", type=Path, help="write every verdict to this file")
    parser.add_argument("--only", default="", help="sites whose file or number is this")
    parser.add_argument("--list", action="store_true", help="list all sites and stop")
    options = parser.parse_args(arguments)
    try:
        return _run(options)
    except AccelsimError as error:
        print(f"mutation: {error}", file=sys.stderr)
        return error.exit_code


def _run(options: argparse.Namespace) -> int:
    if options.count < 0 or options.scale < 1:
        raise InputError("mutation: use a --count of 0 or more and a --scale of 1 or more")
    config = load_config(options.config)
    mutants = Mutants.of(config)
    if options.list:
        for site in mutants.sites:
            print(f"{site.number} {site.engine} {site.kind} {site}")
        return 0
    known = equivalents(mutants.sites)
    chosen = _chosen(mutants, options)
    suite = trials(config, options.seed, options.scale)
    print(f"{len(mutants.sites)} sites, {len(chosen)} drawn, {len(suite)} trials", flush=True)
    verdicts: list[Verdict] = []
    code = INTERRUPTED
    begin = time.monotonic()
    try:
        for verdict in campaign(mutants, chosen, suite):
            verdicts.append(verdict)
            state = f"caught by {verdict.caught[:90]}" if verdict.caught else "NOT CAUGHT"
            if not verdict.caught and verdict.site.number in known:
                state = f"equivalent: {known[verdict.site.number]}"
            seconds = time.monotonic() - begin
            print(
                f"{len(verdicts)}/{len(chosen)} {seconds:.0f} s {verdict.site.number} "
                f"{verdict.site.engine} {verdict.site.kind} {verdict.site}: {state}",
                flush=True,
            )
        code = 0 if share(verdicts, known) >= options.least else 1
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
    for line in summary(verdicts, known):
        print(line)
    print(f"{share(verdicts, known):.1f} % of {len(verdicts)} caught, seed {options.seed}")
    if options.json:
        about = {"config": config.name, "seed": options.seed, "complete": code != INTERRUPTED}
        text = json.dumps(document(verdicts, known, **about), indent=1)
        with writing(options.json), whole_file(options.json) as partial:
            partial.write_text(text + "\n", encoding="utf-8")
    return code


def _chosen(mutants: Mutants, options: argparse.Namespace) -> list[Site]:
    sites = [
        site
        for site in mutants.sites
        if not options.only
        or options.only in (str(site.number), site.file, site.file.removesuffix(".sv"))
    ]
    if not sites:
        raise InputError(f"no site is called {options.only!r}: use a file or a number (--list)")
    return draw(sites, options.count or len(sites), options.seed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
