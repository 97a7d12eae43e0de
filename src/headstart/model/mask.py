"""The square mask and its relatives: which token may look at which.

A mask here is boolean: `True` means "row may look at column". No row is ever empty, because a
token always sees itself; a row without a single `True` would make softmax return NaN.
"""

import torch
from torch import Tensor


def square_mask(length: int, *, device: torch.device | None = None) -> Tensor:
    """The square mask of the lab: a token sees itself and what came before, never the future.

    For `A B C D` (■ may look, · may not):

                 looks at
                 A B C D
            A    ■ · · ·
            B    ■ ■ · ·
            C    ■ ■ ■ ·
            D    ■ ■ ■ ■

    Without it, the network that must predict `C` after `A B` would simply read it off.
    """
    return torch.ones(length, length, dtype=torch.bool, device=device).tril()  # (T, T)


def segment_mask(segments: Tensor) -> Tensor:
    """Only tokens of the same text see each other.

    `segments` (B, T) numbers the texts packed into a row from 1; 0 is padding. Padding sees
    padding, so that its rows are not empty either; nobody reads what comes out of them.
    """
    return segments.unsqueeze(-1) == segments.unsqueeze(-2)  # (B, T, T)


def local_mask(mask: Tensor | None, tokens: Tensor, window: int) -> Tensor | None:
    """A mask that also hides what stands more than `window` tokens away: (B, 1, T, T).

    Padding far behind a text would see nothing then, so every token sees itself.
    """
    batch, length = tokens.shape
    if length <= window + 1:
        return mask
    place = torch.arange(length, device=tokens.device)
    distance = (place.unsqueeze(0) - place.unsqueeze(1)).abs()  # (T, T)
    near = (distance <= window).expand(batch, 1, length, length)
    return near if mask is None else (near & mask) | (distance == 0)


def layout(segments: Tensor | None, *, causal: bool) -> tuple[Tensor | None, Tensor | None]:
    """The mask (B, 1, T, T) and the positions (B, T) a batch needs; `None` where it needs none.

    A position counts within a token's own text, wherever the row puts that text.

    Where all tokens of a row may look at the same ones, the mask is that one line: (B, 1, 1, T).

    Without a mask, attention looks everywhere, or at the past alone if it is causal, for which
    the fast kernel needs no mask at all. That also serves a causal batch padded on the right:
    no real token can look at the padding behind it.
    """
    if segments is None:
        return None, None
    segments = segments.to(torch.int64)
    one_text_a_row = bool((segments <= 1).all())
    starts_at_zero = bool((segments[:, 1:] <= segments[:, :-1]).all())  # no padding on the left
    if one_text_a_row and starts_at_zero and (causal or bool((segments == 1).all())):
        return None, None
    if one_text_a_row and starts_at_zero and bool((segments[:, 0] == 1).all()):
        return (segments == 1)[:, None, None], None
    mask = segment_mask(segments)
    positions = None if one_text_a_row and starts_at_zero else mask.tril().sum(-1) - 1
    if causal:
        mask = mask & square_mask(segments.size(1), device=segments.device)
    return mask.unsqueeze(1), positions
