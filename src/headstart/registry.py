"""Things that are found by name: built in, from other packages, or registered at run time.

A package adds its own through an entry point, without being imported until it is needed:

    [project.entry-points."headstart.readers"]
    mine = "my_package.readers:READER"
"""

from collections.abc import Iterator, Mapping
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, Generic, TypeVar

from headstart.errors import HeadstartError

Entry = TypeVar("Entry")


class Registry(Generic[Entry]):
    """Entries by name, in the order: built in, registered, entry points of other packages.

    Parameters
    ----------
    kind : str
        What an entry is, for messages.
    group : str
        The group of entry points in which other packages announce theirs.
    base : type
        Every entry must be an instance of it; with `of_classes`, a subclass.
    built_in : mapping
        Our own entries by name, or where they are (`module:attribute`): those are imported when
        the registry is first used.
    of_classes : bool
        Entries are classes, because an instance belongs to one training.
    """

    def __init__(
        self,
        kind: str,
        *,
        group: str,
        base: type[Any],
        built_in: Mapping[str, Entry | str],
        of_classes: bool = False,
    ) -> None:
        self.kind = kind
        self.group = group
        self._base = base
        self._of_classes = of_classes
        self._built_in = built_in
        self._registered: dict[str, Entry] = {}
        self._found: dict[str, Entry] | None = None

    def register(self, name: str, entry: Entry) -> None:
        """Add an entry for this process. A name that is taken is an error."""
        if name in self.entries():
            raise HeadstartError(
                f"the {self.kind} '{name}' exists already", fix="choose another name"
            )
        self._registered[name] = self._checked(name, entry)

    def add(self, entry: Entry) -> Entry:
        """Register an entry under its own `name`, and return it."""
        name = getattr(entry, "name", None)
        if not isinstance(name, str):
            raise HeadstartError(
                f"{entry!r} has no `name`, which every {self.kind} has", fix=self._fix
            )
        self.register(name, entry)
        return entry

    def unregister(self, name: str) -> None:
        """Remove an entry that was added with `register`."""
        del self._registered[name]

    def entries(self) -> dict[str, Entry]:
        """All entries by name."""
        if self._found is None:
            self._found = self._find()
        built_in = {name: self._found[name] for name in self._built_in}
        return built_in | self._registered | self._found

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries().values())

    def get(self, name: str) -> Entry | None:
        """The entry of that name, if there is one."""
        return self.entries().get(name)

    def _find(self) -> dict[str, Entry]:
        found: dict[str, Entry] = {}
        for name, given in self._built_in.items():
            if isinstance(given, str):
                module, _, attribute = given.partition(":")
                given = getattr(import_module(module), attribute)
            found[name] = self._checked(name, given)
        for point in entry_points(group=self.group):
            try:
                entry = point.load()
            except Exception as error:  # another package's module may raise anything
                raise HeadstartError(
                    f"the {self.kind} '{point.name}' of another package cannot be loaded: {error}",
                    where=point.value,
                    fix="update or uninstall the package that brings it",
                ) from error
            found.setdefault(point.name, self._checked(point.name, entry))
        return found

    def _checked(self, name: str, entry: Any) -> Entry:
        if self._of_classes:
            fits = isinstance(entry, type) and issubclass(entry, self._base)
        else:
            fits = isinstance(entry, self._base)
        if not fits:
            raise HeadstartError(
                f"the {self.kind} '{name}' is not a {self._base.__name__} but a "
                f"{type(entry).__name__}",
                fix=self._fix,
            )
        return entry

    @property
    def _fix(self) -> str:
        what = "a subclass" if self._of_classes else "an instance"
        return f"give {what} of {self._base.__module__}.{self._base.__name__}"
