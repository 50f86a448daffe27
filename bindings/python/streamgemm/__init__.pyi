# SPDX-License-Identifier: Apache-2.0
# fmt: off
import array
import concurrent.futures
import contextvars
import ctypes
import enum
import os
from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Any, Generic, Protocol, TypedDict, TypeVar, overload

import numpy.typing as npt
from typing_extensions import Literal, Required, Self, TypeAlias

_T = TypeVar("_T")
_C = TypeVar("_C", bound="_Array | list[Any] | tuple[Any, ...]")

class _HasDLPack(Protocol):
    @property
    def __dlpack__(self) -> Any: ...

class _HasArrayInterface(Protocol):
    @property
    def __array_interface__(self) -> Any: ...

class _HasCudaArrayInterface(Protocol):
    @property
    def __cuda_array_interface__(self) -> Any: ...

_Buffer: TypeAlias = memoryview | bytearray | array.array[Any] | ctypes.Array[Any]
_Array: TypeAlias = Matrix | _HasDLPack | _HasArrayInterface | _HasCudaArrayInterface | _Buffer
# A list stands for a batch of matrices of one shape; a Job for the array that it makes.
_Source: TypeAlias = _Array | Job[Any]
_Operand: TypeAlias = _Source | list[Any] | tuple[Any, ...]
_Bias: TypeAlias = _Source | complex | None
_Numpy: TypeAlias = npt.NDArray[Any]
_Op: TypeAlias = Op | Literal["N", "T", "C", "n", "t", "c"]
_Compute: TypeAlias = Compute | str
_Activation: TypeAlias = Activation | str
_Place: TypeAlias = MemoryKind | Literal["auto", "pageable", "pinned", "device", "peer"]
_Order: TypeAlias = Literal["C", "F"]
_Shape: TypeAlias = Sequence[int]

__version__: str

class Error(Exception):
    status: int
    @property
    def status_name(self) -> str: ...

class InvalidArgument(Error, ValueError): ...
class InvalidHandle(Error, ValueError): ...
class OutOfMemory(Error, MemoryError): ...
class NoDevice(Error, LookupError): ...
class Unsupported(Error, NotImplementedError): ...
class Busy(Error): ...
class Cancelled(Error, concurrent.futures.CancelledError): ...
class Deadlock(Error, RuntimeError): ...
class BackendFailure(Error, RuntimeError): ...
class DependencyFailed(Error): ...
class DeadlineExceeded(Error, TimeoutError): ...
class Shutdown(Error, RuntimeError): ...
class Internal(Error, RuntimeError): ...

class Status(enum.IntEnum):
    OK = 0
    NOT_READY = 1
    TIMEOUT = 2
    INVALID_ARGUMENT = -1
    INVALID_HANDLE = -2
    OUT_OF_MEMORY = -3
    NO_DEVICE = -4
    UNSUPPORTED = -5
    BUSY = -6
    CANCELLED = -7
    DEADLOCK = -8
    BACKEND_FAILURE = -9
    DEPENDENCY_FAILED = -10
    SHUTDOWN = -11
    INTERNAL = -12
    DEADLINE_EXCEEDED = -13

class Op(enum.IntEnum):
    N = 0
    T = 1
    C = 2

class Compute(enum.IntEnum):
    EXACT = 0
    TF32 = 1
    _3XTF32 = 2
    BF16 = 3
    BF16X3 = 4
    F8 = 5

class Activation(enum.IntEnum):
    NONE = 0
    RELU = 1
    GELU = 2

class Function(enum.IntEnum):
    RELU = 1
    GELU = 2
    GELU_ERF = 3
    SILU = 4
    SIGMOID = 5
    TANH = 6
    ADD = 7
    MULTIPLY = 8
    RELU_GRADIENT = 9
    GELU_GRADIENT = 10
    GELU_ERF_GRADIENT = 11
    SILU_GRADIENT = 12
    SIGMOID_GRADIENT = 13
    TANH_GRADIENT = 14

class Mask(enum.IntEnum):
    NONE = 0
    CAUSAL = 1

class Quantization(enum.IntEnum):
    I8 = 1
    I4 = 2

class IndexType(enum.IntEnum):
    I32 = 0
    I64 = 1

class GateOrder(enum.IntEnum):
    DEFAULT = 0
    ONNX = 1

class ImageLayout(enum.IntEnum):
    NCHW = 0
    NHWC = 1

class FilterLayout(enum.IntEnum):
    OIHW = 0
    OHWI = 1

class RotaryPairs(enum.IntEnum):
    HALVES = 0
    INTERLEAVED = 1

class Split(enum.IntEnum):
    AUTO = 0
    NONE = 1
    M = 2
    N = 3
    K = 4
    BATCH = 5

class MemoryKind(enum.IntEnum):
    AUTO = 0
    PAGEABLE = 1
    PINNED = 2
    DEVICE = 3
    PEER = 4

class LinkClass(enum.IntEnum):
    UNKNOWN = 0
    HOST = 1
    PCIE = 2
    NVLINK = 3

class WhenFull(enum.IntEnum):
    BLOCK = 0
    REFUSE = 1

class WeightsPlace(enum.IntEnum):
    AUTO = 0
    RESIDENT = 1
    STREAMED = 2

class PlanFormat(enum.IntEnum):
    TEXT = 0
    JSON = 1
    TIMELINE = 2
    HTML = 3
    SVG = 4

class TraceFormat(enum.IntEnum):
    AUTO = 0
    JSON = 1
    PERFETTO = 2
    HTML = 3
    SVG = 4
    TEXT = 5

class _Record:
    def __getattr__(self, name: str) -> Any: ...  # additions of later library versions
    def __eq__(self, other: object) -> bool: ...

class DevicePeer(_Record):
    name: str
    bytes_per_second: float
    index: int
    link_class: LinkClass
    links: int

class DeviceInfo(_Record):
    name: str
    description: str
    memory_bytes: int
    unified_memory: int
    compute_units: int
    compute_lanes: int
    copy_engines: int
    priorities: int
    link_in_bytes_per_second: float
    link_out_bytes_per_second: float
    memory_bytes_per_second: float
    nvlink_bytes_per_second: float
    nvlinks: int
    mig: str
    peers: tuple[DevicePeer, ...]

class BackendInfo(_Record):
    name: str
    available: int
    reason: str
    origin: str

class Statistics(_Record):
    start_ns: int
    end_ns: int
    busy_seconds: float
    predicted_seconds: float
    bound_seconds: float
    flops: float
    bytes_in: int
    bytes_out: int
    commands: int
    commands_run: int
    batch_size: int
    strategy: str

class Prediction(_Record):
    predicted_seconds: float
    bound_seconds: float
    serial_seconds: float
    flops: float
    bytes_in: int
    bytes_out: int
    device_bytes: int
    staging_bytes: int
    commands: int
    compute_lanes: int
    strategy: str

class PipelineInfo(_Record):
    stages: int
    streamed_stages: int
    depth: int
    weight_buffers: int
    device_bytes: int
    resident_bytes: int
    streamed_bytes: int
    seconds_per_batch: float
    transfer_in_seconds: float
    transfer_out_seconds: float
    work_seconds: float

class ContextMetrics(_Record):
    jobs_submitted: int
    jobs_completed: int
    jobs_failed: int
    jobs_cancelled: int
    jobs_in_flight: int
    queued_high: int
    queued_normal: int
    queued_low: int
    commands: int
    bytes_in: int
    bytes_out: int
    compute_seconds: float
    copy_in_seconds: float
    copy_out_seconds: float
    elapsed_seconds: float
    device_bytes: int
    pinned_bytes: int

class TraceMetrics(_Record):
    events: int
    dropped_events: int
    jobs: int
    failed_jobs: int
    commands: int
    bytes_in: int
    bytes_out: int
    span_seconds: float
    busy_seconds: float
    compute_seconds: float
    copy_in_seconds: float
    copy_out_seconds: float
    staging_seconds: float
    command_seconds: float
    exposed_seconds: float
    overlap_efficiency: float
    idle_link_seconds: float
    idle_staging_seconds: float
    idle_submission_seconds: float
    idle_dispatch_seconds: float
    idle_no_work_seconds: float
    latency_p50_seconds: float
    latency_p90_seconds: float
    latency_p99_seconds: float
    latency_max_seconds: float

def devices() -> list[DeviceInfo]: ...
def backends() -> list[BackendInfo]: ...
def metrics_text() -> str: ...

class _Handle:
    def close(self) -> None: ...
    @property
    def closed(self) -> bool: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *raised: object) -> None: ...

