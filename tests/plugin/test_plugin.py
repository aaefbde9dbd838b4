"""The pytest plugin, used as a project of its own would use it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = re.findall(
    r"```python\n(.*?)```", (ROOT / "docs" / "bench-api.md").read_text(encoding="utf-8"), re.DOTALL
)
pytest_plugins = ["pytester"]
pytestmark = pytest.mark.rtl


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """An empty project that finds accelsim and shares this repository's cache of builds."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    (pytester.path / "build").mkdir()
    (pytester.path / "build" / "cosim").symlink_to(ROOT / "build" / "cosim")
    return pytester


def run(project: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    plugin = () if installed() else ("-p", "accelsim.pytest_plugin")
    return project.runpytest_subprocess("-p", "no:cacheprovider", *plugin, *arguments)


def installed() -> bool:
    """Whether the entry point is known to this interpreter."""
    from importlib.metadata import entry_points

    return any(e.value == "accelsim.pytest_plugin" for e in entry_points(group="pytest11"))


def test_the_documented_examples_pass_on_simulator_and_rtl(project: pytest.Pytester) -> None:
    assert len(EXAMPLES) == 2
    for number, text in enumerate(EXAMPLES):
        project.makepyfile(**{f"test_example{number}": text})
    result = run(project)
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["accelsim: config edge8, backends sim+rtl, seed 1"])


def test_a_failure_names_the_element_the_replay_and_the_waveform(project: pytest.Pytester) -> None:
    wrong = EXAMPLES[0].replace(
        "check_memory(results, 3, source)", "check_memory(results, 3, ~source)"
    )
    project.makepyfile(test_wrong=wrong)
    result = run(project, "--accelsim-seed", "7")
    result.assert_outcomes(failed=1)
    result.stdout.re_match_lines(
        [
            r".*AssertionError: sim: base register 3 .*16 of 16 elements differ, first at \(0,\)",
            r"replay: pytest 'test_wrong.py::.*' --accelsim-config edge8 --accelsim-seed 7",
            r"waveform: .*failure\.(fst|vcd)",
        ]
    )
    (wave,) = (project.path / "build" / "waves").glob("*/failure.*")
    assert wave.stat().st_size > 1000


def test_options_choose_backend_configuration_and_seed(project: pytest.Pytester) -> None:
    project.makepyfile(
        test_options="""
        def test_it(accelsim_config, accelsim_backends, accelsim_seed, accelsim_update_vectors):
            assert accelsim_config.name == "wide32"
            assert (accelsim_backends, accelsim_seed) == (("sim",), 5)
            assert accelsim_update_vectors
        """
    )
    options = ("--accelsim-config=wide32", "--accelsim-backend=sim", "--accelsim-seed=5")
    run(project, *options, "--update-vectors").assert_outcomes(passed=1)


def test_random_values_depend_on_seed_and_name_only(project: pytest.Pytester) -> None:
    project.makepyfile(
        test_random="""
        from pathlib import Path

        def test_it(accelsim_rng):
            with Path("drawn.txt").open("a") as file:
                file.write(f"{accelsim_rng.integers(1 << 60)}\\n")
        """
    )
    for seed in ("1", "1", "2"):
        run(project, "--accelsim-seed", seed).assert_outcomes(passed=1)
    drawn = (project.path / "drawn.txt").read_text(encoding="ascii").split()
    assert drawn[0] == drawn[1] != drawn[2]


def test_unknown_configuration_is_one_sentence(project: pytest.Pytester) -> None:
    project.makepyfile("def test_it(): pass")
    result = run(project, "--accelsim-config", "edge9")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: unknown configuration 'edge9': use edge8, *"])
