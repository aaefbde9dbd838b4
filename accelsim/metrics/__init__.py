"""Task metrics: how good outputs are, given labels.

What comes in: a network's outputs on labelled samples. What goes out: named numbers, the first of
which is what a network is judged by. It must not know which network or number format it was.

Built in are `top1` and `top5`. `FILE.py:FUNCTION` names a user's own: it is called once, with the
outputs of all samples (an array, or a tuple of arrays where the network has several outputs) and
the labels, and returns a number or a dict of numbers by name. More is better.
"""

from __future__ import annotations

from accelsim.metrics.metric import Metric, load_metric

__all__ = ["Metric", "load_metric"]