class Job(concurrent.futures.Future[_T]):
    def __new__(cls, *args: Any, **kwargs: Any) -> Self: ...
    def wait(self, timeout: float | None = ...) -> bool: ...
    @property
    def label(self) -> str: ...
    @property
    def progress(self) -> float: ...
    @property
    def statistics(self) -> Statistics: ...
    def add_done_callback(self, fn: Callable[[Job[_T]], object], *, context: contextvars.Context | None = ...) -> None: ...
    def remove_done_callback(self, fn: Callable[[Job[_T]], object]) -> int: ...
    def __await__(self) -> Generator[Any, None, _T]: ...

class Matrix:
    def __new__(cls, array: _Array, dtype: str | None = ...) -> Self: ...
    @classmethod
    def at(
        cls, address: int, shape: _Shape, dtype: str, strides: Sequence[int] | None = ..., *, readonly: bool = ...,
        device: str = ..., owner: object = ...,
    ) -> Self: ...
    @classmethod
    def placeholder(cls, shape: _Shape, dtype: str = ..., *, order: _Order = ..., place: _Place = ...) -> Self: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def strides(self) -> tuple[int, ...]: ...
    @property
    def ndim(self) -> int: ...
    @property
    def dtype(self) -> str: ...
    @property
    def address(self) -> int: ...
    @property
    def readonly(self) -> bool: ...
    @property
    def owner(self) -> Any: ...
    @property
    def device(self) -> str: ...
    def part(self, shape: _Shape, strides: Sequence[int] | None = ..., *, offset: int = ...) -> Matrix: ...
    @property
    def T(self) -> Matrix: ...
    @property
    def __array_interface__(self) -> dict[str, Any]: ...
    @property
    def __cuda_array_interface__(self) -> dict[str, Any]: ...
    def __dlpack__(
        self, *, stream: int | None = ..., max_version: tuple[int, int] | None = ...,
        dl_device: tuple[int, int] | None = ..., copy: bool | None = ...,
    ) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...

class Buffer(_Handle):
    nbytes: int
    def __init__(self, context: Context, nbytes: int) -> None: ...
    @property
    def address(self) -> int: ...
    def matrix(self, shape: _Shape, dtype: str = ..., *, offset: int = ..., order: _Order = ...) -> Matrix: ...

class Pinned(_Handle, Generic[_T]):
    array: _T
    def __init__(self, context: Context, array: _T) -> None: ...
    def __enter__(self) -> _T: ...  # type: ignore[override]

class PlanOptions:
    def __init__(
        self, *, split: Split | str = ..., parts: int = ..., streams: int = ..., memory_limit: int = ...,
        tile_m: int = ..., tile_n: int = ..., tile_k: int = ..., place_a: _Place = ..., place_b: _Place = ...,
        place_c: _Place = ...,
    ) -> None: ...

class Plan(_Handle):
    def __init__(
        self, context: Context, a: _Operand, b: _Operand, c: _Operand | None, alpha: complex, beta: complex,
        op_a: _Op, op_b: _Op, compute: _Compute, bias: _Bias, activation: _Activation | None,
        options: PlanOptions | None,
    ) -> None: ...
    @property
    def prediction(self) -> Prediction: ...
    @property
    def text(self) -> str: ...
    @property
    def timeline(self) -> str: ...
    @property
    def html(self) -> str: ...
    @property
    def commands(self) -> dict[str, Any]: ...
    @overload
    def run_async(
        self, a: _Numpy, b: _Numpy, c: None = ..., *, alpha: complex | None = ..., beta: complex | None = ...,
        bias: _Bias = ..., stream: Stream | None = ..., after: Sequence[Job[Any]] = ..., priority: int = ...,
        untracked: bool = ..., timeout: float | None = ..., label: str | None = ...,
    ) -> Job[_Numpy]: ...
    @overload
    def run_async(
        self, a: _Operand, b: _Operand, c: None = ..., *, alpha: complex | None = ..., beta: complex | None = ...,
        bias: _Bias = ..., stream: Stream | None = ..., after: Sequence[Job[Any]] = ..., priority: int = ...,
        untracked: bool = ..., timeout: float | None = ..., label: str | None = ...,
    ) -> Job[Any]: ...
    @overload
    def run_async(
        self, a: _Operand, b: _Operand, c: _C, *, alpha: complex | None = ..., beta: complex | None = ...,
        bias: _Bias = ..., stream: Stream | None = ..., after: Sequence[Job[Any]] = ..., priority: int = ...,
        untracked: bool = ..., timeout: float | None = ..., label: str | None = ...,
    ) -> Job[_C]: ...
    @overload
    def run(
        self, a: _Numpy, b: _Numpy, c: None = ..., *, alpha: complex | None = ..., beta: complex | None = ...,
        bias: _Bias = ..., stream: Stream | None = ..., after: Sequence[Job[Any]] = ..., priority: int = ...,
        untracked: bool = ..., timeout: float | None = ..., label: str | None = ...,
    ) -> _Numpy: ...
    @overload
    def run(
        self, a: _Operand, b: _Operand, c: None = ..., *, alpha: complex | None = ..., beta: complex | None = ...,
        bias: _Bias = ..., stream: Stream | None = ..., after: Sequence[Job[Any]] = ..., priority: int = ...,
        untracked: bool = ..., timeout: float | None = ..., label: str | None = ...,
    ) -> Any: ...
    @overload
    def run(
        self, a: _Operand, b: _Operand, c: _C, *, alpha: complex | None = ..., beta: complex | None = ...,
        bias: _Bias = ..., stream: Stream | None = ..., after: Sequence[Job[Any]] = ..., priority: int = ...,
        untracked: bool = ..., timeout: float | None = ..., label: str | None = ...,
    ) -> _C: ...

class Trace(_Handle):
    def __init__(
        self, path: str | os.PathLike[str] | None = ..., *, max_events: int = ..., device_times: bool = ...,
    ) -> None: ...
    def stop(self) -> None: ...
    def write(self, path: str | os.PathLike[str], format: TraceFormat | str | int = ...) -> None: ...
    def export(self, format: TraceFormat | str | int) -> bytes: ...
    @property
    def text(self) -> str: ...
    def metrics(self, of: Context | Stream) -> TraceMetrics: ...
    @overload
    def overlap(self, first: Job[Any], second: Job[Any]) -> float: ...
    @overload
    def overlap(self, first: Stream, second: Stream) -> float: ...

