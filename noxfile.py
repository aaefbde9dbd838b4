"""The only entry point for checks: `nox -s NAME -- ARGUMENTS`. CI and pre-commit call these names.

All sessions share one environment in build/env. It is installed from constraints.txt when that
file, the project's metadata or the interpreter has changed, and taken as it is otherwise.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import sys
import tomllib
from pathlib import Path

import nox

ROOT = Path(__file__).parent
ENV = ROOT / "build" / "env"
STAMP = ENV / "installed.sha256"
EXTRAS = "compile,cosim,report,peers,pt2e,dev"
ZOO = (
    *("resnet", "squeezenet", "squeezenext", "mobilenetv1", "mobilenetv2", "xception"),
    *("shufflenet", "yolov5", "yolov5-relu6", "transformer", "detector"),
)
BLOCKS = (
    *("squeeze_excite", "shuffle", "neck", "fire", "unet", "keywords"),
    *("transformer", "super_resolution"),
)
# Two-thread BLAS collapses when the other core is busy, and results must not depend on the machine.
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")

nox.needs_version = ">=2025.2.9"
nox.options.sessions = ["verify"]
nox.options.default_venv_backend = "none"

shared = functools.partial(nox.session, venv_backend="none")


def wanted_state() -> str:
    """Return the hash of everything that decides what build/env contains."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    parts = (sys.version, EXTRAS, ROOT, project["build-system"], project["project"])
    digest = hashlib.sha256(repr((*parts, project["tool"]["hatch"])).encode())
    digest.update((ROOT / "constraints.txt").read_bytes())
    return digest.hexdigest()


def prepare(session: nox.Session) -> None:
    """Put the shared environment on PATH; install it unless it is already the wanted one."""
    session.env.update(ONE_THREAD)
    session.env["VIRTUAL_ENV"] = str(ENV)
    session.env["PATH"] = f"{ENV / 'bin'}{os.pathsep}{os.environ['PATH']}"
    if STAMP.exists() and STAMP.read_text(encoding="ascii") == wanted_state():
        return
    session.log("installing the shared environment into build/env (once; a few minutes)")
    session.run(sys.executable, "-m", "virtualenv", "-q", "--clear", str(ENV), external=True)
    install = (str(ENV / "bin/python"), "-m", "pip", "install", "-q", "-c", "constraints.txt")
    session.run(*install, "hatchling", external=True)
    session.run(*install, "--no-build-isolation", "-e", f".[{EXTRAS}]", external=True)
    STAMP.write_text(wanted_state(), encoding="ascii")


def python(session: nox.Session, *arguments: str) -> None:
    """Run the shared environment's Python."""
    program(session, "python", *arguments)


def program(session: nox.Session, name: str, *arguments: str) -> None:
    """Run a program of the shared environment."""
    prepare(session)
    session.run(str(ENV / "bin" / name), *arguments, external=True)


def pytest(session: nox.Session, *arguments: str) -> None:
    """Run pytest; its JUnit XML goes to build/junit/SESSION.xml."""
    python(session, "-m", "pytest", f"--junitxml=build/junit/{session.name}.xml", *arguments)


@shared
def verify(session: nox.Session) -> None:
    """Compile the network, run it on simulator and RTL, and compare every layer."""
    named = any(
        re.search(r"^zoo:|\.(pt2|onnx|tflite)$|\.py:|^--?h", word) for word in session.posargs
    )
    model = () if named else ("zoo:digits-resnet",)
    program(session, "accelsim", "verify", *model, *session.posargs)


@shared
def tests(session: nox.Session) -> None:
    """Run the tests, long campaigns excepted."""
    pytest(session, "-n2", "--dist=loadfile", "-m", "not campaign", *session.posargs)


@shared
def ops(session: nox.Session) -> None:
    """Run one operator's regression: `nox -s ops -- conv2d`; without a name, every operator's."""
    python(session, "-m", "accelsim.ops", *session.posargs)


@shared
def operators(session: nox.Session) -> None:
    """Run all cases of all operators in all configurations; `-- --resume` goes on after a stop."""
    python(session, "-m", "accelsim.ops", "--campaign", *session.posargs)


