"""Lets a program for GPUs read its own options where neither a GPU nor the libraries for one are.

Whatever it imports and is not installed has a stand-in: a module whose names are classes that can be called, subclassed, indexed and
compared, and do nothing. What a program decides by a library's answer is for the caller to set."""

import abc
import importlib.abc
import importlib.machinery
import importlib.metadata
import sys
import types

VERSION = "2.15.0"  # of whatever is not here; programs ask PyTorch for its own
MISSING, REPLACED = set(), set()


class StandIn(abc.ABCMeta):
    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        made = named(f"{cls.__qualname__}.{name}")
        setattr(cls, name, made)
        return made

    def __call__(cls, *words, **more):
        if "__stand_in__" not in cls.__dict__:  # the program's own class, below one of ours
            return super().__call__(*words, **more)
        if len(words) == 1 and isinstance(words[0], type) and type(words[0]) is not StandIn:  # as a decorator
            return words[0]
        return cls

    def __instancecheck__(cls, each):
        return type(each) is StandIn if "__stand_in__" in cls.__dict__ else super().__instancecheck__(each)

    def __iter__(cls):
        return iter(())

    def __enter__(cls):
        return cls

    def __exit__(cls, *_):
        return None

    def __len__(cls):
        return 0

    def __neg__(cls):
        return cls

    def __lt__(cls, _):
        return False

    def __add__(cls, _):
        return cls

    __le__ = __gt__ = __ge__ = __lt__
    __getitem__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __floordiv__ = __mod__ = __pow__ = __and__ = __add__


def named(name):
    return StandIn(name.rpartition(".")[2], (), {
        "__stand_in__": True, "__qualname__": name, "__module__": name.partition(".")[0],
        "__init__": lambda self, *_, **more: self.__dict__.update(more),
        "__init_subclass__": classmethod(lambda cls, **_: None),
        "__get_pydantic_core_schema__": classmethod(lambda *_: {"type": "any"})})


class Module(types.ModuleType):
    __path__ = []
    __version__ = VERSION

    def __getattr__(self, name):
        if name.startswith("__") or f"{self.__name__}.{name}" in MISSING:
            raise AttributeError(name)
        made = named(f"{self.__name__}.{name}")
        setattr(self, name, made)
        return made


class Replaces(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Asked first: parts of the program itself that only a GPU needs."""

    def find_spec(self, name, path=None, target=None):
        whole = {name.rsplit(".", dots)[0] for dots in range(name.count(".") + 1)}
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if whole & REPLACED else None

    def create_module(self, spec):
        return Module(spec.name)

    def exec_module(self, module):
        pass


class FindsTheRest(Replaces):
    """Asked last: it has what nobody else has, but no part of what is really here."""

    def find_spec(self, name, path=None, target=None):
        first = name.partition(".")[0]
        if first in MISSING or first in sys.stdlib_module_names or "." in name and not isinstance(sys.modules.get(first), Module):
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)


def stand_ins(missing=(), replaced=(), versions=None):
    MISSING.update(missing)
    REPLACED.update(replaced)
    sys.meta_path.insert(0, Replaces())
    sys.meta_path.append(FindsTheRest())
    installed = importlib.metadata.version

    def version(name):
        try:
            return (versions or {}).get(name) or installed(name)
        except importlib.metadata.PackageNotFoundError:
            return VERSION

    importlib.metadata.version = version
