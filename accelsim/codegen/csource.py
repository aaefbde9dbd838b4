"""The C source of a region's function in an exported library.

What comes in: a symbol and a payload. What goes out: C text whose function hands the payload and
its tensors to the launch function of the process. It must not know what a payload means.
"""

from __future__ import annotations

from string import Template

LAUNCH = "accelsim.launch"
"""The globally registered function that runs a payload on tensors."""

_CHUNK_BYTES = 64

_SOURCE = Template("""\
#include <string.h>
#include <tvm/ffi/c_api.h>

static const char kPayload[] =
$literal;

#ifdef __cplusplus
extern "C"
#endif
TVM_FFI_DLL_EXPORT int __tvm_ffi_$symbol(void* self, const TVMFFIAny* args, int32_t num_args,
                                         TVMFFIAny* result) {
  enum { kMaxTensors = 256 };
  TVMFFIAny forwarded[kMaxTensors + 1];
  TVMFFIByteArray name = {"$launch", sizeof("$launch") - 1};
  TVMFFIByteArray payload = {kPayload, $length};
  TVMFFIObjectHandle launch = NULL;
  int code;
  (void)self;
  if (num_args > kMaxTensors) {
    TVMFFIErrorSetRaisedFromCStr("RuntimeError", "accelsim: $symbol has too many tensors");
    return -1;
  }
  if (TVMFFIFunctionGetGlobal(&name, &launch) != 0 || launch == NULL) {
    TVMFFIErrorSetRaisedFromCStr(
        "RuntimeError",
        "this library runs $symbol on an accelsim backend, and none is set in this process: "
        "import accelsim.codegen and call set_backend before running it");
    return -1;
  }
  memset(forwarded, 0, sizeof(forwarded));
  forwarded[0].type_index = kTVMFFIByteArrayPtr;
  forwarded[0].v_ptr = &payload;
  memcpy(forwarded + 1, args, sizeof(TVMFFIAny) * (size_t)num_args);
  code = TVMFFIFunctionCall(launch, forwarded, num_args + 1, result);
  TVMFFIObjectDecRef(launch);
  return code;
}
""")


def region_source(symbol: str, payload: bytes) -> str:
    """C source that defines `__tvm_ffi_<symbol>`.

    The payload is a string literal: compilers take it many times faster than an array.
    """
    return _SOURCE.substitute(
        symbol=symbol, literal=_string_literal(payload), length=len(payload), launch=LAUNCH
    )


def _string_literal(data: bytes) -> str:
    """Adjacent C string literals. Escapes have three octal digits, so none runs into the next."""
    escaped = [f"\\{value:03o}" for value in range(256)]
    for value in b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 ,.:_-/[]{}":
        escaped[value] = chr(value)
    lines = (
        "".join([escaped[value] for value in data[start : start + _CHUNK_BYTES]])
        for start in range(0, len(data), _CHUNK_BYTES)
    )
    return "\n".join(f'  "{line}"' for line in lines) or '  ""'
