"""What people see of a run: a table of its results, and a progress bar."""
import concurrent.futures
import html
import sys
from typing import Any, Dict, Iterable, Iterator, List, Optional

from ._results import Result

_COLUMNS = ("job", "name", "state", "exit", "host", "elapsed_seconds")
_MAX_ROWS = 100


class Table(List[Result]):
    """The results of a run. A notebook shows it as a table.

    >>> table = Table([Result({"job": 1, "name": "<sim>", "state": "succeeded", "exit": 0})])
    >>> table
    <1 job: 1 succeeded>
    >>> "<td>&lt;sim&gt;</td>" in table._repr_html_()
    True
    """

    def __repr__(self) -> str:
        counts: Dict[str, int] = {}
        for result in self:
            counts[result.state] = counts.get(result.state, 0) + 1
        said = ", ".join("%d %s" % (n, state) for state, n in counts.items())
        return "<%d job%s%s>" % (len(self), "" if len(self) == 1 else "s", ": " + said if said else "")

    def _repr_html_(self) -> str:
        rows = ["<tr>%s</tr>" % "".join("<th>%s</th>" % c.replace("_seconds", " (s)") for c in _COLUMNS)]
        for result in self[:_MAX_ROWS]:
            values = [vars(result).get(c) for c in _COLUMNS]
            rows.append("<tr>%s</tr>" % "".join("<td>%s</td>" % html.escape(_text(v)) for v in values))
        more = len(self) - _MAX_ROWS
        tail = "<p>and %d more</p>" % more if more > 0 else ""
        return "<p>%s</p><table>%s</table>%s" % (html.escape(repr(self)[1:-1]), "".join(rows), tail)


def _text(value: Any) -> str:
    if value is None:
        return ""
    return "%.3g" % value if isinstance(value, float) else str(value)


class _Bar:
    """Shows how many of some futures are done.

    >>> bar = _Bar(4)
    >>> bar.add(False); bar.add(True)
    >>> bar
    ##########..........  2 of 4, 1 failed
    """

    def __init__(self, total: int) -> None:
        self.total, self.done, self.failed = total, 0, 0

    def add(self, failed: bool) -> None:
        self.done, self.failed = self.done + 1, self.failed + failed

    def __repr__(self) -> str:
        full = 20 * self.done // max(self.total, 1)
        return "#" * full + "." * (20 - full) + "  " + self._count()

    def _count(self) -> str:
        return "%d of %d%s" % (self.done, self.total, ", %d failed" % self.failed if self.failed else "")

    def _repr_html_(self) -> str:
        return '<progress value="%d" max="%d"></progress> %s' % (self.done, max(self.total, 1), self._count())


def progress(futures: "Iterable[concurrent.futures.Future[Any]]",
             timeout: Optional[float] = None) -> "Iterator[concurrent.futures.Future[Any]]":
    """Yield futures as they are done, and show a progress bar in a notebook or on a terminal."""
    futures = list(dict.fromkeys(futures))
    bar, show = _Bar(len(futures)), _display()
    show(bar)
    try:
        for future in concurrent.futures.as_completed(futures, timeout):
            bar.add(future.cancelled() or future.exception() is not None)
            show(bar)
            yield future
    finally:
        show(None)


def _display() -> Any:
    """Return a function that shows a bar in place of the one before; None is the end."""
    ipython = sys.modules.get("IPython")
    if ipython is not None and type(ipython.get_ipython()).__name__ == "ZMQInteractiveShell":
        from importlib import import_module
        handle: Any = import_module("IPython.display").display(_Bar(0), display_id=True)

        def update(bar: Optional[_Bar]) -> None:
            if bar is not None:
                handle.update(bar)
        return update

    def write(bar: Optional[_Bar]) -> None:
        if sys.stderr.isatty():
            sys.stderr.write("\n" if bar is None else "\r%r\x1b[K" % bar)
            sys.stderr.flush()
    return write