@shared
def peers(session: nox.Session) -> None:
    """Run other projects' kernels and cases against the NPU: `-- --suite NAME --json FILE`."""
    python(session, "-m", "accelsim.peers", *session.posargs)


@shared
def cosim(session: nox.Session) -> None:
    """Run the tests of the RTL modules and of the co-simulation."""
    pytest(session, "-n2", "--dist=loadfile", "-m", "rtl and not campaign", *session.posargs)


@shared
def rtl(session: nox.Session) -> None:
    """Check one edited module in about two minutes: `nox -s rtl -- MODULE`."""
    python(session, "-m", "tools.rtl_loop", *session.posargs)


@shared
def vectors(session: nox.Session) -> None:
    """Check the committed vectors; `-- --update --reason TEXT` rewrites them."""
    python(session, "-m", "accelsim.vectors", *session.posargs)


@shared
def bench(session: nox.Session) -> None:
    """Print simulated cycles, utilization and simulation speed for real networks' layers."""
    python(session, "-m", "bench", *session.posargs)


@shared
def gen(session: nox.Session) -> None:
    """Check that the files generated from the specification are fresh; `-- --write` writes them."""
    mode = () if "--write" in session.posargs else ("--check",)
    python(session, "-m", "accelsim.spec.generate", *mode)


@shared
def lint(session: nox.Session) -> None:
    """Lint Python and SystemVerilog, formatting included."""
    python(session, "-m", "ruff", "check", ".")
    python(session, "-m", "ruff", "format", "--check", ".")
    python(session, "-m", "tools.rtl_lint", *session.posargs)


@shared
def synth(session: nox.Session) -> None:
    """Read the design with Yosys, and refuse latches: `-- edge8 base16`, edge8 if none."""
    python(session, "-m", "tools.rtl_synth", *session.posargs)


@shared
def types(session: nox.Session) -> None:
    """Type-check the package, the tools and this file."""
    python(session, "-m", "mypy", *session.posargs)


@shared
def fmt(session: nox.Session) -> None:
    """Apply the formatters."""
    python(session, "-m", "ruff", "check", "--fix", "--exit-zero", "-q", ".")
    python(session, "-m", "ruff", "format", ".")
    python(session, "-m", "tools.rtl_lint", "--format")


@shared
def mutation(session: nox.Session) -> None:
    """Plant bugs in the RTL and count who is caught: `-- --count N --seed S --json FILE`."""
    python(session, "-m", "accelsim.mutate", *session.posargs)


@shared
def random(session: nox.Session) -> None:
    """Run random programs on RTL and simulator: `-- --config NAME --count N --seed S`."""
    python(session, "-m", "tools.random_programs", *session.posargs)


@shared
def fuzz(session: nox.Session) -> None:
    """Damage real model files at random, N times each, and read them: `-- --count N --seed S`."""
    data = Path(os.environ.get("ACCELSIM_PEER_DATA") or ROOT.parent / "shared" / "data")
    for kind in ("onnx", "tflite"):
        files = sorted(str(path) for path in data.rglob(f"*.{kind}"))
        if not files:
            session.error(f"there is no .{kind} file in {data}: set ACCELSIM_PEER_DATA")
        python(session, "-m", f"tests.importer.fuzz_{kind}", *session.posargs, *files)


@shared
def subnets(session: nox.Session) -> None:
    """Verify every network of the zoo and every block of `examples/`, on simulator and RTL."""
    models = [f"zoo:digits-{name}" for name in ZOO]
    models += [f"examples/blocks.py:{name}" for name in BLOCKS]
    for model in models:
        program(session, "accelsim", "verify", model, *session.posargs)


@shared
def networks(session: nox.Session) -> None:
    """Verify whole ResNet-18 and MobileNetV2 on simulator and RTL."""
    for name in ("resnet18", "mobilenetv2"):
        model = f"examples/{name}.py:make"
        program(session, "accelsim", "verify", model, "--config", "base16", *session.posargs)


@shared
def campaign(session: nox.Session) -> None:
    """Run the long tests that `tests` leaves out."""
    pytest(session, "-n2", "--dist=loadfile", "-m", "campaign", *session.posargs)
