"""Profiling runs go side by side, two at a time: most of what one takes is imports and compilation, on one core.

`@pytest.mark.profiled(SCRIPT, *OPTIONS, arguments=...)` on a test gives it the fixture `run`. Those of a module are
started together, with the first test that asks for one, and each test waits for its own only.
"""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from tests.profile.command import Profiled, profile


@pytest.fixture(scope="module")
def runs(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Future[Profiled]]]:
    """The runs that the selected tests of a module ask for, by test."""
    threads = ThreadPoolExecutor(2)
    yield {
        item.nodeid: threads.submit(profile, tmp_path_factory.mktemp("run"), *mark.args, **mark.kwargs)
        for item in request.session.items
        if item.getparent(pytest.Module) is request.node and (mark := item.get_closest_marker("profiled"))
    }
    threads.shutdown(cancel_futures=True)


@pytest.fixture
def run(request: pytest.FixtureRequest, runs: dict[str, Future[Profiled]]) -> Profiled:
    """The run that a test is marked with."""
    return runs[request.node.nodeid].result()
