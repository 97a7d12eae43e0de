"""The one exception that a user sees: what went wrong, where, how to fix it, and a code."""

import importlib.util


class HeadstartError(Exception):
    """A problem that the user can solve.

    The command line prints it without a traceback and ends with exit code 2. Errors of the system
    and of libraries become one in `headstart.explain_errors`; every other exception is a bug.

    Parameters
    ----------
    what : the cause, in a sentence.
    where : the place: a file, a row, an option.
    fix : what the user can do.
    code : what kind of problem it is. Programs decide by it, never by the wording of `what`;
        with `--json` it is part of the error's document.
    """

    def __init__(
        self, what: str, *, where: object = None, fix: str | None = None, code: str = "invalid"
    ) -> None:
        self.what = what
        self.where = None if where is None else str(where)
        self.fix = fix
        self.code = code
        super().__init__(what, self.where, fix, code)

    def __str__(self) -> str:
        lines = [self.what]
        if self.where is not None:
            lines.append(f"  where: {self.where}")
        if self.fix is not None:
            lines.append(f"  fix:   {self.fix}")
        return "\n".join(lines)

    def document(self) -> dict[str, str | None]:
        """Return the error as plain values, for `--json` and HTTP."""
        return {"what": self.what, "where": self.where, "fix": self.fix, "code": self.code}

    def __reduce__(self) -> tuple[object, ...]:
        # Keyword arguments do not survive the default pickling, and worker processes pickle.
        return (_rebuild, (type(self), self.document()))


def _rebuild(kind: type[HeadstartError], document: dict[str, str]) -> HeadstartError:
    return kind(document.pop("what"), **document)


def need_packages(extra: str, *names: str) -> None:
    """Raise an error if a package of one of Headstart's extras is not installed."""
    missing = [name for name in names if importlib.util.find_spec(name) is None]
    if missing:
        raise HeadstartError(
            f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} not installed",
            fix=f"pip install 'headstart[{extra}]'",
            code="missing-package",
        )
