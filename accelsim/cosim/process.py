"""The simulation as a child process: start, talk, notice its death, stop.

What comes in: an executable. What goes out: a `Child` with a channel to the cocotb test in it. This
module must not know what the messages mean.
"""

from __future__ import annotations

import contextlib
import os
import re
import socket
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from accelsim import sources
from accelsim.cosim.channel import Channel, Message
from accelsim.errors import RtlError, TimeLimitError, ToolError

SERVER_MODULE = "accelsim.cosim.server"
START_SECONDS = 60.0
STOP_SECONDS = 5.0
ASSERTION = re.compile(r"%Error: (\S+): Assertion failed in (\S+): (.*)")
STOP = re.compile(r"%Error: (\S+\.sv:\d+): (.*)")


class _CapturedError(Exception):
    """Carries the command that cocotb's runner would have executed."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        super().__init__()
        self.command = list(command)
        self.environment = dict(environment)


def simulation_command(
    executable: Path, folder: Path, arguments: Sequence[str], seed: int
) -> tuple[list[str], dict[str, str]]:
    """Command and environment with which cocotb's runner would start the server module."""
    from cocotb_tools.runner import Verilator

    class Capture(Verilator):
        def _execute(self, cmds: Sequence[Any], cwd: Any) -> None:
            raise _CapturedError(cmds[-1], self.env)

    try:
        Capture().test(
            test_module=SERVER_MODULE,
            hdl_toplevel=executable.name,
            hdl_toplevel_lang="verilog",
            build_dir=executable.parent,
            test_dir=folder,
            seed=seed,
            test_args=list(arguments),
            results_xml=str(folder / "results.xml"),
            extra_env={"COCOTB_LOG_LEVEL": "WARNING", "PYTHONDONTWRITEBYTECODE": "1"},
        )
    except _CapturedError as captured:
        environment = captured.environment
        path = environment.get("PYTHONPATH", "")
        environment["PYTHONPATH"] = os.pathsep.join([str(sources.PACKAGE.parent), path])
        return captured.command, environment
    except (ValueError, OSError) as error:
        raise ToolError(f"cocotb cannot start {executable.name}: {error}.") from None
    raise ToolError("cocotb's runner started nothing: use a version that accelsim supports.")


class Child:
    """A running simulation. Its output goes to `log`."""

    def __init__(
        self,
        executable: Path,
        folder: Path,
        *,
        waves: Path | None = None,
        seed: int = 1,
        plusargs: Sequence[str] = (),
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.log = folder / "rtl.log"
        ours, theirs = socket.socketpair()
        arguments = [f"+cosim_fd={theirs.fileno()}", "+verilator+rand+reset+2"]
        arguments += [f"+verilator+seed+{seed}", *plusargs]
        if waves is not None:
            arguments += ["--waves", str(waves)]
        command, environment = simulation_command(executable, folder, arguments, seed)
        with self.log.open("wb") as output:
            self.process = subprocess.Popen(
                command,
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,  # Ctrl-C reaches the parent alone, which stops the child
            )
        theirs.close()
        self.channel = Channel(ours)
        self._receive(START_SECONDS)

    def ask(self, request: Message, timeout_seconds: float | None = None) -> Message:
        """Sends a request and returns the answer.

        Raises RtlError where an assertion ended the simulation, TimeLimitError after
        `timeout_seconds`, ToolError where the process died or refused.
        """
        try:
            self.channel.send(request)
        except OSError:
            self._raise_death()
        return self._receive(timeout_seconds)

    def _receive(self, timeout_seconds: float | None) -> Message:
        try:
            answer = self.channel.receive(timeout_seconds)
        except TimeoutError:
            self.kill()
            raise TimeLimitError(
                f"the RTL simulation gave no answer within {timeout_seconds:g} s and was stopped; "
                f"its log is {self.log}."
            ) from None
        except BaseException:
            self.kill()
            raise
        if answer is None:
            self._raise_death()
            raise AssertionError("unreachable")
        if "broken" in answer:
            raise RtlError(f"the RTL broke its protocol: {answer['broken']}.")
        if "failed" in answer:
            raise ToolError(f"the RTL simulation refused: {answer['failed']} (log: {self.log}).")
        return answer

    def _raise_death(self) -> None:
        """Raises the error that explains why the child is gone."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(STOP_SECONDS)
        self.kill()
        text = self.log.read_text(encoding="utf-8", errors="replace")
        fired = ASSERTION.search(text)
        if fired is not None:
            raise RtlError(
                f"an assertion of the RTL fired in {fired[2]}: {fired[3]} ({fired[1]}; "
                f"log: {self.log})."
            )
        stopped = STOP.search(text)
        if stopped is not None:
            raise RtlError(f"the RTL stopped at {stopped[1]}: {stopped[2]} (log: {self.log}).")
        last = (text.strip().splitlines() or ["no output"])[-1]
        raise ToolError(
            f"the RTL simulation died with status {self.process.returncode}: {last} "
            f"(log: {self.log})."
        )

    @property
    def alive(self) -> bool:
        """True while the process runs."""
        return self.process.poll() is None

    def kill(self) -> None:
        """Ends the process at once."""
        self.channel.close()
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def close(self) -> None:
        """Lets the server end by itself, and ends it where it does not."""
        if self.alive:
            try:
                self.channel.send({"do": "quit"})
                self.process.wait(STOP_SECONDS)
            except (OSError, subprocess.TimeoutExpired):
                pass
        self.kill()
