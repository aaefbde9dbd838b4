"""Convolutions with cheaper ones in their place.

What comes in: `nn.Conv2d` modules. What goes out: stacks of 3×3 kernels, or depthwise separable
convolutions that start as near to the original as such can be.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import fx, nn

from accelsim.advise.rules import Rule, Site, module_of

_FEW_CHANNELS = 8  # a separable convolution of fewer saves nothing


def _convolutions(graph: fx.GraphModule, names: Mapping[fx.Node, str]) -> list[Site]:
    sites = []
    for node in graph.graph.nodes:
        module = module_of(graph, node)
        if isinstance(module, nn.Conv2d) and isinstance(node.args[0], fx.Node):
            sites.append(Site(names.get(node, node.name), (node,), module))
    return sites


def _large(graph: fx.GraphModule, names: Mapping[fx.Node, str]) -> list[Site]:
    """Square odd kernels of 5 and more that keep the size of the map, without dilation."""
    return [site for site in _convolutions(graph, names) if _is_large(site.module)]


def _is_large(module: nn.Module | None) -> bool:
    assert isinstance(module, nn.Conv2d)
    high, wide = module.kernel_size
    half = (high // 2, wide // 2)
    kept = module.padding == half and module.dilation == (1, 1) and module.groups == 1
    return high == wide and high >= 5 and high % 2 == 1 and kept


def _stack(site: Site) -> nn.Module:
    """3×3 kernels with the same reach; the first has the stride, ReLU lies in between."""
    conv = site.module
    assert isinstance(conv, nn.Conv2d)
    count = (conv.kernel_size[0] - 1) // 2
    layers: list[nn.Module] = []
    channels = conv.in_channels
    for number in range(count):
        last = number == count - 1
        stride = conv.stride if number == 0 else (1, 1)
        bias = conv.bias is not None or not last
        made = nn.Conv2d(channels, conv.out_channels, 3, stride, 1, bias=bias)  # type: ignore[arg-type]
        if last and conv.bias is not None:
            made.bias = nn.Parameter(conv.bias.detach().clone())
        layers += [made] if last else [made, nn.BatchNorm2d(conv.out_channels), nn.ReLU()]
        channels = conv.out_channels
    return nn.Sequential(*layers)


def _standard(graph: fx.GraphModule, names: Mapping[fx.Node, str]) -> list[Site]:
    """Ungrouped kernels above 1×1 with enough channels on both sides."""
    found = []
    for site in _convolutions(graph, names):
        conv = site.module
        assert isinstance(conv, nn.Conv2d)
        wide = min(conv.in_channels, conv.out_channels) >= _FEW_CHANNELS
        kernel = conv.kernel_size[0] * conv.kernel_size[1]
        if conv.groups == 1 and kernel > 1 and wide and not isinstance(conv.padding, str):
            found.append(site)
    return found


def _separate(site: Site) -> nn.Module:
    """A depthwise and a pointwise convolution: for each input channel the nearest of rank 1.

    Weights of one input channel are a matrix (outputs, taps), whose best approximation of rank 1 is
    given by its largest singular value (Eckart and Young 1936).
    """
    conv = site.module
    assert isinstance(conv, nn.Conv2d)
    depthwise = nn.Conv2d(
        conv.in_channels,
        conv.in_channels,
        conv.kernel_size,  # type: ignore[arg-type]
        conv.stride,  # type: ignore[arg-type]
        conv.padding,  # type: ignore[arg-type]
        conv.dilation,  # type: ignore[arg-type]
        conv.in_channels,
        bias=False,
    )
    pointwise = nn.Conv2d(conv.in_channels, conv.out_channels, 1, bias=conv.bias is not None)
    matrices = conv.weight.detach().flatten(2).transpose(0, 1).double()  # (in, out, taps)
    u, s, v = torch.linalg.svd(matrices, full_matrices=False)
    root = s[:, 0].sqrt()
    taps = (root[:, None] * v[:, 0]).reshape(conv.in_channels, 1, *conv.kernel_size)
    depthwise.weight = nn.Parameter(taps.float())
    mixing = (root[:, None] * u[:, :, 0]).T.reshape(conv.out_channels, conv.in_channels, 1, 1)
    pointwise.weight = nn.Parameter(mixing.float().contiguous())
    if conv.bias is not None:
        pointwise.bias = nn.Parameter(conv.bias.detach().clone())
    return nn.Sequential(depthwise, pointwise)


RULES = (
    Rule(
        "stacked-kernels",
        "a kernel of 5×5 and more → a stack of 3×3 kernels",
        "the same reach with fewer products; starts untrained, so it needs training",
        False,
        _large,
        _stack,
    ),
    Rule(
        "separable",
        "a standard convolution → depthwise and pointwise",
        "far fewer products; starts as near to the original as such can be, and needs training",
        False,
        _standard,
        _separate,
    ),
)
