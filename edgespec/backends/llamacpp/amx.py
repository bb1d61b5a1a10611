"""Can this build of the library use the processor's matrix unit?

Some compilers (GCC 12 among them) drop half of the unit's configuration, and the first pass of several rows
then ends the process with an illegal instruction. So one small product is computed in another process first.
"""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path

from edgespec.backends.llamacpp.library import has_amx

_SECONDS = 20

# One 64 x 256 matrix of ones in the unit's layout times two rows of ones: every element is 256.
_PRODUCT = """
import ctypes, sys
from ctypes import c_bool, c_char_p, c_int, c_int64, c_size_t, c_void_p
base, cpu, ggml = (ctypes.CDLL(sys.argv[1] % name, ctypes.RTLD_GLOBAL) for name in ("-base", "-cpu", ""))
class Params(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("memory", c_void_p), ("no_alloc", c_bool)]
def bind(library, name, result, *arguments):
    function = getattr(library, name)
    function.restype, function.argtypes = result, arguments
    return function
init = bind(base, "ggml_init", c_void_p, Params)
matrix = bind(base, "ggml_new_tensor_2d", c_void_p, c_void_p, c_int, c_int64, c_int64)
multiply = bind(base, "ggml_mul_mat", c_void_p, c_void_p, c_void_p, c_void_p)
new_graph = bind(base, "ggml_new_graph", c_void_p, c_void_p)
expand = bind(base, "ggml_build_forward_expand", None, c_void_p, c_void_p)
place = bind(base, "ggml_backend_alloc_ctx_tensors_from_buft", c_void_p, c_void_p, c_void_p)
buffer_name = bind(base, "ggml_backend_buft_name", c_char_p, c_void_p)
write = bind(base, "ggml_backend_tensor_set", None, c_void_p, c_char_p, c_size_t, c_size_t)
read = bind(base, "ggml_backend_tensor_get", None, c_void_p, c_char_p, c_size_t, c_size_t)
compute = bind(base, "ggml_backend_graph_compute", c_int, c_void_p, c_void_p)
address = bind(base, "ggml_backend_reg_get_proc_address", c_void_p, c_void_p, c_char_p)
device_of = bind(base, "ggml_backend_reg_dev_get", c_void_p, c_void_p, c_size_t)
registry = bind(cpu, "ggml_backend_cpu_reg", c_void_p)()
backend = bind(cpu, "ggml_backend_cpu_init", c_void_p)()
plain = bind(base, "ggml_backend_cpu_buffer_type", c_void_p)()
extra = address(registry, b"ggml_backend_dev_get_extra_bufts")
kinds = ctypes.CFUNCTYPE(ctypes.POINTER(c_void_p), c_void_p)(extra)(device_of(registry, 0))
i = 0
while kinds[i]:
    if buffer_name(kinds[i]) == b"AMX":
        break
    i += 1
else:
    sys.exit(0)
Q4_0, F32, K, N = 2, 0, 256, 64
weights = init(Params(1 << 16, None, True))
rest = init(Params(1 << 20, None, True))
w, x = matrix(weights, Q4_0, K, N), matrix(rest, F32, K, 2)
product = multiply(rest, w, x)
graph = new_graph(rest)
expand(graph, product)
place(weights, kinds[i])
place(rest, plain)
block = bytes((0x00, 0x3C)) + bytes([0x99]) * 16
write(w, block * (K * N // 32), 0, 18 * K * N // 32)
write(x, bytes((0, 0, 0x80, 0x3F)) * (2 * K), 0, 8 * K)
out = ctypes.create_string_buffer(8 * N)
status = compute(backend, graph)
read(product, out, 0, 8 * N)
values = (ctypes.c_float * (2 * N)).from_buffer(out)
sys.exit(1 if status or any(abs(value - K) > 2 for value in values) else 0)
"""


@cache
def amx_is_safe() -> bool:
    """True where the library has no matrix code, or its matrix code computes what it should."""
    if not has_amx() or not sys.platform.startswith("linux"):
        return True
    from llama_cpp import llama_cpp as native

    pattern = str(Path(native._lib._name).parent / "libggml%s.so")
    command = [sys.executable, "-I", "-S", "-c", _PRODUCT, pattern]
    try:
        return subprocess.run(command, capture_output=True, timeout=_SECONDS).returncode == 0
    except (OSError, subprocess.SubprocessError):
        return False
