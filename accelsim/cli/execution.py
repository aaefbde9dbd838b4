"""Running a verification for a person: progress, log, report, exit code, how to repeat it."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accelsim.cli.console import Streams, nobody_reads
from accelsim.cli.output import write_json_output
from accelsim.cli.stops import Stop, stoppable
from accelsim.errors import AccelsimError, InputError, ModelError
from accelsim.report import document, print_report

if TYPE_CHECKING:
    from accelsim.verify import RunRecord, VerifyOptions


def run(options: VerifyOptions, io: Streams, json: str | None) -> int:
    """Run a verification, write its folder and print its report; returns the exit code."""
    from accelsim.verify import fail, folder, new_record
    from accelsim.verify import verify as run_verification

    folder.write_run(options.out, options.config, request_of(options))
    if options.waive is not None and options.waive.is_file():
        folder.keep_waivers(options.out, options.waive)
    log = _log(options.out / "log.txt")
    record = new_record(options)

    def progress(message: str) -> None:
        log.info(message)
        io.progress(message)

    with stoppable(options.time_limit_seconds) as stop:
        try:
            with io.working(), model_code(options.model):
                run_verification(options, progress, record)
        except (Exception, KeyboardInterrupt) as error:
            stop.settle()
            _failed(error, stop, log, io)
            fail(record, stop.or_else(error))
    return _finish(record, options, io, json, log)


@contextmanager
def model_code(model: str) -> Iterator[None]:
    """While a user's code may run: what it prints goes to stderr, and it cannot end the process.

    Raises ModelError where it calls sys.exit, whose code would be taken for a verdict.
    """
    try:
        with redirect_stdout(sys.stderr):
            yield
    except SystemExit as error:
        raise ModelError(f"the code of model {model} called sys.exit({error.code})") from error


def _failed(error: BaseException, stop: Stop, log: logging.Logger, io: Streams) -> None:
    expected = stop.reason is not None or isinstance(error, (AccelsimError, KeyboardInterrupt))
    log.exception("stopped" if expected else "internal error")
    if io.debug:
        io.err.print_exception()


def _finish(
    record: RunRecord, options: VerifyOptions, io: Streams, json: str | None, log: logging.Logger
) -> int:
    """Write and print what was found; returns the exit code."""
    from accelsim.verify import folder

    report = document(record)
    folder.write_json(options.out / "report.json", report)
    _write_page(options.out / "report.html", report, io, log)
    unwritten = ""
    try:
        if json is not None:
            write_json_output(json, report)
    except InputError as error:
        unwritten = str(error)
    except BrokenPipeError:
        nobody_reads(sys.stdout)
    if json != "-" and (record.layers or not record.error):
        _print(report, io)
    if record.exit_code == 3:
        io.say(f"accelsim: internal error: {record.error}; see {options.out / 'log.txt'}")
    elif record.error:
        io.say(f"accelsim: {record.error}")
    if unwritten:
        io.say(f"accelsim: {unwritten}; the report is in {options.out / 'report.json'}")
    if io.verbosity >= 0 and not record.exit_code:
        io.say(f"run folder: {options.out}", style="dim")
    if record.exit_code:
        io.say(record.replay)
    for handler in log.handlers:
        handler.close()
    return record.exit_code or (2 if unwritten else 0)


def _print(report: dict[str, Any], io: Streams) -> None:
    """The report on stdout; the verdict stays what it is if nobody reads it."""
    try:
        print_report(report, io.out, detail=io.verbosity > 0)
        sys.stdout.flush()
    except BrokenPipeError:
        nobody_reads(sys.stdout)


def _write_page(path: Path, report: dict[str, Any], io: Streams, log: logging.Logger) -> None:
    """The HTML page; a verdict is not lost because a page cannot be drawn."""
    try:
        from accelsim.report.html import write_html

        write_html(path, report)
    except ImportError:
        io.say("note: report.html needs jinja2; pip install 'accelsim[report]'")
    except Exception:  # a page that cannot be drawn must not hide the verdict
        log.exception("report.html")
        io.say(f"note: report.html could not be written; see {path.with_name('log.txt')}")


def request_of(options: VerifyOptions) -> dict[str, Any]:
    """The options as JSON; paths become absolute, so that a replay works from elsewhere."""
    request: dict[str, Any] = {"cwd": str(Path.cwd())}
    for name, value in asdict(options).items():
        if name not in ("config", "stored", "expected_program"):
            request[name] = str(value.resolve()) if isinstance(value, Path) else value
    return request


def _log(path: Path) -> logging.Logger:
    logger = logging.getLogger(f"accelsim.{path}")
    logger.setLevel(logging.INFO)
    logger.propagate = False
    handler = logging.FileHandler(path, mode="w", encoding="utf-8")
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    logger.handlers = [handler]
    return logger