class Graph(_Handle):
    def __init__(self, context: Context) -> None: ...
    def __len__(self) -> int: ...
    @overload
    def gemm(
        self, a: _Numpy, b: _Numpy, c: None = ..., *, alpha: complex = ..., beta: complex = ..., op_a: _Op = ...,
        op_b: _Op = ..., compute: _Compute = ..., bias: _Bias = ..., activation: _Activation | None = ...,
        stream: Stream | None = ..., priority: int = ..., untracked: bool = ...,
        label: str | None = ..., options: PlanOptions | None = ...,
    ) -> _Numpy: ...
    @overload
    def gemm(
        self, a: _Operand, b: _Operand, c: None = ..., *, alpha: complex = ..., beta: complex = ..., op_a: _Op = ...,
        op_b: _Op = ..., compute: _Compute = ..., bias: _Bias = ..., activation: _Activation | None = ...,
        stream: Stream | None = ..., priority: int = ..., untracked: bool = ...,
        label: str | None = ..., options: PlanOptions | None = ...,
    ) -> Any: ...
    @overload
    def gemm(
        self, a: _Operand, b: _Operand, c: _C, *, alpha: complex = ..., beta: complex = ..., op_a: _Op = ...,
        op_b: _Op = ..., compute: _Compute = ..., bias: _Bias = ..., activation: _Activation | None = ...,
        stream: Stream | None = ..., priority: int = ..., untracked: bool = ...,
        label: str | None = ..., options: PlanOptions | None = ...,
    ) -> _C: ...
    def copy(
        self, dst: _C, src: _Array, *, stream: Stream | None = ..., priority: int = ..., untracked: bool = ...,
        label: str | None = ...,
    ) -> _C: ...
    @overload
    def set_gemm(
        self, index: int, a: _Operand, b: _Operand, c: None = ..., *, alpha: complex = ..., beta: complex = ...,
        bias: _Bias = ...,
    ) -> Any: ...
    @overload
    def set_gemm(
        self, index: int, a: _Operand, b: _Operand, c: _C, *, alpha: complex = ..., beta: complex = ...,
        bias: _Bias = ...,
    ) -> _C: ...
    def elementwise(
        self, function: Function | str, x: _Source, b: _Source | None = ..., out: _Source | None = ..., *,
        stream: Stream | None = ..., priority: int = ..., untracked: bool = ..., label: str | None = ...,
    ) -> Any: ...
    def softmax(
        self, x: _Source, out: _Source | None = ..., *, mask: Mask | str | None = ..., mask_offset: int = ...,
        stream: Stream | None = ..., priority: int = ..., untracked: bool = ..., label: str | None = ...,
    ) -> Any: ...
    def layer_norm(
        self, x: _Source, gamma: _Source | None = ..., beta: _Source | None = ..., out: _Source | None = ..., *,
        epsilon: float = ..., stream: Stream | None = ..., priority: int = ..., untracked: bool = ...,
        label: str | None = ...,
    ) -> Any: ...
    def rms_norm(
        self, x: _Source, gamma: _Source | None = ..., out: _Source | None = ..., *, epsilon: float = ...,
        stream: Stream | None = ..., priority: int = ..., untracked: bool = ..., label: str | None = ...,
    ) -> Any: ...
    def rotary(
        self, x: _Source, cos: _Source | None = ..., sin: _Source | None = ..., out: _Source | None = ..., *,
        head_size: int = ..., rotated_size: int = ..., position: int = ..., theta: float = ...,
        pairs: RotaryPairs | str = ..., inverse: bool = ..., stream: Stream | None = ..., priority: int = ...,
        untracked: bool = ..., label: str | None = ...,
    ) -> Any: ...
    def dequantize(
        self, x: _Source, scales: _Source, zero_points: _Source | None = ..., out: _Source | None = ..., *,
        quantization: Quantization | str = ..., dtype: str | None = ..., stream: Stream | None = ...,
        priority: int = ..., untracked: bool = ..., label: str | None = ...,
    ) -> Any: ...
    def linear(
        self, x: _Source, w: _Source, bias: _Source | None = ..., out: _Source | None = ..., *, op_w: _Op = ...,
        activation: _Activation | None = ..., compute: _Compute = ..., stream: Stream | None = ..., priority: int = ...,
        untracked: bool = ..., label: str | None = ..., options: PlanOptions | None = ...,
    ) -> Any: ...
    def linear_backward(
        self, dy: _Source, x: _Source | None = ..., w: _Source | None = ..., *, dx: _Source | None = ...,
        dw: _Source | None = ..., dbias: _Source | bool | None = ..., op_w: _Op = ..., accumulate: bool = ...,
        compute: _Compute = ..., stream: Stream | None = ..., priority: int = ..., untracked: bool = ...,
        label: str | None = ..., options: PlanOptions | None = ...,
    ) -> tuple[Any, Any, Any]: ...
    def conv2d(
        self, x: _Source, w: _Source, bias: _Source | None = ..., out: _Source | None = ..., *,
        stride: int | Sequence[int] = ..., padding: int | Sequence[int] = ..., dilation: int | Sequence[int] = ...,
        groups: int = ..., layout: ImageLayout | str = ..., filter_layout: FilterLayout | str = ...,
        activation: _Activation | None = ..., workspace: int = ..., compute: _Compute = ...,
        stream: Stream | None = ..., priority: int = ..., untracked: bool = ..., label: str | None = ...,
        options: PlanOptions | None = ...,
    ) -> Any: ...
    def conv2d_backward(
        self, dy: _Source, x: _Source | None = ..., w: _Source | None = ..., *, dx: _Source | None = ...,
        dw: _Source | None = ..., dbias: _Source | Literal[False] | None = ..., size: Sequence[int] | None = ...,
        stride: int | Sequence[int] = ..., padding: int | Sequence[int] = ..., dilation: int | Sequence[int] = ...,
        groups: int = ..., layout: ImageLayout | str = ..., filter_layout: FilterLayout | str = ...,
        accumulate: bool = ..., workspace: int = ..., compute: _Compute = ...,
        stream: Stream | None = ..., priority: int = ..., untracked: bool = ..., label: str | None = ...,
        options: PlanOptions | None = ...,
    ) -> tuple[Any, Any, Any]: ...
    def im2col(
        self, x: _Source, kernel: int | Sequence[int], out: _Source | None = ..., *,
        stride: int | Sequence[int] = ..., padding: int | Sequence[int] = ..., dilation: int | Sequence[int] = ...,
        channels: Sequence[int] | None = ..., layout: ImageLayout | str = ..., filter_layout: FilterLayout | str = ...,
        stream: Stream | None = ..., priority: int = ..., untracked: bool = ..., label: str | None = ...,
    ) -> Any: ...
    def col2im(
        self, matrix: _Source, kernel: int | Sequence[int], out: _Source | None = ..., *, shape: Sequence[int] | None = ...,
        stride: int | Sequence[int] = ..., padding: int | Sequence[int] = ..., dilation: int | Sequence[int] = ...,
        channels: Sequence[int] | None = ..., layout: ImageLayout | str = ..., filter_layout: FilterLayout | str = ...,
        accumulate: bool = ...,
        stream: Stream | None = ..., priority: int = ..., untracked: bool = ..., label: str | None = ...,
    ) -> Any: ...
    def attention(
        self, q: _Source, k: _Source, v: _Source, out: _Source | None = ..., *, mask: Mask | str | None = ...,
        mask_offset: int = ..., scale: float | None = ..., workspace: int = ..., compute: _Compute = ...,
        stream: Stream | None = ..., priority: int = ..., untracked: bool = ..., label: str | None = ...,
    ) -> Any: ...
    def axpby(
        self, a: _Source, c: _Source, *, alpha: complex = ..., beta: complex = ..., activation: _Activation | None = ...,
        stream: Stream | None = ..., priority: int = ..., untracked: bool = ..., label: str | None = ...,
    ) -> Any: ...
    def custom(
        self, function: Callable[..., object], *, reads: Sequence[_Source] = ..., writes: Sequence[_Source] = ...,
        updates: Sequence[_Source] = ..., seconds: float = ..., compute_units: int = ..., stream: Stream | None = ...,
        priority: int = ..., untracked: bool = ..., label: str | None = ...,
    ) -> Any: ...
    def convert(
        self, a: _Source, out: _Source | None = ..., *, dtype: str | None = ..., op_a: _Op = ...,
        stream: Stream | None = ..., priority: int = ..., untracked: bool = ..., label: str | None = ...,
    ) -> Any: ...
    def gather(
        self, table: _Source, indices: _Source, out: _Source | None = ..., *, index_type: IndexType | str | None = ...,
        from_end: bool = ..., nan: bool = ..., stream: Stream | None = ..., priority: int = ..., untracked: bool = ...,
        label: str | None = ...,
    ) -> Any: ...
    def lstm(
        self, x: _Source, w_ih: _Source, w_hh: _Source, bias_ih: _Source | None = ..., bias_hh: _Source | None = ...,
        h0: _Source | None = ..., c0: _Source | None = ..., out: _Source | None = ..., *,
        hn: _Source | Literal[False] | None = ..., cn: _Source | Literal[False] | None = ...,
        reserve: _Source | None = ..., gate_order: GateOrder | str = ..., batch_first: bool = ...,
        reverse: bool = ..., compute: _Compute = ..., stream: Stream | None = ..., priority: int = ...,
        untracked: bool = ..., label: str | None = ...,
    ) -> tuple[Any, Any, Any]: ...
    def gru(
        self, x: _Source, w_ih: _Source, w_hh: _Source, bias_ih: _Source | None = ..., bias_hh: _Source | None = ...,
        h0: _Source | None = ..., out: _Source | None = ..., *, hn: _Source | Literal[False] | None = ...,
        reserve: _Source | None = ..., reset_before: bool = ..., gate_order: GateOrder | str = ...,
        batch_first: bool = ..., reverse: bool = ..., compute: _Compute = ..., stream: Stream | None = ...,
        priority: int = ..., untracked: bool = ..., label: str | None = ...,
    ) -> tuple[Any, Any]: ...
    def lstm_backward(
        self, x: _Source, w_ih: _Source, w_hh: _Source, y: _Source, reserve: _Source, h0: _Source | None = ..., *,
        dy: _Source | None = ..., dhn: _Source | None = ..., dcn: _Source | None = ...,
        dx: _Source | Literal[False] | None = ..., dw_ih: _Source | Literal[False] | None = ...,
        dw_hh: _Source | Literal[False] | None = ..., dbias_ih: _Source | Literal[False] | None = ...,
        dbias_hh: _Source | Literal[False] | None = ..., dh0: _Source | Literal[False] | None = ...,
        dc0: _Source | Literal[False] | None = ..., gate_order: GateOrder | str = ..., batch_first: bool = ...,
        reverse: bool = ..., accumulate: bool = ..., compute: _Compute = ..., stream: Stream | None = ...,
        priority: int = ..., untracked: bool = ..., label: str | None = ...,
    ) -> tuple[Any, Any, Any, Any, Any, Any, Any]: ...
    def gru_backward(
        self, x: _Source, w_ih: _Source, w_hh: _Source, y: _Source, reserve: _Source, h0: _Source | None = ..., *,
        dy: _Source | None = ..., dhn: _Source | None = ..., dx: _Source | Literal[False] | None = ...,
        dw_ih: _Source | Literal[False] | None = ..., dw_hh: _Source | Literal[False] | None = ...,
        dbias_ih: _Source | Literal[False] | None = ..., dbias_hh: _Source | Literal[False] | None = ...,
        dh0: _Source | Literal[False] | None = ..., gate_order: GateOrder | str = ..., batch_first: bool = ...,
        reverse: bool = ..., accumulate: bool = ..., compute: _Compute = ..., stream: Stream | None = ...,
        priority: int = ..., untracked: bool = ..., label: str | None = ...,
    ) -> tuple[Any, Any, Any, Any, Any, Any]: ...
    def attention_backward(
        self, q: _Source, k: _Source, v: _Source, d_out: _Source, *, dq: _Source | Literal[False] | None = ...,
        dk: _Source | Literal[False] | None = ..., dv: _Source | Literal[False] | None = ..., mask: Mask | str | None = ...,
        mask_offset: int = ..., scale: float | None = ..., workspace: int = ..., compute: _Compute = ...,
        stream: Stream | None = ..., priority: int = ..., untracked: bool = ..., label: str | None = ...,
    ) -> tuple[Any, Any, Any]: ...
    def set_copy(self, index: int, dst: _C, src: _Array) -> _C: ...
    @overload
    def update(
        self, index: int, a: _Operand, b: _Operand, c: None = ..., /, *, alpha: complex = ..., beta: complex = ...,
        bias: _Bias = ...,
    ) -> Any: ...
    @overload
    def update(
        self, index: int, a: _Operand, b: _Operand, c: _C, /, *, alpha: complex = ..., beta: complex = ...,
        bias: _Bias = ...,
    ) -> _C: ...
    def run_async(
        self, *, stream: Stream | None = ..., after: Sequence[Job[Any]] = ..., priority: int = ...,
        untracked: bool = ..., timeout: float | None = ..., label: str | None = ...,
    ) -> Job[list[Any]]: ...
    def run(
        self, *, stream: Stream | None = ..., after: Sequence[Job[Any]] = ..., priority: int = ...,
        untracked: bool = ..., timeout: float | None = ..., label: str | None = ...,
    ) -> list[Any]: ...

