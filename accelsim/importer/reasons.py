"""Another library's exception as part of one sentence.

What comes in: an exception. What goes out: text without newline, short enough for a sentence.
"""

from __future__ import annotations

_LIMIT_CHARS = 160


def reason(error: BaseException) -> str:
    """Kind and first line of an exception, at most 160 characters, without a full stop."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
    text = text if len(text) <= _LIMIT_CHARS else text[: _LIMIT_CHARS - 1] + "…"
    return text.rstrip(".")
