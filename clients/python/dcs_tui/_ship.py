"""What a call ships to the hosts: its code, once for each version of it, and its arguments."""
import contextlib
import functools
import hashlib
import importlib
import importlib.util
import io
import linecache
import marshal
import os
import pickle
import sys
import sysconfig
import threading
import types
import zipfile
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

from . import _worker

try:
    cloudpickle: Any = importlib.import_module("cloudpickle")
except ImportError:  # then only functions of installed modules can be called
    cloudpickle = None

PYTHON = "%s %d.%d" % ((sys.implementation.name,) + sys.version_info[:2])
_START = """import sys
if sys.version_info < (3, 8):
    import base64, zlib
    text = ("functions need Python 3.8 or later, but %s there is Python %d.%d: name another program with "
            "Executor(python=...)" % ((sys.executable,) + sys.version_info[:2])).encode()
    print("dcs1 0 0 refused %d %s" % (len(text), base64.b64encode(zlib.compress(text)).decode()))
    sys.exit(70)
import _dcs_tui_worker
_dcs_tui_worker.main(sys.argv[1:])
"""
_OWN = ("__main__", "__mp_main__", "dcs_tui", "_dcs_tui_worker", "cloudpickle")  # these do not travel as modules
_lock = threading.RLock()  # of cloudpickle's list of modules


def _is_installed(path: str) -> bool:
    folders = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    parts = path.split(os.sep)
    return ("site-packages" in parts or "dist-packages" in parts or path.endswith(".zip")
            or any(path == f or path.startswith(os.path.join(f, "lib-dynload")) for f in folders if f))


def project_path() -> List[str]:
    """Return the directories of sys.path that hold neither Python nor installed packages."""
    return list(_project_path(os.getcwd(), tuple(sys.path)))


@functools.lru_cache(maxsize=1)
def _project_path(cwd: str, paths: Tuple[str, ...]) -> Tuple[str, ...]:
    whole = dict.fromkeys(os.path.join(cwd, p) for p in paths if os.path.isdir(os.path.join(cwd, p)))
    return tuple(os.path.normpath(p) for p in whole if not _is_installed(os.path.normpath(p)))


def project_modules() -> List[types.ModuleType]:
    """Return the modules that were imported from the project: they travel by value."""
    return _modules_below(len(sys.modules), _project_path(os.getcwd(), tuple(sys.path)))


@functools.lru_cache(maxsize=1)
def _modules_below(_number: int, paths: Tuple[str, ...]) -> List[types.ModuleType]:
    stdlib, found = os.path.join(sysconfig.get_path("stdlib"), ""), []
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if not isinstance(file, str) or name.split(".")[0] in _OWN:
            continue
        file = os.path.abspath(file)
        if any(file.startswith(os.path.join(p, "")) for p in paths) and not file.startswith(stdlib) and \
                not _is_installed(file):
            found.append(module)
    return found


def _cloudpickle() -> Any:
    if cloudpickle is None:
        return None
    version = getattr(cloudpickle, "__version__", "0")
    if not hasattr(cloudpickle, "register_pickle_by_value"):
        raise RuntimeError("cloudpickle 2.0 or later is needed, and %s is installed: pip install -U cloudpickle"
                           % version)
    return cloudpickle


@functools.lru_cache(maxsize=1)
def _pickler(module: Any) -> Any:
    """Return cloudpickle's pickler, which also keeps the file names of code for tracebacks."""
    def reducer_override(self: Any, value: Any) -> Any:
        if type(value) is types.CodeType:
            make, args = self.dispatch_table[types.CodeType](value)
            return make, tuple(value.co_filename if a == "<dynamic-code>" else a for a in args)
        return module.Pickler.reducer_override(self, value)
    return type("Pickler", (module.Pickler,), {"reducer_override": reducer_override})


@contextlib.contextmanager
def by_value() -> Iterator[Any]:
    """Lend a pickler that pickles the modules of the project by value."""
    module = _cloudpickle()
    if module is None:
        yield pickle.Pickler
        return
    with _lock:
        known = module.list_registry_pickle_by_value()
        added = [m for m in project_modules() if m.__name__ not in known and sys.modules.get(m.__name__) is m]
        for m in added:
            module.register_pickle_by_value(m)
        try:
            yield _pickler(module)
        finally:
            for m in added:
                module.unregister_pickle_by_value(m)


