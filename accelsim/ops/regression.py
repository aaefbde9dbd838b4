"""The test that `python -m accelsim.ops` runs under pytest: one item of a session.

What comes in: the session, from `OpsPlugin`. What goes out: a result. It is not
collected by other runs: its file name matches no pattern.
"""

from __future__ import annotations

import pytest

from accelsim.ops.plugin import OpsPlugin
from accelsim.ops.session import Item, Session


def session_of(config: pytest.Config) -> Session:
    """The session of this run."""
    plugins = config.pluginmanager.get_plugins()
    return next(plugin.session for plugin in plugins if isinstance(plugin, OpsPlugin))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test an item that no earlier run has finished."""
    items = session_of(metafunc.config).left()
    metafunc.parametrize("item", items, ids=[str(item) for item in items])


def test_operator(item: Item, request: pytest.FixtureRequest) -> None:
    """The item compares at least one element and finds no difference."""
    session = session_of(request.config)
    try:
        outcome = session.run(item)
    except Exception as error:  # whatever it is, the item fails with its replay
        if session.interrupted:  # code of others may have made another error of it
            raise KeyboardInterrupt from None
        pytest.fail(session.failure(item, error), pytrace=False)
    if outcome.failed:
        pytest.fail(session.failure(item, outcome), pytrace=False)
