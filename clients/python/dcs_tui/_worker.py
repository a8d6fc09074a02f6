"""What a host runs for functions, and the format of calls and results on both sides.

A host has this file as _dcs_tui_worker, in an archive with cloudpickle, and needs only Python.
Calls and results are records: a line, and blocks of bytes. The line is

    dcs1 INDEX SECONDS KIND SIZE,SIZE... TEXT

where TEXT is all blocks, compressed and in base64; or it is raw, and the blocks follow the line,
each at a multiple of 64 bytes and as it is. So a large array is written and mapped, not copied.
"""
import base64
import io
import os
import pickle
import sys
import time
import traceback
import zlib
from typing import Any, BinaryIO, Callable, Dict, Iterator, List, Optional, Tuple

MAX_TEXT = 1 << 20  # larger records are raw
_ALIGN = 64

Record = Tuple[int, float, str, List[Any]]  # index, seconds, kind, blocks


def write(out: BinaryIO, at: int, record: Record, max_text: int = MAX_TEXT) -> int:
    """Write a record at the offset at of out, and return the offset behind it."""
    index, seconds, kind, blocks = record
    sizes = ",".join(str(len(b)) for b in blocks)
    head = b"dcs1 %d %.6f %s %s " % (index, seconds, kind.encode(), sizes.encode())
    if sum(len(b) for b in blocks) <= max_text:
        text = base64.b64encode(zlib.compress(b"".join(blocks), 1))
        out.write(head + text + b"\n")
        return at + len(head) + len(text) + 1
    head += b"raw"
    head += b" " * (-(at + len(head) + 1) % _ALIGN) + b"\n"
    out.write(head)
    at += len(head)
    for block in blocks:
        out.write(block)
        padding = -len(block) % _ALIGN
        out.write(b"\0" * padding)
        at += len(block) + padding
    out.write(b"\n")
    return at + 1


def records(data: Any) -> Iterator[Record]:
    """Read the complete records of data, which is bytes or a map of a file. Skip other lines."""
    at, view = 0, memoryview(data)
    while True:
        end = data.find(b"\n", at)
        if end < 0:
            return  # the process was killed while it wrote
        words = data[at:end].split()
        at = end + 1
        if len(words) != 6 or words[0] != b"dcs1":
            continue
        sizes = [int(n) for n in words[4].split(b",")]
        blocks = []  # type: List[Any]
        if words[5] == b"raw":
            for n in sizes:
                blocks.append(view[at:at + n])
                at += n + -n % _ALIGN
            if at > len(view):
                return
        else:
            text, begin = memoryview(bytearray(zlib.decompress(base64.b64decode(words[5])))), 0
            for n in sizes:
                blocks.append(text[begin:begin + n])
                begin += n
        yield int(words[1]), float(words[2]), words[3].decode(), blocks


def loads(blocks: List[Any]) -> Any:
    """Return the object of blocks. Its arrays stay where the blocks are."""
    sys.modules.setdefault("_dcs_tui_worker", sys.modules[__name__])  # its name on the hosts
    return pickle.loads(blocks[0], buffers=blocks[1:])


def dumps(value: Any, pickler: Any, apart: bool = True) -> List[Any]:
    """Return the blocks of an object: its pickle and, apart from it and not copied, its arrays."""
    buffers = []  # type: List[pickle.PickleBuffer]
    stream = io.BytesIO()
    pickler(stream, protocol=5, buffer_callback=buffers.append if apart else None).dump(value)
    return [stream.getvalue()] + [b.raw() for b in buffers]


def find(module: str, name: str) -> Any:
    """Return a class that came from the client by value: there, the client's own class."""
    for kind, known in _received.items():
        if known == (module, name):
            return kind
    if module not in sys.modules:
        __import__(module)
    found = sys.modules[module]  # type: Any
    for part in name.split("."):
        found = getattr(found, part)
    return found


_received = {}  # type: Dict[Any, Tuple[str, str]] # classes that came by value: module, name


def _note_received() -> None:
    pickler = sys.modules.get("cloudpickle.cloudpickle")
    for kind in list(getattr(pickler, "_DYNAMIC_CLASS_TRACKER_BY_CLASS", ())):
        if "<locals>" not in kind.__qualname__:
            _received.setdefault(kind, (kind.__module__, kind.__qualname__))


class _Pickler(pickle.Pickler):
    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, type) and value in _received:
            return find, _received[value]
        return NotImplemented


