"""Damages `.tflite` files at random and reads them: `python -m tests.importer.fuzz_tflite FILE…`.

What comes in: files, a count and a seed. What goes out: a line of counts, and exit code 0 if every
damaged file was read or refused in one sentence, within the memory that the limit leaves. A file
that does neither is kept as `build/fuzz/tflite-SEED-NUMBER.tflite`.
"""

from __future__ import annotations

import argparse
import resource
import sys
from pathlib import Path

import numpy as np

from accelsim.artifacts import SourceModel
from accelsim.errors import ModelError
from accelsim.importer.tflite import read_model
from accelsim.quantize.tflite import quantize_tflite

MORE_BYTES = 1 << 30  # than the process has after its imports
NUMBERS = (0, 1, 2, 4, 127, 128, 255, 1 << 15, (1 << 31) - 1, 1 << 31, (1 << 32) - 1)


def damaged(data: bytes, rng: np.random.Generator) -> bytes:
    """The file with a few bytes or words replaced, or parts cut, moved or repeated."""
    content = bytearray(data)
    for _ in range(int(rng.integers(1, 6))):
        at, kind = int(rng.integers(len(content))), int(rng.integers(8))
        if kind < 3:
            content[at] ^= 1 << int(rng.integers(8))
        elif kind < 6:
            number = (
                int(rng.choice(NUMBERS)) if rng.integers(2) else int(rng.integers(len(content)))
            )
            at -= at % 4
            content[at : at + 4] = number.to_bytes(4, "little")
        elif kind == 6:
            source, length = int(rng.integers(len(content))), int(rng.integers(1, 65))
            content[at : at + length] = content[source : source + length]
        elif rng.integers(4) == 0:
            del content[max(at, 8) :]
    return bytes(content)


def limit_memory() -> None:
    """No more than `MORE_BYTES` beyond what is mapped now."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + MORE_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def say(line: str) -> None:
    """Print a line."""
    sys.stdout.write(f"{line}\n")


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--count", type=int, default=500, help="of each file")
    parser.add_argument("--convert", type=int, default=40, help="of each file also as Relax")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    limit_memory()
    counts = {"read": 0, "refused": 0, "converted": 0, "not converted": 0, "wrong": 0}
    for path in options.files:
        original, converted = path.read_bytes(), 0
        for number in range(options.count):
            content = damaged(original, np.random.default_rng((options.seed, number)))
            try:
                model = read_model(content, path.name)
                counts["read"] += 1
                if converted < options.convert:
                    converted += 1
                    source = SourceModel(
                        path.name,
                        model,
                        (),
                        model.input_names,
                        already_quantized=True,
                        framework="tflite",
                    )
                    counts["not converted"] += 1
                    quantize_tflite(source)
                    counts["converted"] += 1
                    counts["not converted"] -= 1
            except ModelError as error:
                counts["refused"] += 1
                if "\n" in str(error):
                    counts["wrong"] += 1
                    say(f"{path.name}, mutant {number}: a message of several lines: {error}")
            except Exception as error:
                counts["wrong"] += 1
                kept = Path("build/fuzz") / f"tflite-{options.seed}-{number}.tflite"
                kept.parent.mkdir(parents=True, exist_ok=True)
                kept.write_bytes(content)
                say(f"{kept}: {type(error).__name__}: {error}")
    say(", ".join(f"{count} {what}" for what, count in counts.items()))
    return 1 if counts["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
