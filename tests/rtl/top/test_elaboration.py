"""A second front end, slang, elaborates the whole design; Yosys reads SystemVerilog through it."""

from __future__ import annotations

import pyslang
import pytest

from accelsim import sources
from accelsim.spec.config import CONFIGS


@pytest.mark.rtl
@pytest.mark.parametrize("define", ["SYNTHESIS", "SIMULATION"])
@pytest.mark.parametrize("config", CONFIGS)
def test_slang_elaborates_the_design_without_an_error(config: str, define: str) -> None:
    driver = pyslang.driver.Driver()
    driver.addStandardArgs()
    files = " ".join(str(path) for path in sources.rtl_files(config))
    assert driver.parseCommandLine(f"slang -D{define} --top npu_top {files}")
    assert driver.processOptions() and driver.parseAllSources()
    compilation = driver.createCompilation()
    errors = [d for d in compilation.getAllDiagnostics() if d.isError()]
    assert not errors, [str(error.code) for error in errors]
    names = [instance.name for instance in compilation.getRoot().topInstances]
    assert names == ["npu_top"]