class Stage(Graph):
    index: int
    input: Matrix
    output: Matrix
    weights: tuple[Matrix, ...]
    def __init__(
        self, pipeline: Pipeline, filled: Any, given: Any, output: Any, weights: Sequence[Matrix], workspace_bytes: int,
    ) -> None: ...
    def workspace(self, shape: Sequence[int], dtype: str = ..., *, offset: int = ...) -> Matrix: ...

class Pipeline(_Handle):
    def __init__(
        self, context: Context, shape: Sequence[int], dtype: str = ..., *, memory_limit: int = ..., depth: int = ...,
        weight_buffers: int = ..., batches_in_flight: int = ...,
        when_full: WhenFull | Literal["block", "refuse"] = ...,
    ) -> None: ...
    @overload
    def stage(
        self, shape: Sequence[int], dtype: str | None = ..., *, weights: Sequence[_Array] = ..., workspace: int = ...,
        place: WeightsPlace | Literal["auto", "resident", "streamed"] = ..., name: str | None = ..., function: None = ...,
    ) -> Stage: ...
    @overload
    def stage(
        self, shape: Sequence[int], dtype: str | None = ..., *, weights: Sequence[_Array] = ..., workspace: int = ...,
        place: WeightsPlace | Literal["auto", "resident", "streamed"] = ..., name: str | None = ...,
        function: Callable[[Stage, int], object],
    ) -> None: ...
    @property
    def info(self) -> PipelineInfo: ...
    def describe(self) -> str: ...
    @overload
    def push_async(
        self, x: _Source, out: None = ..., *, stream: Stream | None = ..., after: Sequence[Job[Any]] = ...,
        priority: int = ..., untracked: bool = ..., timeout: float | None = ..., label: str | None = ...,
    ) -> Job[Any]: ...
    @overload
    def push_async(
        self, x: _Source, out: _C, *, stream: Stream | None = ..., after: Sequence[Job[Any]] = ...,
        priority: int = ..., untracked: bool = ..., timeout: float | None = ..., label: str | None = ...,
    ) -> Job[_C]: ...
    @overload
    def push(
        self, x: _Source, out: None = ..., *, stream: Stream | None = ..., after: Sequence[Job[Any]] = ...,
        priority: int = ..., untracked: bool = ..., timeout: float | None = ..., label: str | None = ...,
    ) -> Any: ...
    @overload
    def push(
        self, x: _Source, out: _C, *, stream: Stream | None = ..., after: Sequence[Job[Any]] = ...,
        priority: int = ..., untracked: bool = ..., timeout: float | None = ..., label: str | None = ...,
    ) -> _C: ...

class Stream(_Handle):
    def __init__(self, handle: int) -> None: ...
    @property
    def priority(self) -> int: ...
    @property
    def compute_units(self) -> int: ...
    @property
    def is_partition(self) -> bool: ...
    def done(self) -> bool: ...
    def synchronize(self, timeout: float | None = ...) -> bool: ...
    def wait_event(self, event: Event) -> None: ...

class Event(_Handle):
    def __init__(self, handle: int) -> None: ...
    def record(self, stream: Stream) -> None: ...
    @property
    def native(self) -> int: ...
    def done(self) -> bool: ...
    def wait(self, timeout: float | None = ...) -> bool: ...
    def seconds_since(self, start: Event) -> float: ...

class _Gemm(TypedDict, total=False):
    a: Required[_Operand]
    b: Required[_Operand]
    c: _Operand | None
    alpha: complex
    beta: complex
    op_a: _Op
    op_b: _Op
    compute: _Compute
    bias: _Bias
    activation: _Activation | None

_Item: TypeAlias = tuple[_Operand, _Operand] | tuple[_Operand, _Operand, _Operand | None] | _Gemm

