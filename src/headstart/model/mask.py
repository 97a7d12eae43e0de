"""Attention masks: which token may attend to which.

Masks are boolean: `True` means that the token of this row may attend to the token of this column.
Every row has at least one `True` (each token sees itself), because softmax over an empty row is
NaN.
"""

import torch
from torch import Tensor


def causal_mask(length: int, *, device: torch.device | None = None) -> Tensor:
    """Return the causal mask (T, T): a token sees itself and earlier tokens.

    The lab calls it the square mask. For `A B C D` (■ visible, · hidden):

                 attends to
                 A B C D
            A    ■ · · ·
            B    ■ ■ · ·
            C    ■ ■ ■ ·
            D    ■ ■ ■ ■

    Without it, a network that predicts `C` after `A B` could copy it from its input.
    """
    return torch.ones(length, length, dtype=torch.bool, device=device).tril()


def attention_layout(
    segments: Tensor | None, *, causal: bool
) -> tuple[Tensor | None, Tensor | None]:
    """Return the attention mask and the positions that a batch needs.

    Segments (B, T) are 1, 2, … for the texts packed into a row; 0 is padding.

    Returns
    -------
    mask : Tensor of shape (B, 1, T, T) or (B, 1, 1, T), or None
        None means no restriction, or the causal mask if `causal`: attention kernels are faster
        without an explicit one. It also serves a causal batch padded on the right, because no
        token sees the padding behind it. The small shape is for batches padded on the right.
    positions : Tensor of shape (B, T), or None
        Numbered within each text; None means 0, 1, 2, … in every row.
    """
    if segments is None:
        return None, None
    segments = segments.to(torch.int64)
    one_text_per_row = bool((segments <= 1).all())
    no_left_padding = bool((segments[:, 1:] <= segments[:, :-1]).all())
    simple = one_text_per_row and no_left_padding
    if simple and (causal or bool((segments == 1).all())):
        return None, None
    if simple and bool((segments[:, 0] == 1).all()):
        return (segments == 1)[:, None, None], None
    # Only tokens of the same text see each other, and padding sees padding.
    mask = segments.unsqueeze(-1) == segments.unsqueeze(-2)
    positions = None if simple else mask.tril().sum(-1) - 1
    if causal:
        mask = mask & causal_mask(segments.size(1), device=segments.device)
    return mask.unsqueeze(1), positions
