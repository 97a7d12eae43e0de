"""The one exception that a user sees: what went wrong, where, and how to fix it."""


class HeadstartError(Exception):
    """A problem that the user can solve.

    The command line prints it without a traceback and ends with exit code 2. Errors of the system
    and of libraries become one in `headstart.explain_errors`; every other exception is a bug.
    """

    def __init__(
        self,
        what: str,
        *,
        where: object = None,
        fix: str | None = None,
        code: str = "invalid",
    ) -> None:
        self.what = what
        self.where = None if where is None else str(where)
        self.fix = fix
        self.code = code
        super().__init__(what, self.where, fix)

    def __str__(self) -> str:
        lines = [self.what]
        if self.where is not None:
            lines.append(f"  where: {self.where}")
        if self.fix is not None:
            lines.append(f"  fix:   {self.fix}")
        return "\n".join(lines)

    def __reduce__(self) -> tuple[object, ...]:
        # Keyword arguments do not survive the default pickling, and worker processes pickle.
        return (_rebuild, (type(self), self.what, self.where, self.fix, self.code))


def _rebuild(
    kind: type[HeadstartError], what: str, where: str | None, fix: str | None, code: str
) -> HeadstartError:
    return kind(what, where=where, fix=fix, code=code)
