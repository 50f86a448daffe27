# SPDX-License-Identifier: Apache-2.0
"""Asynchronous matrix products on CPUs and GPUs.

    import numpy as np, streamgemm as sg
    c = sg.matmul(a, b)                      # like a @ b
    job = sg.matmul_async(a, b)              # a concurrent.futures.Future that can be awaited, too
    with sg.Context("cuda:0") as context:    # everything else: devices, streams, events, memory, plans
        job = context.gemm_async(a, b, c, alpha=2.0, beta=1.0, op_a="T", compute="tf32")

Operands are any objects that hold a matrix: NumPy arrays of any strides that a matrix product can take, anything with the
buffer protocol, DLPack or the CUDA array interface (PyTorch, CuPy, JAX). Operands are not copied. A Job keeps its
operands alive and in place until it has completed.
"""

from . import _raw

_raw.require_main_interpreter()

from . import _arrays, _completer, _enums, _errors, _job, _messages, _records, _results  # noqa: E402
from ._context import Context  # noqa: E402
from ._default import default_context, set_default_context  # noqa: E402
from ._described import OperationDesc  # noqa: E402
from ._device_array import DeviceArray  # noqa: E402
from ._errors import Error, error_of  # noqa: E402
from ._functions import matmul, matmul_async  # noqa: E402
from ._graph import Graph  # noqa: E402
from ._job import Job  # noqa: E402
from ._matrix import Matrix  # noqa: E402
from ._memory import Buffer, Pinned  # noqa: E402
from ._models import ModelFile, QuantizedTensor, load_gguf, load_safetensors  # noqa: E402
from ._optimizers import SGD, Adam  # noqa: E402
from ._pipeline import Pipeline, Stage  # noqa: E402
from ._plan import Plan, PlanOptions  # noqa: E402
from ._streams import Event, Stream  # noqa: E402
from ._records import backends, devices, load_backend, metrics_text, set_log  # noqa: E402
from ._tables import ENUMS, ERRORS, RECORDS  # noqa: E402
from ._trace import Trace  # noqa: E402
from . import operations  # noqa: E402

for _names, _module in ((ENUMS, _enums), (ERRORS, _errors), (RECORDS, _records)):
    globals().update({name: getattr(_module, name) for name in _names})
del ENUMS, ERRORS, RECORDS

_raw.install(
    _errors._error_of_call,
    _arrays.as_matrix,
    _results.make_result,
    _arrays.is_masked,
    _job.make_condition,
    _job.NoCondition(),
    _completer.start,
    _enums.names(_enums.Transpose),
    _enums.names(_enums.Compute),
    _enums.names(_enums.Activation),
    _enums.all_names(),
    _messages.brief,
)

__version__ = _raw.sg_version_string()

__all__ = sorted(name for name in globals() if not name.startswith("_") and name != "error_of")
