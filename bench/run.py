"""The whole benchmark: measures layer by layer, prints tables, writes JSON."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from accelsim.cosim.session import Cosim
from accelsim.cosim.speed import Speed
from accelsim.spec.config import Config, load_config
from bench.bound import least_cycles
from bench.compiling import CompileTimes, measure_compile
from bench.measure import LayerTimes, RtlRun, cosim_speed, count_cycles, measure_layer, run_rtl
from bench.shapes import DEPTHWISE, MOBILENETV2, RESNET18, Shape

SCHEMA = "accelsim.bench/1"
QUICK = (
    *("layer2 3×3/2", "layer3 1×1/2", "layer4 1×1/2", "fc"),
    *("first 3×3/2 @224", "depthwise 384 @14"),
)
DEPTHWISE_GOAL = 2  # useful products a cycle and lane of a 3×3 depthwise layer at stride 1
SPEED_SHAPE = "layer2 3×3/2"


def run(config_name: str, seed: int, quick: bool, rtl: bool, json_file: Path | None) -> None:
    """Measure and print as it goes. Raises AccelsimError where something cannot be measured."""
    config = load_config(config_name)
    report: dict[str, Any] = {"schema": SCHEMA, "config": config.name, "seed": seed, "quick": quick}
    if json_file is not None:
        json_file.parent.mkdir(parents=True, exist_ok=True)
    print(
        f"{config.name}: {config.lanes}×{config.lanes} lanes, {config.on_chip_bytes} bytes on chip"
    )
    print("One thread; processor times of this run, the RTL's wall time; no records, no digests.\n")
    for title, shapes in (("ResNet-18 @224", RESNET18), ("MobileNetV2 @224", MOBILENETV2)):
        chosen = [s for s in shapes if not quick or s.name in QUICK]
        report[title] = _simulated(title, chosen, config, seed, 2 if quick else 5)
    report["depthwise"] = _depthwise(config, seed, quick)
    if not quick:
        report["network"] = _compiled(seed, config)
    if rtl:
        chosen = [s for s in (*RESNET18, *MOBILENETV2) if not quick or s.name in QUICK]
        report["rtl"] = _on_rtl(chosen, config, seed)
        report["cosim"] = _speed(config, seed, 1 if quick else 3)
    if json_file is not None:
        partial = json_file.with_name(json_file.name + ".partial")
        partial.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
        partial.replace(json_file)


def _rng(seed: int, shape: Shape) -> np.random.Generator:
    return np.random.default_rng([seed, *shape.name.encode()])


def _simulated(
    title: str, shapes: Sequence[Shape], config: Config, seed: int, repeat: int
) -> dict[str, Any]:
    print(f"{title}, simulated")
    print(
        f"{'layer':20}{'×':>2}{'instr.':>8}{'cycles':>10}{'util.':>7}{'sim ms':>9}{'/BLAS':>7}"
        f"{'timing ms':>11}{'/BLAS':>7}{'BLAS ms':>9}"
    )
    rows = []
    for shape in shapes:
        measured = measure_layer(_rng(seed, shape), shape, config, repeat)
        rows.append(measured)
        print(_layer_line(measured, config))
    weighted = [(row, row.shape.times) for row in rows if row.shape.times]
    if weighted:
        print(_total_line(weighted, config))
    print()
    return {
        "layers": [
            {**asdict(row), "macs": row.shape.macs, "products": row.products} for row in rows
        ],
        "totals": _totals(weighted, config) if weighted else {},
    }


def _depthwise(config: Config, seed: int, quick: bool) -> list[dict[str, Any]]:
    """Useful products a cycle of whole layers on their own, beside what no schedule can pass."""
    print("3×3 depthwise layers at stride 1 on their own, from memory to memory, in LANES")
    print(f"{'layer':20}{'cycles':>10}{'least':>10}{'products a cycle':>18}{'at most':>9}")
    rows = []
    for shape in DEPTHWISE[:: 4 if quick else 1]:
        cycles = count_cycles(_rng(seed, shape), shape, config)
        least = least_cycles(shape, config)
        reached, most = (shape.macs / config.lanes / n for n in (cycles, least))
        rows.append(
            {
                "layer": shape.name,
                "cycles": cycles,
                "least": least,
                "products": reached,
                "most": most,
            }
        )
        remark = "" if reached >= DEPTHWISE_GOAL else f"   below {DEPTHWISE_GOAL}"
        print(f"{shape.name:20}{cycles:10}{least:10}{reached:18.2f}{most:9.2f}{remark}")
    print()
    return rows


def _layer_line(m: LayerTimes, config: Config) -> str:
    return (
        f"{m.shape.name:20}{m.shape.times or '':>2}{m.instructions:8}{m.cycles:10}"
        f"{m.utilization:7.1%}{m.sim_seconds * 1e3:9.2f}{m.sim_seconds / m.blas_seconds:6.1f}×"
        f"{m.timing_seconds * 1e3:11.2f}{m.timing_seconds / m.blas_seconds:6.2f}×"
        f"{m.blas_seconds * 1e3:9.2f}" + _remark(m, config)
    )


def _remark(m: LayerTimes, config: Config) -> str:
    """How a depthwise layer and a packed first layer use the array, in words."""
    lanes = config.lanes
    products = f"{m.products / lanes:.2f}·LANES products a cycle"
    if m.packed_lanes:
        shape = m.shape
        return (
            f"   {products}; {shape.in_channels} channels of {shape.kernel}×{shape.kernel} packed "
            f"into {m.packed_lanes} lanes"
        )
    if not m.shape.depthwise:
        return ""
    if (m.shape.kernel, m.shape.stride) != (3, 1):
        return f"   {products}"
    most = m.shape.macs / least_cycles(m.shape, config) / lanes
    return f"   {products}, goal {DEPTHWISE_GOAL}, at most {most:.2f}"


def _totals(weighted: Sequence[tuple[LayerTimes, int]], config: Config) -> dict[str, float]:
    def total(field: str) -> float:
        return float(sum(getattr(row, field) * times for row, times in weighted))

    cycles = total("cycles")
    macs = sum(row.shape.macs * times for row, times in weighted)
    return {
        "instructions": sum((row.instructions - 1) * times for row, times in weighted),
        "cycles": cycles,
        "utilization": macs / (config.lanes**2 * cycles),
        "sim_seconds": total("sim_seconds"),
        "timing_seconds": total("timing_seconds"),
        "blas_seconds": total("blas_seconds"),
        "sim_over_blas": total("sim_seconds") / total("blas_seconds"),
        "timing_over_blas": total("timing_seconds") / total("blas_seconds"),
    }


def _total_line(weighted: Sequence[tuple[LayerTimes, int]], config: Config) -> str:
    t = _totals(weighted, config)
    return (
        f"{'total':20}{'':2}{t['instructions']:8.0f}{t['cycles']:10.0f}{t['utilization']:7.1%}"
        f"{t['sim_seconds'] * 1e3:9.2f}{t['sim_over_blas']:6.1f}×"
        f"{t['timing_seconds'] * 1e3:11.2f}{t['timing_over_blas']:6.2f}×"
        f"{t['blas_seconds'] * 1e3:9.2f}"
    )


def _compiled(seed: int, config: Config) -> dict[str, Any]:
    t: CompileTimes = measure_compile(seed, config)
    print(
        f"Whole ResNet-18: {t.instructions} instructions in {t.regions} region(s), {t.cycles} "
        f"cycles, {t.utilization:.1%} of peak; compiled in {t.accelsim_seconds:.2f} s, by TVM for "
        f"LLVM in {t.tvm_seconds:.2f} s: {t.ratio:.2f}×\n"
    )
    return {**asdict(t), "ratio": t.ratio}


def _on_rtl(shapes: Sequence[Shape], config: Config, seed: int) -> list[dict[str, Any]]:
    print("RTL against the simulator (outputs compared bit for bit)")
    print(f"{'layer':20}{'RTL cycles':>12}{'simulated':>12}{'error':>9}{'s':>8}{'k cycles/s':>12}")
    rows: list[RtlRun] = []
    with Cosim(config, seed=seed) as cosim:
        for shape in shapes:
            row = run_rtl(_rng(seed, shape), shape, cosim)
            rows.append(row)
            print(
                f"{row.name:20}{row.cycles:12}{row.sim_cycles:12}{row.error:9.3%}"
                f"{row.seconds:8.2f}{row.cycles / row.seconds / 1e3:12.0f}"
            )
    worst = max(abs(row.error) for row in rows)
    ratio = sum(row.sim_cycles for row in rows) / sum(row.cycles for row in rows)
    print(f"together {ratio - 1:.3%}, worst {worst:.3%}\n")
    return [{**asdict(row), "error": row.error} for row in rows]


def _speed(config: Config, seed: int, repeat: int) -> dict[str, float]:
    shape = next(s for s in RESNET18 if s.name == SPEED_SHAPE)
    began = time.perf_counter()
    speed: Speed = cosim_speed(_rng(seed, shape), shape, config, repeat)
    print(
        f"Co-simulation of {shape.name}, {speed.cycles} cycles: "
        f"{speed.cocotb_cycles_per_second / 1e3:.0f} thousand cycles/s under cocotb, "
        f"{speed.loop_cycles_per_second / 1e3:.0f} in a plain C++ loop, {speed.ratio:.1%} "
        f"(measured in {time.perf_counter() - began:.0f} s)"
    )
    return {**asdict(speed), "ratio": speed.ratio}
