"""The sum of all processes' gradients, with only the vocabulary's rows that were touched.

Two messages per step. A short one agrees on what there is: which parameters have a gradient, and
which rows of the embedding and output layer any process has touched (one byte each). Then one flat
buffer with the sums: every dense gradient, the touched rows, and the loss. Its layout is a function
of the step alone, so each sum is rounded in the same order however often the run was interrupted.
On one machine, the buffers are in memory that all processes share.

`DistributedDataParallel` does not fit: docs/architecture.md says why.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from headstart.training.processes.shared_memory import SharedSum

ABSENT, DENSE, ROWS = 0, 1, 2
AllReduce = Callable[[Tensor, bool], None]  # in place; the largest value instead of the sum if true


def is_sharded(tensor: Tensor) -> bool:
    """Whether this process has only its part of it (a DTensor, which takes time to import)."""
    return hasattr(tensor, "to_local")


def replicated(model: nn.Module) -> list[nn.Parameter]:
    """The parameters that are trained and that every process has."""
    return [p for p in model.parameters() if p.requires_grad and not is_sharded(p)]


class GradientExchange:
    """Adds up the gradients of one model over all processes.

    Parameters
    ----------
    model : its `vocabulary_rows` are the parameters whose gradients may be sparse.
    all_reduce : called as `all_reduce(tensor, largest)`.
    shared : adds up the buffers of processes that share their memory; else `all_reduce` does.
    """

    def __init__(
        self, model: nn.Module, all_reduce: AllReduce, shared: SharedSum | None = None
    ) -> None:
        self.all_reduce, self.shared = all_reduce, shared
        self.parameters = replicated(model)
        by_row = {id(parameter) for parameter in getattr(model, "vocabulary_rows", [])}
        self.by_row = [n for n, p in enumerate(self.parameters) if id(p) in by_row]
        self.bytes = 0  # sent by the last exchange, before the ring shares them out
        self._buffer = torch.empty(0)

    def __call__(self, loss: float, *, stop: bool) -> tuple[float, bool]:
        """Replace every gradient by the sum over all processes.

        Returns
        -------
        The sum of the losses, and whether any process wants to stop.
        """
        kinds, touched, stop = self._agree(stop)
        rows = {n: mask.nonzero().squeeze(1) for n, mask in touched.items()}
        sizes = [self._size(n, kind, rows.get(n)) for n, kind in enumerate(kinds)]
        flat = self._flat(sum(sizes) + 1)
        pieces = list(flat[:-1].split(sizes))
        for n, (kind, piece) in enumerate(zip(kinds, pieces, strict=True)):
            self._fill(n, kind, piece, touched.get(n))
        flat[-1] = loss
        self.bytes += flat.numel() * flat.element_size()
        if self.shared is None:
            self.all_reduce(flat, False)
        else:
            flat = self.shared.total(flat.numel())
            pieces = list(flat[:-1].split(sizes))
        for n, (kind, piece) in enumerate(zip(kinds, pieces, strict=True)):
            self._take(n, kind, piece, rows.get(n))
        return float(flat[-1]), stop

    def _agree(self, stop: bool) -> tuple[list[int], dict[int, Tensor], bool]:
        """The kind of each gradient, the touched rows of those by row (V,), and whether to stop."""
        device = self.parameters[0].device
        kinds = [self._kind(parameter) for parameter in self.parameters]
        short = [torch.tensor([int(stop), *kinds], dtype=torch.uint8, device=device)]
        for n in self.by_row:
            mask = torch.zeros(self.parameters[n].size(0), dtype=torch.uint8, device=device)
            gradient = self.parameters[n].grad
            if gradient is not None and gradient.is_sparse:
                gradient = self.parameters[n].grad = gradient.coalesce()
                mask[gradient._indices()[0]] = 1
            short.append(mask)
        message = torch.cat(short)
        self.all_reduce(message, True)
        self.bytes = message.numel()
        asked, *masks = message.split([part.numel() for part in short])
        found = asked.tolist()
        return found[1:], dict(zip(self.by_row, masks, strict=True)), bool(found[0])

    @staticmethod
    def _kind(parameter: nn.Parameter) -> int:
        if parameter.grad is None:
            return ABSENT
        return ROWS if parameter.grad.is_sparse else DENSE

    def _size(self, n: int, kind: int, rows: Tensor | None) -> int:
        parameter = self.parameters[n]
        if kind == ROWS:
            assert rows is not None, "only parameters of the vocabulary have gradients by row"
            return rows.numel() * parameter[0].numel()
        return parameter.numel() if kind == DENSE else 0

    def _flat(self, size: int) -> Tensor:
        """A buffer that is used again and again: fresh memory of this size costs milliseconds.

        Where it is shared, nobody reads the last step's values any more: all have agreed on this
        step's layout.
        """
        if self.shared is not None:
            return self.shared.own(size)
        if self._buffer.numel() < size:
            self._buffer = torch.empty(size + size // 8, device=self.parameters[0].device)
        return self._buffer[:size]

    def _fill(self, n: int, kind: int, piece: Tensor, mask: Tensor | None) -> None:
        gradient = self.parameters[n].grad
        if kind == DENSE and gradient is not None:
            piece.copy_(gradient.flatten())
            return
        piece.zero_()
        if kind == ROWS and gradient is not None and mask is not None:
            places = mask.cumsum(0)[gradient._indices()[0]] - 1
            values = gradient._values()
            piece.view(-1, *values.shape[1:]).index_copy_(0, places, values)

    def _take(self, n: int, kind: int, piece: Tensor, rows: Tensor | None) -> None:
        parameter = self.parameters[n]
        if kind == DENSE:
            parameter.grad = piece.view_as(parameter)  # no copy: the optimizer reads it once
        elif kind == ROWS and rows is not None:
            parameter.grad = torch.sparse_coo_tensor(
                rows.unsqueeze(0),
                piece.view(-1, *parameter.shape[1:]),
                parameter.shape,
                is_coalesced=True,
                check_invariants=False,
            )
