"""Configs (frozen dataclasses, nested) as JSON and back, without losing or inventing anything.

Every dataclass is written as an object with its `kind`, so that a union of configs can be read back:

>>> from dataclasses import dataclass
>>> @dataclass(frozen=True)
... class WalkConfig:
...     steps: int = 3
>>> to_json(WalkConfig())
{'kind': 'walk', 'steps': 3}
>>> from_json(WalkConfig, {'kind': 'walk', 'steps': 4})
WalkConfig(steps=4)
"""

import types
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from wanderlearn.errors import WanderError

__all__ = ["differences", "from_json", "kind_of", "to_json"]

T = TypeVar("T")


def kind_of(config: type[Any]) -> str:
    """The word for a config class: `CPMConfig` is "cpm"."""
    return config.__name__.removesuffix("Config").lower()


def to_json(config: Any) -> Any:
    """A config as what JSON can hold."""
    if is_dataclass(config) and not isinstance(config, type):
        inner = {field.name: to_json(getattr(config, field.name)) for field in fields(config)}
        return {"kind": kind_of(type(config))} | inner
    if isinstance(config, tuple | list):
        return [to_json(item) for item in config]
    return config


def from_json(config: type[T], value: Any, where: str = "the config") -> T:
    """A config from JSON; an unknown kind, an unknown field or a value of the wrong type is an error.

    Fields that are missing take their defaults, so that files written before a field existed can be read.
    Where the default is not how it was then, the field says so: `field(default=512, metadata={"before": 0})`.
    """
    read: T = _read(config, value, where)
    return read


def differences(one: Any, other: Any, where: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Where two JSON values differ: dotted name, value in the one, value in the other."""
    if isinstance(one, dict) and isinstance(other, dict):
        for name in one | other:
            yield from differences(one.get(name), other.get(name), f"{where}.{name}" if where else name)
    elif one != other:
        yield where, one, other


def _read(wanted: Any, value: Any, where: str) -> Any:
    if is_dataclass(wanted):
        return _read_dataclass(wanted, value, where)
    origin = get_origin(wanted)
    if origin in (Union, types.UnionType):
        return _read_union(get_args(wanted), value, where)
    if origin is Literal:
        if value in get_args(wanted):
            return value
        raise WanderError(
            f"{where} cannot be {value!r}; choose one of {', '.join(map(str, get_args(wanted)))}."
        )
    if origin is tuple and isinstance(value, list):
        return tuple(_read(get_args(wanted)[0], item, where) for item in value)
    if wanted is float and type(value) is int:
        return float(value)
    if wanted is type(None) and value is None:
        return None
    if isinstance(wanted, type) and type(value) is wanted:
        return value
    raise WanderError(
        f"{where} cannot be {value!r}: it should be of type {getattr(wanted, '__name__', wanted)}."
    )


def _read_union(choices: tuple[Any, ...], value: Any, where: str) -> Any:
    if value is None and type(None) in choices:
        return None
    configs = {kind_of(c): c for c in choices if is_dataclass(c) and isinstance(c, type)}
    if isinstance(value, dict) and configs:
        if value.get("kind") not in configs:
            raise WanderError(
                f"{where} is of kind {value.get('kind')!r}, which this version does not know. "
                f"It knows {', '.join(sorted(configs))}."
            )
        return _read_dataclass(configs[value["kind"]], value, where)
    simple = [choice for choice in choices if choice is not type(None) and not is_dataclass(choice)]
    for choice in simple:
        try:
            return _read(choice, value, where)
        except WanderError:
            continue
    raise WanderError(f"{where} cannot be {value!r}.")


def _read_dataclass(wanted: Any, value: Any, where: str) -> Any:
    kind = kind_of(wanted)
    if not isinstance(value, dict) or value.get("kind") != kind:
        found = repr(value.get("kind")) if isinstance(value, dict) else repr(value)
        raise WanderError(f"{where} should be of kind {kind!r}, not {found}.")
    hints = get_type_hints(wanted)
    names = {field.name for field in fields(wanted)}
    unknown = sorted(value.keys() - names - {"kind"})
    if unknown:
        raise WanderError(
            f"{where} has fields that {wanted.__name__} does not know: {', '.join(unknown)}. "
            "Was it written by another version?"
        )
    given = {name: _read(hints[name], value[name], f"{where}.{name}") for name in names & value.keys()}
    missing = (field for field in fields(wanted) if field.name not in value and "before" in field.metadata)
    given |= {field.name: field.metadata["before"] for field in missing}
    try:
        return wanted(**given)
    except TypeError as error:
        raise WanderError(f"{where} is not a whole {wanted.__name__}: {error}.") from error
