"""Quantized networks of every origin as one QDQ module, from which compiler and reference start.

What comes in: a `SourceModel`, float or quantized. What goes out: a `QuantizedModel`. It must not
know the hardware, the legalized form or how layers are partitioned.

Quantized ONNX and TensorFlow Lite files are written as QDQ modules by `onnx` and `tflite`, with the
integers that are in the file. All others are modules and programs of PyTorch.

A module of PyTorch may be float, or quantized in any of PyTorch's ways: prepared or converted, by
FX, in eager mode or by PT2E (`docs/pytorch.md`). `int8_modules` traces converted ones and packs
them for qnnpack, `int8_reference` writes the QDQ form of their values, `prepared` and `pt2e`
convert what is not converted yet, `split_layers` gives moves and pools layers of their own. All of
them end in one `QuantizedModel`; `excluded` says which layers were left out of quantization.

The QDQ module
==============

`QuantizedModel.qdq` has one Relax function, `main`, with one dataflow block. Every binding is a
call (or a tuple or tuple element), layout NCHW, weights OIHW. No parameter but the model's inputs:
weights, biases, scales and zero points are constants.

Quantize::

    q = R.quantize(x, R.const(scale, "float32"), R.const(zero_point, "int32"),
                   axis=0, out_dtype="uint8" | "int8")
    q = R.clip(q, quant_min, quant_max)   # only where the limits are narrower than out_dtype

Activations are per tensor: scale and zero point are 0-dimensional constants. FX with qnnpack gives
uint8; an imported `.pt2` may give int8. Zero points are in the domain of `out_dtype`. A clip, where
there is one, is on the integer tensor and the only consumer of its quantize. `relax.quantize`
divides by the scale, then rounds half to even; PyTorch multiplies by float32(1/scale). They differ
only where a float input lies on a tie, so only the boundary quantize of a model input may show it.

Dequantize::

    x = R.dequantize(q, R.const(scale, "float32"), R.const(zero_point, "int32"), axis=0)

Each consumer has a dequantize of its own, so no dequantize has two uses. Its result goes into
exactly one float operator, or is returned.

Inputs and outputs have the model's own dtypes. An int8 or uint8 input goes into dequantizes of one
scale and zero point, and is a quantized tensor of the input's name. An int32 or int64 input (token
numbers, a mask) goes into float code, such as a `R.take` from a table, which the host runs. Float
code may read inputs and quantized tensors together. An output may be a quantized tensor itself.
A network that came from TensorFlow Lite has its layout: `data_layout="NHWC"`, kernels still OIHW.

Weights are constants of dtype int8 (OIHW, or (out, in) of a linear layer) behind a dequantize of
the same form; per-channel weights have scale and zero point of shape (out_channels,) and axis=0.
Values are the file's (uint8 ones as int8, an exact change of zero point), or what PyTorch's own
quantize gives.

Float operators between dequantize and quantize::

    convolution     R.nn.conv2d(dq, dq_weight, strides, padding (top, left, bottom, right),
                    dilation, groups, data_layout="NCHW", kernel_layout="OIHW"), then, where there
                    is a bias, R.add(conv, R.const(bias of shape (1, O, 1, 1), "float32"))
    linear          R.matmul(dq, R.permute_dims(dq_weight)), then, where there is a bias,
                    R.add(matmul, R.const(bias of shape (O,), "float32"))
    ReLU            R.nn.relu(x)
    ReLU6, clamp    R.clip(x, minimum, maximum) with float limits (an open end is ±inf)
    residual add    R.add(dq_a, dq_b), two dequantized tensors
    max pool        R.nn.max_pool2d
    average pool    R.nn.avg_pool2d, R.nn.adaptive_avg_pool2d (output size (1, 1) when global), or
                    R.mean(axis=[2, 3]) with keepdims either way
    flatten, view   R.reshape(x, shape)

Other operators appear as TVM's importer emits them, in TensorFlow Lite's networks with layout NHWC.
The bias is float, as in the exported graph; of an ONNX or TensorFlow Lite file it is a dequantized
int32 constant, where the file has one.
For the qnnpack golden the integer bias is rint(bias / (input_scale · weight_scale)), which is not
applied here. A convolution or linear layer without bias has no add.

PyTorch puts quantize and dequantize around ReLU6, clamp, max pool, average pool, flatten and
reshape as well, with the qparams of their input, and each is a layer here. So the clamp of conv →
quantize → dequantize → clip → quantize has one scale and zero point on both sides. Batch norm and
ReLU are fused; a ReLU that follows nothing to fuse with is a layer. Dropout and identity are gone.
A module that is called twice is two layers with equal weights. In an imported `.pt2` a quantize may
directly follow a dequantize: a requantization, a layer named "<producer>/requantize".

Layers and spans
================

A layer is everything between dequantize and quantize. Every call in it (the dequantize of its
inputs and weights, its operators, its quantize, its clip) has a span whose source name is the
layer's name.

* The name is the user's name of the layer's last operator that is no activation: conv + bn + relu
  is called by the convolution ("block2.conv1"), add + relu by the add ("block2/add").
* A module's name is its path; a function's is "path of the calling module/function". A second use
  gets "_1", a third "_2".
* `layer_members(module)` lists every user operator of a layer, the folded batch norm included.
* The quantize of a model input carries the input's name, and is no layer.
* A dequantize that is returned is called "<producer>/dequantize", and is no layer. Float operators
  behind the last dequantize form a layer without a quantize, named by the same rule.

`span_name(call)` reads the name. The module attribute "accelsim.members" holds the members.

PyTorch's golden
================

`torch_layers(model)` gives, for each layer (and each model input), the FX node of
`QuantizedModel.torch_int8` whose quint8 value is that layer's output. `torch_layer_outputs` runs
the network and returns those values. Run the graph or its modules under `qnnpack_engine()` only. A
layer that PyTorch's two conversions quantize differently (addition of a Python number) is missing
there, and so is every layer of an imported QDQ program. A clamp gets its input through
`contiguous()`: PyTorch's qnnpack clamp permutes channels-last values, which is what its
convolutions return. Feed it contiguous tensors in isolated runs too.
"""

from __future__ import annotations

from accelsim.quantize.golden import qnnpack_engine, torch_layer_outputs, torch_layers
from accelsim.quantize.pipeline import quantize
from accelsim.quantize.spans import layer_members, span_name

__all__ = [
    "layer_members",
    "qnnpack_engine",
    "quantize",
    "span_name",
    "torch_layer_outputs",
    "torch_layers",
]