class Context(_Handle):
    def __init__(
        self, device: str | None = ..., *, compute_lanes: int = ..., staging_threads: int = ...,
        memory_limit: int = ..., commands_in_flight: int = ..., job_limit: int = ...,
        when_full: WhenFull | Literal["block", "refuse"] = ..., check_hazards: bool = ..., no_coalescing: bool = ..., tune: bool = ...,
    ) -> None: ...
    @property
    def device(self) -> DeviceInfo: ...
    @property
    def metrics(self) -> ContextMetrics: ...
    def trace(self, path: str | os.PathLike[str] | None = ..., *, max_events: int = ..., device_times: bool = ...) -> Trace: ...
    def synchronize(self) -> None: ...
    def stream(self, priority: int = ..., compute_units: int = ...) -> Stream: ...
    def wrap_stream(self, native: Any) -> Stream: ...
    def event(self) -> Event: ...
    def wrap_event(self, native: Any) -> Event: ...
    def buffer(self, nbytes: int) -> Buffer: ...
    def pinned_empty(self, shape: int | _Shape, dtype: str = ..., *, order: _Order = ...) -> Any: ...
    def memory_kind(self, array: _Operand) -> MemoryKind: ...
    def pin(self, array: _T) -> Pinned[_T]: ...
    @overload
    def gemm_async(
        self, a: _Numpy, b: _Numpy, c: None = ..., *, alpha: complex = ..., beta: complex = ..., op_a: _Op = ...,
        op_b: _Op = ..., compute: _Compute = ..., bias: _Bias = ..., activation: _Activation | None = ...,
        copy: bool = ..., stream: Stream | None = ..., after: Sequence[Job[Any]] = ..., priority: int = ...,
        untracked: bool = ..., timeout: float | None = ..., label: str | None = ..., options: PlanOptions | None = ...,
    ) -> Job[_Numpy]: ...
    @overload
    def gemm_async(
        self, a: _Operand, b: _Operand, c: None = ..., *, alpha: complex = ..., beta: complex = ..., op_a: _Op = ...,
        op_b: _Op = ..., compute: _Compute = ..., bias: _Bias = ..., activation: _Activation | None = ...,
        copy: bool = ..., stream: Stream | None = ..., after: Sequence[Job[Any]] = ..., priority: int = ...,
        untracked: bool = ..., timeout: float | None = ..., label: str | None = ..., options: PlanOptions | None = ...,
    ) -> Job[Any]: ...
    @overload
    def gemm_async(
        self, a: _Operand, b: _Operand, c: _C, *, alpha: complex = ..., beta: complex = ..., op_a: _Op = ...,
        op_b: _Op = ..., compute: _Compute = ..., bias: _Bias = ..., activation: _Activation | None = ...,
        copy: bool = ..., stream: Stream | None = ..., after: Sequence[Job[Any]] = ..., priority: int = ...,
        untracked: bool = ..., timeout: float | None = ..., label: str | None = ..., options: PlanOptions | None = ...,
    ) -> Job[_C]: ...
    @overload
    def gemm(
        self, a: _Numpy, b: _Numpy, c: None = ..., *, alpha: complex = ..., beta: complex = ..., op_a: _Op = ...,
        op_b: _Op = ..., compute: _Compute = ..., bias: _Bias = ..., activation: _Activation | None = ...,
        copy: bool = ..., stream: Stream | None = ..., after: Sequence[Job[Any]] = ..., priority: int = ...,
        untracked: bool = ..., timeout: float | None = ..., label: str | None = ..., options: PlanOptions | None = ...,
    ) -> _Numpy: ...
    @overload
    def gemm(
        self, a: _Operand, b: _Operand, c: None = ..., *, alpha: complex = ..., beta: complex = ..., op_a: _Op = ...,
        op_b: _Op = ..., compute: _Compute = ..., bias: _Bias = ..., activation: _Activation | None = ...,
        copy: bool = ..., stream: Stream | None = ..., after: Sequence[Job[Any]] = ..., priority: int = ...,
        untracked: bool = ..., timeout: float | None = ..., label: str | None = ..., options: PlanOptions | None = ...,
    ) -> Any: ...
    @overload
    def gemm(
        self, a: _Operand, b: _Operand, c: _C, *, alpha: complex = ..., beta: complex = ..., op_a: _Op = ...,
        op_b: _Op = ..., compute: _Compute = ..., bias: _Bias = ..., activation: _Activation | None = ...,
        copy: bool = ..., stream: Stream | None = ..., after: Sequence[Job[Any]] = ..., priority: int = ...,
        untracked: bool = ..., timeout: float | None = ..., label: str | None = ..., options: PlanOptions | None = ...,
    ) -> _C: ...
    @overload
    def matmul_async(
        self, a: _Numpy, b: _Numpy, out: None = ..., *, alpha: complex = ..., beta: complex = ..., op_a: _Op = ...,
        op_b: _Op = ..., compute: _Compute = ..., bias: _Bias = ..., activation: _Activation | None = ...,
        copy: bool = ..., stream: Stream | None = ..., after: Sequence[Job[Any]] = ..., priority: int = ...,
        untracked: bool = ..., timeout: float | None = ..., label: str | None = ..., options: PlanOptions | None = ...,
    ) -> Job[_Numpy]: ...
    @overload
    def matmul_async(
        self, a: _Operand, b: _Operand, out: None = ..., *, alpha: complex = ..., beta: complex = ...,
        op_a: _Op = ..., op_b: _Op = ..., compute: _Compute = ..., bias: _Bias = ...,
        activation: _Activation | None = ..., copy: bool = ..., stream: Stream | None = ...,
        after: Sequence[Job[Any]] = ..., priority: int = ..., untracked: bool = ..., timeout: float | None = ...,
        label: str | None = ...,
        options: PlanOptions | None = ...,
    ) -> Job[Any]: ...
    @overload
    def matmul_async(
        self, a: _Operand, b: _Operand, out: _C, *, alpha: complex = ..., beta: complex = ..., op_a: _Op = ...,
        op_b: _Op = ..., compute: _Compute = ..., bias: _Bias = ..., activation: _Activation | None = ...,
        copy: bool = ..., stream: Stream | None = ..., after: Sequence[Job[Any]] = ..., priority: int = ...,
        untracked: bool = ..., timeout: float | None = ..., label: str | None = ..., options: PlanOptions | None = ...,
    ) -> Job[_C]: ...
    @overload
    def matmul(
        self, a: _Numpy, b: _Numpy, out: None = ..., *, alpha: complex = ..., beta: complex = ..., op_a: _Op = ...,
        op_b: _Op = ..., compute: _Compute = ..., bias: _Bias = ..., activation: _Activation | None = ...,
        copy: bool = ..., stream: Stream | None = ..., after: Sequence[Job[Any]] = ..., priority: int = ...,
        untracked: bool = ..., timeout: float | None = ..., label: str | None = ..., options: PlanOptions | None = ...,
    ) -> _Numpy: ...
    @overload
    def matmul(
        self, a: _Operand, b: _Operand, out: None = ..., *, alpha: complex = ..., beta: complex = ...,
        op_a: _Op = ..., op_b: _Op = ..., compute: _Compute = ..., bias: _Bias = ...,
        activation: _Activation | None = ..., copy: bool = ..., stream: Stream | None = ...,
        after: Sequence[Job[Any]] = ..., priority: int = ..., untracked: bool = ..., timeout: float | None = ...,
        label: str | None = ...,
        options: PlanOptions | None = ...,
    ) -> Any: ...
    @overload
    def matmul(
        self, a: _Operand, b: _Operand, out: _C, *, alpha: complex = ..., beta: complex = ..., op_a: _Op = ...,
        op_b: _Op = ..., compute: _Compute = ..., bias: _Bias = ..., activation: _Activation | None = ...,
        copy: bool = ..., stream: Stream | None = ..., after: Sequence[Job[Any]] = ..., priority: int = ...,
        untracked: bool = ..., timeout: float | None = ..., label: str | None = ..., options: PlanOptions | None = ...,
    ) -> _C: ...
    def gemm_grouped_async(
        self, products: Iterable[_Item], *, copy: bool = ..., stream: Stream | None = ...,
        after: Sequence[Job[Any]] = ..., priority: int = ..., untracked: bool = ..., timeout: float | None = ...,
        label: str | None = ...,
        options: PlanOptions | None = ...,
    ) -> Job[list[Any]]: ...
    def gemm_grouped(
        self, products: Iterable[_Item], *, copy: bool = ..., stream: Stream | None = ...,
        after: Sequence[Job[Any]] = ..., priority: int = ..., untracked: bool = ..., timeout: float | None = ...,
        label: str | None = ...,
        options: PlanOptions | None = ...,
    ) -> list[Any]: ...
    def copy_async(
        self, dst: _C, src: _Source, *, stream: Stream | None = ..., after: Sequence[Job[Any]] = ...,
        priority: int = ..., untracked: bool = ..., timeout: float | None = ..., label: str | None = ...,
    ) -> Job[_C]: ...
    def copy(
        self, dst: _C, src: _Source, *, stream: Stream | None = ..., after: Sequence[Job[Any]] = ...,
        priority: int = ..., untracked: bool = ..., timeout: float | None = ..., label: str | None = ...,
    ) -> _C: ...
    def elementwise_async(
        self, function: Function | str, x: _Source, b: _Source | None = ..., out: _Source | None = ..., *,
        stream: Stream | None = ..., after: Sequence[Job[Any]] = ..., priority: int = ...,
        untracked: bool = ..., timeout: float | None = ..., label: str | None = ...,
    ) -> Job[Any]: ...
    def elementwise(
        self, function: Function | str, x: _Source, b: _Source | None = ..., out: _Source | None = ..., *,
        stream: Stream | None = ..., after: Sequence[Job[Any]] = ..., priority: int = ...,
        untracked: bool = ..., timeout: float | None = ..., label: str | None = ...,
    ) -> Any: ...
    def softmax_async(
        self, x: _Source, out: _Source | None = ..., *, mask: Mask | str | None = ..., mask_offset: int = ...,
        stream: Stream | None = ..., after: Sequence[Job[Any]] = ..., priority: int = ...,
        untracked: bool = ..., timeout: float | None = ..., label: str | None = ...,
    ) -> Job[Any]: ...
    def softmax(
        self, x: _Source, out: _Source | None = ..., *, mask: Mask | str | None = ..., mask_offset: int = ...,
        stream: Stream | None = ..., after: Sequence[Job[Any]] = ..., priority: int = ...,
        untracked: bool = ..., timeout: float | None = ..., label: str | None = ...,
    ) -> Any: ...
    def layer_norm_async(
        self, x: _Source, gamma: _Source | None = ..., beta: _Source | None = ...,
        out: _Source | None = ..., *, epsilon: float = ...,
        stream: Stream | None = ..., after: Sequence[Job[Any]] = ..., priority: int = ...,
        untracked: bool = ..., timeout: float | None = ..., label: str | None = ...,
    ) -> Job[Any]: ...
    def layer_norm(
        self, x: _Source, gamma: _Source | None = ..., beta: _Source | None = ...,
        out: _Source | None = ..., *, epsilon: float = ...,
        stream: Stream | None = ..., after: Sequence[Job[Any]] = ..., priority: int = ...,
        untracked: bool = ..., timeout: float | None = ..., label: str | None = ...,
    ) -> Any: ...
    def rms_norm_async(
        self, x: _Source, gamma: _Source | None = ..., out: _Source | None = ..., *, epsilon: float = ...,
        stream: Stream | None = ..., after: Sequence[Job[Any]] = ..., priority: int = ...,
        untracked: bool = ..., timeout: float | None = ..., label: str | None = ...,
    ) -> Job[Any]: ...
    def rms_norm(
        self, x: _Source, gamma: _Source | None = ..., out: _Source | None = ..., *, epsilon: float = ...,
        stream: Stream | None = ..., after: Sequence[Job[Any]] = ..., priority: int = ...,
        untracked: bool = ..., timeout: float | None = ..., label: str | None = ...,
    ) -> Any: ...
    def conv2d_async(
        self, x: _Source, w: _Source, bias: _Source | None = ..., out: _Source | None = ..., *,
        stride: int | Sequence[int] = ..., padding: int | Sequence[int] = ..., dilation: int | Sequence[int] = ...,
        groups: int = ..., layout: ImageLayout | str = ..., filter_layout: FilterLayout | str = ...,
        activation: _Activation | None = ..., workspace: int = ..., compute: _Compute = ...,
        stream: Stream | None = ..., after: Sequence[Job[Any]] = ..., priority: int = ..., untracked: bool = ...,
        timeout: float | None = ..., label: str | None = ..., options: PlanOptions | None = ...,
    ) -> Job[Any]: ...
    def conv2d(
        self, x: _Source, w: _Source, bias: _Source | None = ..., out: _Source | None = ..., *,
        stride: int | Sequence[int] = ..., padding: int | Sequence[int] = ..., dilation: int | Sequence[int] = ...,
        groups: int = ..., layout: ImageLayout | str = ..., filter_layout: FilterLayout | str = ...,
        activation: _Activation | None = ..., workspace: int = ..., compute: _Compute = ...,
        stream: Stream | None = ..., after: Sequence[Job[Any]] = ..., priority: int = ..., untracked: bool = ...,
        timeout: float | None = ..., label: str | None = ..., options: PlanOptions | None = ...,
    ) -> Any: ...
    def conv2d_backward_async(
        self, dy: _Source, x: _Source | None = ..., w: _Source | None = ..., *, dx: _Source | None = ...,
        dw: _Source | None = ..., dbias: _Source | Literal[False] | None = ..., size: Sequence[int] | None = ...,
        stride: int | Sequence[int] = ..., padding: int | Sequence[int] = ..., dilation: int | Sequence[int] = ...,
        groups: int = ..., layout: ImageLayout | str = ..., filter_layout: FilterLayout | str = ...,
        accumulate: bool = ..., workspace: int = ..., compute: _Compute = ...,
        stream: Stream | None = ..., after: Sequence[Job[Any]] = ..., priority: int = ..., untracked: bool = ...,
        timeout: float | None = ..., label: str | None = ..., options: PlanOptions | None = ...,
    ) -> Job[tuple[Any, Any, Any]]: ...
    def conv2d_backward(
        self, dy: _Source, x: _Source | None = ..., w: _Source | None = ..., *, dx: _Source | None = ...,
        dw: _Source | None = ..., dbias: _Source | Literal[False] | None = ..., size: Sequence[int] | None = ...,
        stride: int | Sequence[int] = ..., padding: int | Sequence[int] = ..., dilation: int | Sequence[int] = ...,
        groups: int = ..., layout: ImageLayout | str = ..., filter_layout: FilterLayout | str = ...,
        accumulate: bool = ..., workspace: int = ..., compute: _Compute = ...,
        stream: Stream | None = ..., after: Sequence[Job[Any]] = ..., priority: int = ..., untracked: bool = ...,
        timeout: float | None = ..., label: str | None = ..., options: PlanOptions | None = ...,
    ) -> tuple[Any, Any, Any]: ...
    def im2col_async(
        self, x: _Source, kernel: int | Sequence[int], out: _Source | None = ..., *,
        stride: int | Sequence[int] = ..., padding: int | Sequence[int] = ..., dilation: int | Sequence[int] = ...,
        channels: Sequence[int] | None = ..., layout: ImageLayout | str = ..., filter_layout: FilterLayout | str = ...,
        stream: Stream | None = ..., after: Sequence[Job[Any]] = ..., priority: int = ..., untracked: bool = ...,
        timeout: float | None = ..., label: str | None = ...,
    ) -> Job[Any]: ...
    def im2col(
        self, x: _Source, kernel: int | Sequence[int], out: _Source | None = ..., *,
        stride: int | Sequence[int] = ..., padding: int | Sequence[int] = ..., dilation: int | Sequence[int] = ...,
        channels: Sequence[int] | None = ..., layout: ImageLayout | str = ..., filter_layout: FilterLayout | str = ...,
        stream: Stream | None = ..., after: Sequence[Job[Any]] = ..., priority: int = ..., untracked: bool = ...,
        timeout: float | None = ..., label: str | None = ...,
    ) -> Any: ...
    def col2im_async(
        self, matrix: _Source, kernel: int | Sequence[int], out: _Source | None = ..., *, shape: Sequence[int] | None = ...,
        stride: int | Sequence[int] = ..., padding: int | Sequence[int] = ..., dilation: int | Sequence[int] = ...,
        channels: Sequence[int] | None = ..., layout: ImageLayout | str = ..., filter_layout: FilterLayout | str = ...,
        accumulate: bool = ...,
        stream: Stream | None = ..., after: Sequence[Job[Any]] = ..., priority: int = ..., untracked: bool = ...,
        timeout: float | None = ..., label: str | None = ...,
    ) -> Job[Any]: ...
    def col2im(
        self, matrix: _Source, kernel: int | Sequence[int], out: _Source | None = ..., *, shape: Sequence[int] | None = ...,
        stride: int | Sequence[int] = ..., padding: int | Sequence[int] = ..., dilation: int | Sequence[int] = ...,
        channels: Sequence[int] | None = ..., layout: ImageLayout | str = ..., filter_layout: FilterLayout | str = ...,
        accumulate: bool = ...,
        stream: Stream | None = ..., after: Sequence[Job[Any]] = ..., priority: int = ..., untracked: bool = ...,
        timeout: float | None = ..., label: str | None = ...,
    ) -> Any: ...
    def attention_async(
        self, q: _Source, k: _Source, v: _Source, out: _Source | None = ..., *, mask: Mask | str | None = ...,
        mask_offset: int = ..., scale: float | None = ..., workspace: int = ..., compute: _Compute = ...,
        stream: Stream | None = ..., after: Sequence[Job[Any]] = ..., priority: int = ..., untracked: bool = ...,
        timeout: float | None = ..., label: str | None = ...,
    ) -> Job[Any]: ...
    def attention(
        self, q: _Source, k: _Source, v: _Source, out: _Source | None = ..., *, mask: Mask | str | None = ...,
        mask_offset: int = ..., scale: float | None = ..., workspace: int = ..., compute: _Compute = ...,
        stream: Stream | None = ..., after: Sequence[Job[Any]] = ..., priority: int = ..., untracked: bool = ...,
        timeout: float | None = ..., label: str | None = ...,
    ) -> Any: ...
    def lstm_async(
        self, x: _Source, w_ih: _Source, w_hh: _Source, bias_ih: _Source | None = ..., bias_hh: _Source | None = ...,
        h0: _Source | None = ..., c0: _Source | None = ..., out: _Source | None = ..., *,
        hn: _Source | Literal[False] | None = ..., cn: _Source | Literal[False] | None = ...,
        reserve: _Source | None = ..., gate_order: GateOrder | str = ..., batch_first: bool = ...,
        reverse: bool = ..., compute: _Compute = ..., stream: Stream | None = ..., after: Sequence[Job[Any]] = ...,
        priority: int = ..., untracked: bool = ..., timeout: float | None = ..., label: str | None = ...,
    ) -> Job[tuple[Any, Any, Any]]: ...
    def lstm(
        self, x: _Source, w_ih: _Source, w_hh: _Source, bias_ih: _Source | None = ..., bias_hh: _Source | None = ...,
        h0: _Source | None = ..., c0: _Source | None = ..., out: _Source | None = ..., *,
        hn: _Source | Literal[False] | None = ..., cn: _Source | Literal[False] | None = ...,
        reserve: _Source | None = ..., gate_order: GateOrder | str = ..., batch_first: bool = ...,
        reverse: bool = ..., compute: _Compute = ..., stream: Stream | None = ..., after: Sequence[Job[Any]] = ...,
        priority: int = ..., untracked: bool = ..., timeout: float | None = ..., label: str | None = ...,
    ) -> tuple[Any, Any, Any]: ...
    def gru_async(
        self, x: _Source, w_ih: _Source, w_hh: _Source, bias_ih: _Source | None = ..., bias_hh: _Source | None = ...,
        h0: _Source | None = ..., out: _Source | None = ..., *, hn: _Source | Literal[False] | None = ...,
        reserve: _Source | None = ..., reset_before: bool = ..., gate_order: GateOrder | str = ...,
        batch_first: bool = ..., reverse: bool = ..., compute: _Compute = ..., stream: Stream | None = ...,
        after: Sequence[Job[Any]] = ..., priority: int = ..., untracked: bool = ..., timeout: float | None = ...,
        label: str | None = ...,
    ) -> Job[tuple[Any, Any]]: ...
    def gru(
        self, x: _Source, w_ih: _Source, w_hh: _Source, bias_ih: _Source | None = ..., bias_hh: _Source | None = ...,
        h0: _Source | None = ..., out: _Source | None = ..., *, hn: _Source | Literal[False] | None = ...,
        reserve: _Source | None = ..., reset_before: bool = ..., gate_order: GateOrder | str = ...,
        batch_first: bool = ..., reverse: bool = ..., compute: _Compute = ..., stream: Stream | None = ...,
        after: Sequence[Job[Any]] = ..., priority: int = ..., untracked: bool = ..., timeout: float | None = ...,
        label: str | None = ...,
    ) -> tuple[Any, Any]: ...
    def lstm_backward_async(
        self, x: _Source, w_ih: _Source, w_hh: _Source, y: _Source, reserve: _Source, h0: _Source | None = ..., *,
        dy: _Source | None = ..., dhn: _Source | None = ..., dcn: _Source | None = ...,
        dx: _Source | Literal[False] | None = ..., dw_ih: _Source | Literal[False] | None = ...,
        dw_hh: _Source | Literal[False] | None = ..., dbias_ih: _Source | Literal[False] | None = ...,
        dbias_hh: _Source | Literal[False] | None = ..., dh0: _Source | Literal[False] | None = ...,
        dc0: _Source | Literal[False] | None = ..., gate_order: GateOrder | str = ..., batch_first: bool = ...,
        reverse: bool = ..., accumulate: bool = ..., compute: _Compute = ..., stream: Stream | None = ...,
        after: Sequence[Job[Any]] = ..., priority: int = ..., untracked: bool = ..., timeout: float | None = ...,
        label: str | None = ...,
    ) -> Job[tuple[Any, Any, Any, Any, Any, Any, Any]]: ...
    def lstm_backward(
        self, x: _Source, w_ih: _Source, w_hh: _Source, y: _Source, reserve: _Source, h0: _Source | None = ..., *,
        dy: _Source | None = ..., dhn: _Source | None = ..., dcn: _Source | None = ...,
        dx: _Source | Literal[False] | None = ..., dw_ih: _Source | Literal[False] | None = ...,
        dw_hh: _Source | Literal[False] | None = ..., dbias_ih: _Source | Literal[False] | None = ...,
        dbias_hh: _Source | Literal[False] | None = ..., dh0: _Source | Literal[False] | None = ...,
        dc0: _Source | Literal[False] | None = ..., gate_order: GateOrder | str = ..., batch_first: bool = ...,
        reverse: bool = ..., accumulate: bool = ..., compute: _Compute = ..., stream: Stream | None = ...,
        after: Sequence[Job[Any]] = ..., priority: int = ..., untracked: bool = ..., timeout: float | None = ...,
        label: str | None = ...,
    ) -> tuple[Any, Any, Any, Any, Any, Any, Any]: ...
    def gru_backward_async(
        self, x: _Source, w_ih: _Source, w_hh: _Source, y: _Source, reserve: _Source, h0: _Source | None = ..., *,
        dy: _Source | None = ..., dhn: _Source | None = ..., dx: _Source | Literal[False] | None = ...,
        dw_ih: _Source | Literal[False] | None = ..., dw_hh: _Source | Literal[False] | None = ...,
        dbias_ih: _Source | Literal[False] | None = ..., dbias_hh: _Source | Literal[False] | None = ...,
        dh0: _Source | Literal[False] | None = ..., gate_order: GateOrder | str = ..., batch_first: bool = ...,
        reverse: bool = ..., accumulate: bool = ..., compute: _Compute = ..., stream: Stream | None = ...,
        after: Sequence[Job[Any]] = ..., priority: int = ..., untracked: bool = ..., timeout: float | None = ...,
        label: str | None = ...,
    ) -> Job[tuple[Any, Any, Any, Any, Any, Any]]: ...
    def gru_backward(
        self, x: _Source, w_ih: _Source, w_hh: _Source, y: _Source, reserve: _Source, h0: _Source | None = ..., *,
        dy: _Source | None = ..., dhn: _Source | None = ..., dx: _Source | Literal[False] | None = ...,
        dw_ih: _Source | Literal[False] | None = ..., dw_hh: _Source | Literal[False] | None = ...,
        dbias_ih: _Source | Literal[False] | None = ..., dbias_hh: _Source | Literal[False] | None = ...,
        dh0: _Source | Literal[False] | None = ..., gate_order: GateOrder | str = ..., batch_first: bool = ...,
        reverse: bool = ..., accumulate: bool = ..., compute: _Compute = ..., stream: Stream | None = ...,
        after: Sequence[Job[Any]] = ..., priority: int = ..., untracked: bool = ..., timeout: float | None = ...,
        label: str | None = ...,
    ) -> tuple[Any, Any, Any, Any, Any, Any]: ...
    def attention_backward_async(
        self, q: _Source, k: _Source, v: _Source, d_out: _Source, *, dq: _Source | Literal[False] | None = ...,
        dk: _Source | Literal[False] | None = ..., dv: _Source | Literal[False] | None = ..., mask: Mask | str | None = ...,
        mask_offset: int = ..., scale: float | None = ..., workspace: int = ..., compute: _Compute = ...,
        stream: Stream | None = ..., after: Sequence[Job[Any]] = ..., priority: int = ..., untracked: bool = ...,
        timeout: float | None = ..., label: str | None = ...,
    ) -> Job[tuple[Any, Any, Any]]: ...
    def attention_backward(
        self, q: _Source, k: _Source, v: _Source, d_out: _Source, *, dq: _Source | Literal[False] | None = ...,
        dk: _Source | Literal[False] | None = ..., dv: _Source | Literal[False] | None = ..., mask: Mask | str | None = ...,
        mask_offset: int = ..., scale: float | None = ..., workspace: int = ..., compute: _Compute = ...,
        stream: Stream | None = ..., after: Sequence[Job[Any]] = ..., priority: int = ..., untracked: bool = ...,
        timeout: float | None = ..., label: str | None = ...,
    ) -> tuple[Any, Any, Any]: ...
    def linear_async(
        self, x: _Source, w: _Source, bias: _Source | None = ..., out: _Source | None = ..., *, op_w: _Op = ...,
        activation: _Activation | None = ..., compute: _Compute = ...,
        stream: Stream | None = ..., after: Sequence[Job[Any]] = ..., priority: int = ..., untracked: bool = ...,
        timeout: float | None = ..., label: str | None = ..., options: PlanOptions | None = ...,
    ) -> Job[Any]: ...
    def linear(
        self, x: _Source, w: _Source, bias: _Source | None = ..., out: _Source | None = ..., *, op_w: _Op = ...,
        activation: _Activation | None = ..., compute: _Compute = ...,
        stream: Stream | None = ..., after: Sequence[Job[Any]] = ..., priority: int = ..., untracked: bool = ...,
        timeout: float | None = ..., label: str | None = ..., options: PlanOptions | None = ...,
    ) -> Any: ...
    def linear_backward_async(
        self, dy: _Source, x: _Source | None = ..., w: _Source | None = ..., *, dx: _Source | None = ...,
        dw: _Source | None = ..., dbias: _Source | Literal[False] | None = ..., op_w: _Op = ...,
        accumulate: bool = ..., compute: _Compute = ...,
        stream: Stream | None = ..., after: Sequence[Job[Any]] = ..., priority: int = ..., untracked: bool = ...,
        timeout: float | None = ..., label: str | None = ..., options: PlanOptions | None = ...,
    ) -> Job[tuple[Any, Any, Any]]: ...
    def linear_backward(
        self, dy: _Source, x: _Source | None = ..., w: _Source | None = ..., *, dx: _Source | None = ...,
        dw: _Source | None = ..., dbias: _Source | Literal[False] | None = ..., op_w: _Op = ...,
        accumulate: bool = ..., compute: _Compute = ...,
        stream: Stream | None = ..., after: Sequence[Job[Any]] = ..., priority: int = ..., untracked: bool = ...,
        timeout: float | None = ..., label: str | None = ..., options: PlanOptions | None = ...,
    ) -> tuple[Any, Any, Any]: ...
    def rotary_async(
        self, x: _Source, cos: _Source | None = ..., sin: _Source | None = ..., out: _Source | None = ..., *,
        head_size: int = ..., rotated_size: int = ..., position: int = ..., theta: float = ...,
        pairs: RotaryPairs | str = ..., inverse: bool = ..., stream: Stream | None = ..., after: Sequence[Job[Any]] = ...,
        priority: int = ..., untracked: bool = ..., timeout: float | None = ..., label: str | None = ...,
    ) -> Job[Any]: ...
    def rotary(
        self, x: _Source, cos: _Source | None = ..., sin: _Source | None = ..., out: _Source | None = ..., *,
        head_size: int = ..., rotated_size: int = ..., position: int = ..., theta: float = ...,
        pairs: RotaryPairs | str = ..., inverse: bool = ..., stream: Stream | None = ..., after: Sequence[Job[Any]] = ...,
        priority: int = ..., untracked: bool = ..., timeout: float | None = ..., label: str | None = ...,
    ) -> Any: ...
    def axpby_async(
        self, a: _Source, c: _Source, *, alpha: complex = ..., beta: complex = ..., activation: _Activation | None = ...,
        stream: Stream | None = ..., after: Sequence[Job[Any]] = ..., priority: int = ..., untracked: bool = ...,
        timeout: float | None = ..., label: str | None = ...,
    ) -> Job[Any]: ...
    def axpby(
        self, a: _Source, c: _Source, *, alpha: complex = ..., beta: complex = ..., activation: _Activation | None = ...,
        stream: Stream | None = ..., after: Sequence[Job[Any]] = ..., priority: int = ..., untracked: bool = ...,
        timeout: float | None = ..., label: str | None = ...,
    ) -> Any: ...
    def custom_async(
        self, function: Callable[..., object], *, reads: Sequence[_Source] = ..., writes: Sequence[_Source] = ...,
        updates: Sequence[_Source] = ..., seconds: float = ..., compute_units: int = ..., stream: Stream | None = ...,
        after: Sequence[Job[Any]] = ..., priority: int = ..., untracked: bool = ..., timeout: float | None = ..., label: str | None = ...,
    ) -> Job[Any]: ...
    def custom(
        self, function: Callable[..., object], *, reads: Sequence[_Source] = ..., writes: Sequence[_Source] = ...,
        updates: Sequence[_Source] = ..., seconds: float = ..., compute_units: int = ..., stream: Stream | None = ...,
        after: Sequence[Job[Any]] = ..., priority: int = ..., untracked: bool = ..., timeout: float | None = ..., label: str | None = ...,
    ) -> Any: ...
    def convert_async(
        self, a: _Source, out: _Source | None = ..., *, dtype: str | None = ..., op_a: _Op = ...,
        stream: Stream | None = ..., after: Sequence[Job[Any]] = ..., priority: int = ..., untracked: bool = ...,
        timeout: float | None = ..., label: str | None = ...,
    ) -> Job[Any]: ...
    def convert(
        self, a: _Source, out: _Source | None = ..., *, dtype: str | None = ..., op_a: _Op = ...,
        stream: Stream | None = ..., after: Sequence[Job[Any]] = ..., priority: int = ..., untracked: bool = ...,
        timeout: float | None = ..., label: str | None = ...,
    ) -> Any: ...
    def gather_async(
        self, table: _Source, indices: _Source, out: _Source | None = ..., *, index_type: IndexType | str | None = ...,
        from_end: bool = ..., nan: bool = ..., stream: Stream | None = ..., after: Sequence[Job[Any]] = ...,
        priority: int = ..., untracked: bool = ..., timeout: float | None = ..., label: str | None = ...,
    ) -> Job[Any]: ...
    def gather(
        self, table: _Source, indices: _Source, out: _Source | None = ..., *, index_type: IndexType | str | None = ...,
        from_end: bool = ..., nan: bool = ..., stream: Stream | None = ..., after: Sequence[Job[Any]] = ...,
        priority: int = ..., untracked: bool = ..., timeout: float | None = ..., label: str | None = ...,
    ) -> Any: ...
    def dequantize_async(
        self, x: _Source, scales: _Source, zero_points: _Source | None = ..., out: _Source | None = ..., *,
        quantization: Quantization | str = ..., dtype: str | None = ..., stream: Stream | None = ...,
        after: Sequence[Job[Any]] = ..., priority: int = ..., untracked: bool = ..., timeout: float | None = ...,
        label: str | None = ...,
    ) -> Job[Any]: ...
    def dequantize(
        self, x: _Source, scales: _Source, zero_points: _Source | None = ..., out: _Source | None = ..., *,
        quantization: Quantization | str = ..., dtype: str | None = ..., stream: Stream | None = ...,
        after: Sequence[Job[Any]] = ..., priority: int = ..., untracked: bool = ..., timeout: float | None = ...,
        label: str | None = ...,
    ) -> Any: ...
    def plan(
        self, a: _Operand, b: _Operand, c: _Operand | None = ..., *, alpha: complex = ..., beta: complex = ...,
        op_a: _Op = ..., op_b: _Op = ..., compute: _Compute = ..., bias: _Bias = ...,
        activation: _Activation | None = ..., options: PlanOptions | None = ...,
    ) -> Plan: ...
    def graph(self) -> Graph: ...
    def pipeline(
        self, shape: Sequence[int], dtype: str = ..., *, memory_limit: int = ..., depth: int = ...,
        weight_buffers: int = ..., batches_in_flight: int = ...,
        when_full: WhenFull | Literal["block", "refuse"] = ...,
    ) -> Pipeline: ...

