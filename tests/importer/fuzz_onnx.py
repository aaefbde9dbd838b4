"""Damages `.onnx` files at random and reads them: `python -m tests.importer.fuzz_onnx [FILE…]`.

What comes in: files (a small model is always among them), a count of mutants of each file, a seed.
What goes out: how many were refused in one sentence and how many accepted, within bounded memory.
Any other error ends it, and the mutant is kept as `build/fuzz/onnx-SEED-NUMBER.onnx`.
"""

from __future__ import annotations

import argparse
import resource
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

LIMIT_BYTES = 6 << 30


def mutated(rng: np.random.Generator, whole: bytes) -> bytes:
    """Some bytes changed, dropped, doubled or swapped; most often outside large tensors."""
    data = bytearray(whole)
    for _ in range(int(rng.integers(1, 4))):
        place = int(rng.integers(len(data)))
        length = int(rng.integers(1, 9))
        kind = int(rng.integers(5))
        if kind == 0:
            data[place] = int(rng.integers(256))
        elif kind == 1:
            data[place] ^= 1 << int(rng.integers(8))
        elif kind == 2:
            del data[place : place + length]
        elif kind == 3:
            data[place:place] = data[place : place + length]
        else:
            data = data[:place] if rng.integers(8) == 0 else data
        if not data:
            break
    return bytes(data)


def sources(files: list[Path]) -> list[bytes]:
    """The files, and one small model."""
    from tests.importer.onnx_files import qdq_convolution

    return [*(path.read_bytes() for path in files), qdq_convolution().SerializeToString()]


def outcomes(files: list[Path], count: int, seed: int) -> Iterator[bool]:
    """Whether each mutant was accepted; `count` of each file."""
    from accelsim.artifacts import SourceModel
    from accelsim.errors import AccelsimError
    from accelsim.importer.onnx import parse_onnx
    from accelsim.quantize.onnx import quantize_onnx

    rng = np.random.default_rng(seed)
    originals = sources(files)
    for number, original in enumerate(one for one in originals for _ in range(count)):
        data = mutated(rng, original)
        try:
            found = parse_onnx(data, "net.onnx")
            quantize_onnx(SourceModel("net.onnx", found, (), (), already_quantized=True))
        except AccelsimError as error:
            if "\n" in str(error) or not str(error):
                raise AssertionError(f"mutant {number}: no one sentence: {error!s}") from error
            yield False
        except BaseException:
            kept = Path("build/fuzz") / f"onnx-{seed}-{number}.onnx"
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.write_bytes(data)
            sys.stdout.write(f"{kept}\n")
            raise
        else:
            yield True


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--count", type=int, default=500, help="of each file")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (LIMIT_BYTES, LIMIT_BYTES))
    found = list(outcomes(options.files, options.count, options.seed))
    sys.stdout.write(f"{found.count(False)} refused, {found.count(True)} accepted\n")


if __name__ == "__main__":
    main()
