from torch import Tensor

from collections.abc import Sequence
from typing import Literal

from . import Compute, Context, PlanOptions

__all__ = ["attention", "conv2d", "linear"]

def linear(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, *, context: Context | None = None, compute: Compute | str = "exact",
    label: str | None = None, options: PlanOptions | None = None,
) -> Tensor: ...
def attention(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, dropout_p: float = 0.0, is_causal: bool = False,
    scale: float | None = None, enable_gqa: bool = False, *, context: Context | None = None, compute: Compute | str = "exact",
    label: str | None = None, workspace: int = 0,
) -> Tensor: ...
def conv2d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] | Literal["valid", "same"] = 0, dilation: int | Sequence[int] = 1, groups: int = 1,
    *, context: Context | None = None, compute: Compute | str = "exact", label: str | None = None, workspace: int = 0,
    options: PlanOptions | None = None,
) -> Tensor: ...