def _pickled(value: Any, what: str, apart: bool = True) -> Tuple[List[Any], bool]:
    """Return the blocks of a value, and whether they hold code of this version of Python."""
    try:
        with by_value() as pickler:
            blocks = _worker.dumps(value, pickler, apart)
    except Exception as e:
        advice = "" if cloudpickle else "; cloudpickle can send more: pip install cloudpickle"
        raise TypeError("%s cannot be sent to a host: %s: %s%s" % (what, type(e).__name__, e, advice)) from e
    if cloudpickle is None and b"__main__" in blocks[0]:
        raise TypeError("%s is part of the main program, which needs cloudpickle: pip install cloudpickle" % what)
    return blocks, cloudpickle is not None and b"cloudpickle" in blocks[0]


def _sources(data: bytes) -> Dict[str, str]:
    """Return the texts of the files whose names are in the pickle of a function."""
    names = set(linecache.cache)
    for module in project_modules() + [sys.modules["__main__"]]:
        file = getattr(module, "__file__", None)
        if isinstance(file, str):
            names.update((file, os.path.relpath(file)))
    names.update(sys.argv[:1])
    found = {}
    for name in names:
        if name and name.encode("utf-8", "replace") in data:
            lines = linecache.getlines(name)
            if lines:
                found[name] = "".join(lines)
    return found


def _archive() -> bytes:
    """Return a program for the hosts: the worker, this package, and cloudpickle."""
    files: Dict[str, str] = {"__main__.py": _START}
    packages = [(os.path.dirname(__file__), "dcs_tui")]
    if cloudpickle is not None:
        packages.append((os.path.dirname(cloudpickle.__file__), "cloudpickle"))
    for top, package in packages:
        for folder, _, names in sorted(os.walk(top)):
            for file in sorted(n for n in names if n.endswith(".py")):
                with open(os.path.join(folder, file), encoding="utf-8") as f:
                    files[os.path.join(package, os.path.relpath(folder, top), file).replace("/./", "/")] = f.read()
    files["_dcs_tui_worker.py"] = files["dcs_tui/_worker.py"]
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        def add(name: str, data: bytes) -> None:
            archive.writestr(zipfile.ZipInfo(name, (2026, 1, 1, 0, 0, 0)), data, zipfile.ZIP_DEFLATED)
        for name, text in files.items():
            add(name, text.encode())
            if not name.startswith("dcs_tui/"):  # a host with the same Python need not compile it
                code = marshal.dumps(compile(text, name, "exec", dont_inherit=True))
                add(name + "c", importlib.util.MAGIC_NUMBER + b"\1\0\0\0" + bytes(8) + code)
    return out.getvalue()


_archive_data: Optional[bytes] = None


class Shipping:
    """The files that the calls of an executor need. folder is where they are."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._lock = threading.RLock()
        self._written: Dict[str, str] = {}  # hash of a content: its file

    def store(self, name: str, data: bytes) -> str:
        """Write a file that does not change any more, and return its path."""
        path = os.path.join(self.folder, name)
        with self._lock:
            if name not in self._written:
                self.write(path, lambda f: f.write(data))
                self._written[name] = path
        return path

    def write(self, path: str, fill: Callable[[Any], Any]) -> None:
        """Write a file. A host that reads it finds all of it."""
        os.makedirs(self.folder, mode=0o700, exist_ok=True)
        part = "%s.%d" % (path, threading.get_ident())
        with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as f:
            fill(f)
        os.replace(part, path)

    def archive(self) -> str:
        """Return the path of the program for the hosts."""
        global _archive_data
        if _archive_data is None:
            _archive_data = _archive()
        return self.store("worker-%s.zip" % hashlib.sha256(_archive_data).hexdigest()[:16], _archive_data)

    def function(self, function: Callable[..., Any]) -> str:
        """Return the path of a function's code. The same code has the same file."""
        what = "the function %s" % getattr(function, "__qualname__", repr(function))
        (data,), by_value = _pickled(function, what, apart=False)
        name = "function-" + hashlib.sha256(data).hexdigest()[:16]
        if name in self._written:
            return self._written[name]
        return self.store(name, pickle.dumps({
            "python": PYTHON, "by_value": by_value, "function": data, "path": project_path(),
            "sources": _sources(data) if by_value else {}}, protocol=4))


def call(index: int, args: Tuple[Any, ...], kwargs: Dict[str, Any], apart: bool = True) -> _worker.Record:
    """Return the record of a call. apart: it has the memory of arrays, not a copy."""
    blocks, by_value = _pickled((args, kwargs), "an argument", apart)
    return index, 0, "code" if by_value else "call", blocks
