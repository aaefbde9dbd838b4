"""What of a float network the NPU cannot run, or runs badly, and what to put in its place.

What comes in: a float model and a configuration. What goes out: findings, each with the layer's own
name; and, where a replacement is applied, the changed network, with its difference, accuracy after
a short training, cycles, memory traffic and multiplications before and after. It must not know how
layers are verified.

Replacements are modules in the folder `rules`; a new one is one file there.
"""

from __future__ import annotations

from accelsim.advise.document import SCHEMA, document, text
from accelsim.advise.record import AdviseOptions, AdviseRecord
from accelsim.advise.rules import all_rules
from accelsim.advise.run import run

__all__ = ["SCHEMA", "AdviseOptions", "AdviseRecord", "all_rules", "document", "run", "text"]
