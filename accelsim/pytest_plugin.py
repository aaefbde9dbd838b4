"""The pytest plugin: a team's own tests drive simulator and RTL with it. See docs/bench-api.md.

What comes in: command line options. What goes out: fixtures. It must not know any model, and
imports the simulations only when a test asks for them.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from zlib import crc32

import pytest

from accelsim.errors import AccelsimError
from accelsim.spec.config import CONFIGS, Config, load_config

if TYPE_CHECKING:
    import numpy as np

    from accelsim.cosim.session import Cosim
    from accelsim.testbench import Bench

DEFAULT_CONFIG = "edge8"
DEFAULT_SEED = 1
BACKENDS = ("sim", "rtl")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of accelsim."""
    group = parser.getgroup("accelsim", "accelsim: simulator and RTL of the NPU")
    group.addoption(
        "--accelsim-config",
        metavar="NAME|FILE",
        default=DEFAULT_CONFIG,
        help=f"{', '.join(CONFIGS)} or a TOML file (default: {DEFAULT_CONFIG})",
    )
    group.addoption(
        "--accelsim-backend",
        metavar="NAME",
        action="append",
        choices=BACKENDS,
        help="sim or rtl; repeatable (default: both)",
    )
    group.addoption(
        "--accelsim-seed", metavar="N", type=int, default=DEFAULT_SEED, help="seed (default: 1)"
    )
    group.addoption(
        "--waves",
        action="store_true",
        help="keep a waveform of every RTL run, not of failures only",
    )
    group.addoption(
        "--update-vectors", action="store_true", help="tests may rewrite their expected bytes"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Refuse a configuration that does not exist, before any test runs."""
    try:
        load_config(config.getoption("--accelsim-config"))
    except AccelsimError as error:
        raise pytest.UsageError(str(error)) from None


def pytest_report_header(config: pytest.Config) -> str:
    """Say what the tests run on."""
    return (
        f"accelsim: config {config.getoption('--accelsim-config')}, "
        f"backends {'+'.join(_backends(config))}, seed {config.getoption('--accelsim-seed')}"
    )


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """After a failure, say how to replay it and where its waveform is."""
    outcome = yield
    report = outcome.get_result()  # type: ignore[attr-defined]
    bench: Bench | None = getattr(item, "funcargs", {}).get("accelsim_bench")
    if report.when != "call" or not report.failed or bench is None:
        return
    config = item.config
    lines = [
        f"replay: pytest {item.nodeid!r} --accelsim-config {config.getoption('--accelsim-config')} "
        f"--accelsim-seed {config.getoption('--accelsim-seed')}"
    ]
    try:
        waves = bench.record_failure()
    except AccelsimError as error:
        lines.append(f"no waveform: {error}")
    else:
        lines += [f"waveform: {waves}"] if waves else []
    report.sections.append(("accelsim", "\n".join(lines)))


def _backends(config: pytest.Config) -> tuple[str, ...]:
    return tuple(config.getoption("--accelsim-backend") or BACKENDS)


@pytest.fixture(scope="session")
def accelsim_config(request: pytest.FixtureRequest) -> Config:
    """The hardware configuration, of --accelsim-config."""
    return load_config(request.config.getoption("--accelsim-config"))


@pytest.fixture(scope="session")
def accelsim_backends(request: pytest.FixtureRequest) -> tuple[str, ...]:
    """Names of the backends, of --accelsim-backend, in order."""
    return _backends(request.config)


@pytest.fixture(scope="session")
def accelsim_seed(request: pytest.FixtureRequest) -> int:
    """The seed, of --accelsim-seed."""
    return int(request.config.getoption("--accelsim-seed"))


@pytest.fixture(scope="session")
def accelsim_update_vectors(request: pytest.FixtureRequest) -> bool:
    """Whether --update-vectors was given."""
    return bool(request.config.getoption("--update-vectors"))


@pytest.fixture
def accelsim_rng(request: pytest.FixtureRequest, accelsim_seed: int) -> np.random.Generator:
    """A generator that depends on the seed and on the test's name, not on the order of tests."""
    import numpy as np

    random.seed(accelsim_seed)
    return np.random.default_rng([accelsim_seed, crc32(request.node.nodeid.encode())])


@pytest.fixture(scope="session")
def accelsim_cosim(accelsim_config: Config, accelsim_seed: int) -> Iterator[Cosim]:
    """One RTL simulation, shared by all tests of a worker and started at the first launch."""
    from accelsim.cosim.session import Cosim

    cosim = Cosim(accelsim_config, seed=accelsim_seed)
    yield cosim
    cosim.close()


@pytest.fixture
def accelsim_bench(request: pytest.FixtureRequest, accelsim_config: Config) -> Iterator[Bench]:
    """Builds programs, runs them on every chosen backend and compares. See `accelsim.testbench`."""
    from accelsim.testbench import Bench

    names = _backends(request.config)
    cosim = request.getfixturevalue("accelsim_cosim") if "rtl" in names else None
    seed = int(request.config.getoption("--accelsim-seed"))
    folder = Path("build") / "waves" / _file_name(request.node.nodeid)
    waves = bool(request.config.getoption("--waves"))
    bench = Bench(accelsim_config, names, cosim, seed=seed, wave_folder=folder, waves=waves)
    yield bench
    bench.close()


def _file_name(node: str) -> str:
    return "".join(c if c.isalnum() or c in "._-" else "-" for c in node).strip("-")[-120:]
