"""A trap of quantization-aware training: an optimizer that trains another module.

What comes in: an optimizer and the module that `prepare_qat_fx` returned. What goes out: nothing,
or one sentence. It must not know networks.
"""

from __future__ import annotations

import torch
from torch import nn

from accelsim.errors import ModelError


def check_optimizer(optimizer: torch.optim.Optimizer, module: nn.Module) -> None:
    """Check that an optimizer steps every parameter of a prepared module.

    Preparing fuses modules and makes new parameters, and an optimizer that was made before goes on
    stepping the old ones: the loss then falls little or not at all, without a word.

    Raises ModelError naming the first parameter that it does not hold.
    """
    held = {id(one) for group in optimizer.param_groups for one in group["params"]}
    wanted = [(name, one) for name, one in module.named_parameters() if one.requires_grad]
    missing = [name for name, one in wanted if id(one) not in held]
    if missing:
        raise ModelError(
            f"the optimizer does not hold {len(missing)} of {len(wanted)} parameters of the "
            f"prepared model, the first is '{missing[0]}': make the optimizer after "
            "prepare_qat_fx, from the module that it returns"
        )
    if not wanted:
        raise ModelError("the prepared model has no parameter that can be trained")