def _result(value: Any) -> List[Any]:
    try:
        return dumps(value, _Pickler)
    except Exception:  # a lambda, say
        try:
            cloudpickle = __import__("cloudpickle")  # type: Any
        except ImportError:
            cloudpickle = None
        if cloudpickle is None:
            raise

        def reducer_override(self: Any, value: Any) -> Any:
            if isinstance(value, type) and value in _received:
                return find, _received[value]
            return cloudpickle.Pickler.reducer_override(self, value)

        return dumps(value, type("Pickler", (cloudpickle.Pickler,), {"reducer_override": reducer_override}))


def rebuild(kind: Any, args: Tuple[Any, ...], state: Dict[str, Any]) -> BaseException:
    """Make an exception without its __init__, whose arguments are not known."""
    error = kind.__new__(kind, *args)  # type: BaseException
    error.args = args
    error.__dict__.update(state)
    return error


def _error(e: BaseException) -> List[Any]:
    trace = e.__traceback__.tb_next if e.__traceback__ else None
    lines = traceback.format_exception(type(e), e, trace)
    name, pickled = "%s.%s" % (type(e).__module__, type(e).__qualname__), None
    forms = [lambda: e, lambda: (type(e), e.args, e.__dict__)]  # type: List[Callable[[], Any]]
    for form in forms:
        try:
            blocks = [bytes(b) for b in _result(form())]
            again = loads(list(blocks))
            if isinstance(again, tuple):
                rebuild(*again)
            elif type(again) is not type(e) or again.args != e.args:
                continue
            pickled = blocks
            break
        except Exception:
            continue
    try:
        text = str(e)
    except Exception as broken:
        text = "(its __str__ raised %s)" % type(broken).__name__
    return dumps((name.replace("builtins.", ""), text, "".join(lines), pickled), pickle.Pickler)


def _map(name: str) -> Any:
    import mmap
    with open(name, "rb") as f:
        return mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_COPY)


def _refusal(shipped: Dict[str, Any], by_value: bool) -> Optional[str]:
    here = "%s %d.%d" % ((sys.implementation.name,) + sys.version_info[:2])
    if by_value and here != shipped["python"]:
        return ("this function needs %s, as on your machine, but %s there is %s: name another program "
                "with Executor(python=...)" % (shipped["python"], sys.executable, here))
    return None


def main(argv: List[str]) -> None:
    """Carry out calls: python3 ARCHIVE FUNCTION CALLS [BUDGET [TIMEOUT]], both in seconds.

    Standard output has the results and nothing else. What functions print goes to standard error.
    """
    fd = os.dup(1)
    os.dup2(2, 1)
    began, at = time.monotonic(), 0
    budget = float(argv[2]) if len(argv) > 2 else 0
    timeout = float(argv[3]) if len(argv) > 3 else 0
    with open(argv[0], "rb") as f:
        shipped = pickle.load(f)
    sys.path[1:1] = [p for p in [os.getcwd()] + shipped["path"] if p not in sys.path]
    import linecache
    for file, text in shipped["sources"].items():  # the lines of tracebacks are those of the call
        linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    data, function = argv[1].encode(), None
    if data.startswith(b"@"):
        data = _map(argv[1][1:])
    with os.fdopen(fd, "wb") as out:
        for n, (index, _, kind, blocks) in enumerate(records(data + b"\n" if isinstance(data, bytes) else data)):
            start = time.monotonic()
            if n > 0 and start - began > budget:
                break  # the client sends the rest again
            refusal = _refusal(shipped, shipped["by_value"] or kind == "code")
            if refusal:
                write(out, at, (index, 0, "refused", [refusal.encode()]))
                out.close()
                sys.exit(70)
            if timeout:
                import faulthandler
                faulthandler.dump_traceback_later(timeout, exit=True)
            try:
                if function is None:
                    function = pickle.loads(shipped["function"])
                args, kwargs = loads(blocks)
                _note_received()
                start = time.monotonic()
                answer, result = "value", function(*args, **kwargs)
            except BaseException as e:
                answer, result = "error", _error(e)
            seconds = time.monotonic() - start
            if timeout:
                faulthandler.cancel_dump_traceback_later()
            if answer == "value":
                try:
                    result = _result(result)
                except BaseException as e:
                    answer, result = "error", _error(e)
            at = write(out, at, (index, seconds, answer, result))
            out.flush()