def default_context() -> Context: ...
def set_default_context(context: Context | None) -> None: ...
@overload
def matmul(
    a: _Numpy, b: _Numpy, out: None = ..., *, alpha: complex = ..., beta: complex = ..., op_a: _Op = ...,
    op_b: _Op = ..., compute: _Compute = ..., bias: _Bias = ..., activation: _Activation | None = ...,
    copy: bool = ..., stream: Stream | None = ..., after: Sequence[Job[Any]] = ..., priority: int = ...,
    untracked: bool = ..., timeout: float | None = ..., label: str | None = ..., options: PlanOptions | None = ...,
) -> _Numpy: ...
@overload
def matmul(
    a: _Operand, b: _Operand, out: None = ..., *, alpha: complex = ..., beta: complex = ..., op_a: _Op = ...,
    op_b: _Op = ..., compute: _Compute = ..., bias: _Bias = ..., activation: _Activation | None = ...,
    copy: bool = ..., stream: Stream | None = ..., after: Sequence[Job[Any]] = ..., priority: int = ...,
    untracked: bool = ..., timeout: float | None = ..., label: str | None = ..., options: PlanOptions | None = ...,
) -> Any: ...
@overload
def matmul(
    a: _Operand, b: _Operand, out: _C, *, alpha: complex = ..., beta: complex = ..., op_a: _Op = ..., op_b: _Op = ...,
    compute: _Compute = ..., bias: _Bias = ..., activation: _Activation | None = ..., copy: bool = ...,
    stream: Stream | None = ..., after: Sequence[Job[Any]] = ..., priority: int = ..., untracked: bool = ..., timeout: float | None = ...,
    label: str | None = ...,
    options: PlanOptions | None = ...,
) -> _C: ...
@overload
def matmul_async(
    a: _Numpy, b: _Numpy, out: None = ..., *, alpha: complex = ..., beta: complex = ..., op_a: _Op = ...,
    op_b: _Op = ..., compute: _Compute = ..., bias: _Bias = ..., activation: _Activation | None = ...,
    copy: bool = ..., stream: Stream | None = ..., after: Sequence[Job[Any]] = ..., priority: int = ...,
    untracked: bool = ..., timeout: float | None = ..., label: str | None = ..., options: PlanOptions | None = ...,
) -> Job[_Numpy]: ...
@overload
def matmul_async(
    a: _Operand, b: _Operand, out: None = ..., *, alpha: complex = ..., beta: complex = ..., op_a: _Op = ...,
    op_b: _Op = ..., compute: _Compute = ..., bias: _Bias = ..., activation: _Activation | None = ...,
    copy: bool = ..., stream: Stream | None = ..., after: Sequence[Job[Any]] = ..., priority: int = ...,
    untracked: bool = ..., timeout: float | None = ..., label: str | None = ..., options: PlanOptions | None = ...,
) -> Job[Any]: ...
@overload
def matmul_async(
    a: _Operand, b: _Operand, out: _C, *, alpha: complex = ..., beta: complex = ..., op_a: _Op = ..., op_b: _Op = ...,
    compute: _Compute = ..., bias: _Bias = ..., activation: _Activation | None = ..., copy: bool = ...,
    stream: Stream | None = ..., after: Sequence[Job[Any]] = ..., priority: int = ..., untracked: bool = ..., timeout: float | None = ...,
    label: str | None = ...,
    options: PlanOptions | None = ...,
) -> Job[_C]: ...

def error_of(status: int, message: str) -> Error: ...
