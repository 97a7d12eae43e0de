"""Messages of the command line in the words of the page, which has no options to type."""

import re

# What a message says, and what a person at the page can do instead.
REPLACED = (
    (
        r" \(--drop-overlap (removes them|leaves these documents out)\)",
        " (a study leaves them out)",
    ),
    (r" \(--test FILE\)", ""),
    (r"say which one it is: --(text|label)-column NAME", r"choose the \1 column below"),
    (r"say which ones they are: --text-column NAME --second-column NAME", "choose them below"),
    (r" \(--(text|label|second)-column\)", ""),
    (
        r"give --minutes (\d+) or more, or fewer --arms",
        r"give it \1 minutes or fewer arms",
    ),
    (r"run the study with --seeds 3 or more", "plan it with 3 seeds or more"),
    (r"give --corpus FILE or choose --arms ([\w,-]+)", r"add text without labels, or choose \1"),
    (r"give unlabelled text with --corpus", "drop text without labels as the second file"),
    (r"--encoding (\S+)", r"save it as UTF-8 (it may be \1)"),
    (r"--labels", "the label budgets"),
    (r"--seeds", "the number of seeds"),
    (r"--minutes", "the minutes"),
    (r"--arms", "the arms"),
)


def in_plain_words(message: str) -> str:
    """The same message for somebody who sees no command line.

    Example
    -------
    >>> in_plain_words("say which one it is: --text-column NAME")
    'choose the text column below'
    """
    for pattern, words in REPLACED:
        message = re.sub(pattern, words, message)
    return message
