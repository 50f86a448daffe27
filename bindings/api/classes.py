# SPDX-License-Identifier: Apache-2.0
# fmt: off
"""The classes that Java and C# share, one definition each: views of operands, and the calls of handles. members.py writes both
languages from them. This file is data for it.

- a class of a struct has its fields, with its initial values, and check() for their ranges: both also from the header
- a class without documentation is written by hand, but for these members
- a field is `name: "Documentation."`, with its type before if that is not long, and C#'s name behind if that is another; None is of
  the package, and `= value` follows from others
- a docstring is followed by `name: ...` for parameters, `-> ...` for the result and `raises Name: ...`
- `long[1]`, or [value] in a bind, is a parameter that C# may leave out, and then its last; a default is one in both languages
- a name that begins with _ is of the package
- bind(sg_x, "javaName", "CsharpName", parameter=default) is a method that only calls the library: all else is in the header
- sg_x(...) calls the library, with this object's handle first unless `self` stands among the arguments
- @csharp names what C# names in its own way, and @only is of one language
- `{typed(type, text)}` is a type with a text as the language writes it, and a name in brackets refers to a member
"""


class Heads(View):
    """An operand of an attention: tokens of each head of each batch, in the memory of a matrix. The elements of a token are
    contiguous. Immutable; copies nothing.
    """

    first: None  # elements of the memory before the first one
    batch: "Number of batches."
    heads: ("Number of heads.", "Count")
    tokens: "Tokens of each head of each batch."
    width: "Elements of a token."
    batch_stride: None
    head_stride: None
    token_stride: None

    @static
    def in_columns(memory: Matrix, batch: long[1], heads: long) -> Heads:
        """Tokens by rows, with their heads side by side in the columns.

        memory: row major; the tokens of each batch follow each other
        batch: number of batches, which divides the rows
        heads: number of heads, which divides the columns
        -> the operand
        """
        _require_row_major(memory)
        count = _divided(memory.rows, batch, memory, "batch")
        size = _divided(memory.cols, heads, memory, "heads")
        return Heads(memory, 0, batch, heads, count, size, count * memory.ld, size, memory.ld)

    @static
    def in_rows(memory: Matrix, batch: long[1], heads: long) -> Heads:
        """Tokens by rows, head after head, batch after batch.

        memory: row major; a row is a token of one head
        batch: number of batches
        heads: number of heads; its product with the batches divides the rows
        -> the operand
        """
        _require_row_major(memory)
        count = _divided(_divided(memory.rows, batch, memory, "batch"), heads, memory, "heads")
        return Heads(memory, 0, batch, heads, count, memory.cols, heads * count * memory.ld, count * memory.ld, memory.ld)

    @static
    def strided(memory: Matrix, batch: long, heads: long, tokens: long, width: long, batch_stride: long, head_stride: long, token_stride: long) -> Heads:
        """Tokens anywhere in the memory of a matrix. Strides are in elements and not negative.

        memory: of which type and memory count
        batch: number of batches
        heads: number of heads
        tokens: tokens of each head
        width: elements of a token
        batch_stride: from one batch to the next
        head_stride: from one head to the next
        token_stride: from one token to the next
        -> the operand
        """
        needed = Shapes.sum(_reach("batch", batch, "batchStride", batch_stride), _reach("heads", heads, "headStride", head_stride))
        needed = Shapes.sum(needed, Shapes.sum(_reach("tokens", tokens, "tokenStride", token_stride), _reach("width", width, "width", 1) + 1))
        if batch != 0 and heads != 0 and tokens != 0 and width != 0 and needed > memory.span:
            refuse("memory", f"the tokens span {needed} elements, and the memory, {memory}, has {memory.span}")
        return Heads(memory, 0, batch, heads, tokens, width, batch_stride, head_stride, token_stride)

    @static
    def _reach(name: Text, count: long, of_stride: Text, stride: long) -> long:
        """Elements from the first to the last of some at a distance."""
        Shapes.require_at_least(name, count, 0)
        Shapes.require_at_least(of_stride, stride, 0)
        return Shapes.product(max(count, 1) - 1, stride)

    @csharp("Slice")
    def tokens(start: long, count: long) -> Heads:
        """Some tokens of each head: of a cache, those that it has so far.

        start: the first one
        count: their number
        -> a view of the same memory
        """
        if start < 0 or count < 0 or start > tokens - count:
            refuse_range("count", count, f"{count} tokens from {start} of {tokens}")
        skipped = 0 if count == 0 else start * token_stride
        return Heads(memory, first + skipped, batch, heads, count, width, batch_stride, head_stride, token_stride)

    @only("java")
    def _is_part() -> bool:
        """Whether elements of the memory may not belong to it."""
        return batch * heads * tokens * width != memory.rows * memory.cols

    def _require(name: Text, type: DType, has_batch: long, has_heads: long, has_tokens: long, has_width: long):
        """Throws unless it is of this form."""
        if dtype != type or batch != has_batch or heads != has_heads or tokens != has_tokens or width != has_width:
            refuse(name, f"{name} is {self}; it must be {_describe(type, has_batch, has_heads, has_tokens, has_width)}")

    def to_string() -> Text:
        return _describe(dtype, batch, heads, tokens, width)

    @static
    def _describe(type: DType, batch: long, heads: long, tokens: long, width: long) -> Text:
        """The form of such an operand."""
        return typed(type, f"{batch} x {heads} heads x {tokens} tokens x {width}")

    @static
    def _require_row_major(memory: Matrix):
        """Throws unless the memory is row major."""
        if memory.layout != SG_LAYOUT_ROW_MAJOR:
            refuse("memory", f"memory is {memory}; it must be row major")

    @static
    def _divided(size: long, by: long, memory: Matrix, name: Text) -> long:
        """Throws unless it divides."""
        if by < 1 or size % by != 0:
            refuse(name, f"{name} is {by}, which does not divide {size} of {memory}")
        return size // by


class Images(View):
    """Images, each in a row of a matrix, whose columns are its elements. Immutable; copies nothing."""

    count: "Number of images." = memory.rows
    layout: (ImageLayout, "The order of the elements of an image.")
    channels: "Channels of an image."
    height: "Rows of pixels."
    width: "Columns of pixels."
    first_channel: None  # those that a matrix of windows has
    used_channels: None
    stride: None = memory.ld

    @static
    def nchw(memory: Matrix, channels: long, height: long, width: long) -> Images:
        """Images channel by channel; within each, rows of pixels.

        memory: row major, with a row for each image
        channels: channels of an image
        height: rows of pixels
        width: columns of pixels
        -> the images
        """
        return _of(memory, SG_IMAGE_NCHW, channels, height, width)

    @static
    def nhwc(memory: Matrix, height: long, width: long, channels: long) -> Images:
        """Images by rows of pixels, each of as many consecutive elements as there are channels.

        memory: row major, with a row for each image
        height: rows of pixels
        width: columns of pixels
        channels: channels of an image
        -> the images
        """
        return _of(memory, SG_IMAGE_NHWC, channels, height, width)

    @static
    def _of(memory: Matrix, layout: ImageLayout, channels: long, height: long, width: long) -> Images:
        """Images of all channels."""
        Windows._require_range("channels", channels, 0)
        Windows._require_range("height", height, 0)
        Windows._require_range("width", width, 0)
        if memory.layout != SG_LAYOUT_ROW_MAJOR or Shapes.product(channels * height, width) != memory.cols:
            refuse("memory", f"memory is {memory}; an image has {channels} x {height} x {width} elements, in a row")
        return Images(memory, layout, channels, height, width, 0, 0)

    @csharp("Slice")
    def channels(start: long, count: long) -> Images:
        """Some channels, for a matrix of windows of them: a group of channels.

        start: the first one
        count: their number, at least 1
        -> a view of the same images
        """
        if start < 0 or count < 1 or start > channels - count:
            refuse_range("count", count, f"{count} channels from {start} of {channels}")
        return Images(memory, layout, channels, height, width, start, count)

    def _is_part() -> bool:
        """Whether it is a range of channels."""
        return used_channels != 0

    def _require(name: Text, type: DType, order: ImageLayout, has_count: long, has_channels: long, has_height: long, has_width: long, may_be_part: bool):
        """Throws unless these images are of this form and have all channels, or may be a part."""
        same = dtype == type and layout == order and memory.rows == has_count
        if not same or channels != has_channels or height != has_height or width != has_width or is_part() and not may_be_part:
            refuse(name, f"{name} is {self}; it must be {_describe(type, order, has_count, has_channels, has_height, has_width)}")

    def to_string() -> Text:
        part = f", channels {first_channel} to {first_channel + used_channels - 1}" if is_part() else ""
        return _describe(dtype, layout, memory.rows, channels, height, width) + part

    @static
    def _describe(type: DType, layout: ImageLayout, count: long, channels: long, height: long, width: long) -> Text:
        """The form of such images."""
        return typed(type, f"{count} {layout} images of {channels} channels of {height} x {width}")


class Windows(sg_windows):
    """The windows of a convolution. Read during the call only."""

    layout: (FilterLayout, "The order of the elements of a filter, and of the columns of a matrix of windows. Default: OIHW, channel by channel, as PyTorch and ONNX store filters; OHWI: pixel by pixel.")

    @only("java")
    def padding(rows: long, columns: long) -> Windows:
        """Sets the zeros around an image.

        rows: above and below
        columns: on the left and on the right
        -> these windows
        """
        return padding(rows, columns, rows, columns)

    def out_height(height: long) -> long:
        """The number of windows below each other.

        height: rows of an image
        -> the height of the result of a convolution
        """
        check()
        return _count("kernelH", height, pad_top + pad_bottom, kernel_h, stride_h, dilation_h)

    def out_width(width: long) -> long:
        """The number of windows beside each other.

        width: columns of an image
        -> the width of the result of a convolution
        """
        check()
        return _count("kernelW", width, pad_left + pad_right, kernel_w, stride_w, dilation_w)

    @static
    def _count(name: Text, size: long, pads: long, kernel: long, stride: long, dilation: long) -> long:
        """The number of windows in a row."""
        span = dilation * (kernel - 1) + 1
        if size > 0 and span > size + pads:
            refuse(name, f"{name} is {kernel}, which spans {span} pixels; the padded image has {size + pads}")
        return 0 if size == 0 else (size + pads - span) // stride + 1

    @static
    def _require_range(name: Text, value: long, least: long):
        """Throws unless a size is possible."""
        if value < least or value >= 536870912:
            refuse_range(name, value, f"{name} is {value}; it must be from {least} to 2^29 - 1")


class Sequence(View):
    """Steps of a batch of sequences, each in a row of a matrix. Immutable; copies nothing."""

    steps: "Number of steps."
    batch: "Number of sequences."
    values: "Values of a step." = memory.cols
    step_stride: None
    batch_stride: None

    @static
    def by_step(memory: Matrix, batch: long[1]) -> Sequence:
        """The first step of all sequences, then the second, ...

        memory: row major; a row is a step of one sequence. A layer in both directions writes two blocks of columns
        batch: number of sequences, which divides the rows
        -> the sequences
        """
        return Sequence(memory, _steps_of(memory, batch), batch, batch * memory.ld, memory.ld)

    @static
    def by_batch(memory: Matrix, batch: long[1]) -> Sequence:
        """All steps of the first sequence, then those of the second, ...

        memory: row major; a row is a step of one sequence. A layer in both directions writes two blocks of columns
        batch: number of sequences, which divides the rows
        -> the sequences
        """
        count = _steps_of(memory, batch)
        return Sequence(memory, count, batch, memory.ld, count * memory.ld)

    @static
    def _steps_of(memory: Matrix, batch: long) -> long:
        """Throws unless the batch divides the rows."""
        Heads._require_row_major(memory)
        if batch < 1 or memory.rows % batch != 0:
            refuse("batch", f"batch is {batch}, which does not divide the rows of {memory}")
        return memory.rows // batch

    @only("java")
    def _is_part() -> bool:
        """Whether elements of the memory may not belong to it."""
        return False

    def _require(name: Text, type: DType, has_steps: long, has_batch: long, has_values: long):
        """Throws unless it is of this form."""
        if dtype != type or steps != has_steps or batch != has_batch or memory.cols != has_values:
            refuse(name, f"{name} is {self}; it must be {_describe(type, has_steps, has_batch, has_values)}")

    def to_string() -> Text:
        return _describe(dtype, steps, batch, memory.cols)

    @static
    def _describe(type: DType, steps: long, batch: long, values: long) -> Text:
        """The form of such sequences."""
        return typed(type, f"{steps} steps of {batch} sequences of {values} values")


class Shapes:
    """Checks of operands that the library cannot make: of memory of which it has the address alone."""

    @static
    def gates(cell: Cell) -> long:
        """The number of gates of a cell."""
        return 4 if cell == SG_CELL_LSTM else 3

    @static
    def wide(type: DType) -> DType:
        """The type of what a layer keeps for its gradients."""
        return SG_DTYPE_F64 if type == SG_DTYPE_F64 else SG_DTYPE_F32

    @static
    def product(x: long, y: long) -> long:
        """Of numbers that are not negative; the largest number instead of a larger one."""
        return x * y if real(x) * y < 9e18 else LARGEST

    @static
    def sum(x: long, y: long) -> long:
        """Likewise."""
        return x + y if x <= LARGEST - y else LARGEST

    @static
    def require_at_least(name: Text, value: long, least: long):
        """Throws unless a number is large enough."""
        if value < least:
            refuse_range(name, value, f"{name} is {value}")

    @static
    def require_multiple(size: long, by: long, which: Text, of: Text):
        """Throws unless a size is a multiple of another one, which stands for # in `which`."""
        if by < 1 or size % by != 0:
            refuse(which.replace("#", "" + by) + f" the {size} of {of}")

    @static
    def require_for(needing: Text, given: bool, name: Text, is_there: bool):
        """Throws unless an operand that is needed is given."""
        if given and not is_there:
            refuse(name, f"{name} is {MISSING}; {needing} needs it")

    @static
    def require_contiguous(m: Matrix, rows: long, cols: long, type: DType, name: Text):
        """Throws unless an operand, which may be left out, has this shape, and its values follow each other row by row."""
        if is_missing(m):
            return
        by_rows: bool = m.layout == SG_LAYOUT_ROW_MAJOR or rows == 1 or cols == 1
        same_type: bool = type == ANY or m.dtype == type
        if m.rows != rows or m.cols != cols or not by_rows or m.span != rows * cols or not same_type:
            of = "" if type == ANY else f" of {type}"
            refuse(name, f"{name} is {m}; it must be {rows} x {cols} contiguous values" + of + ("" if rows == 1 else ", row by row"))

    @static
    def require_elements(m: Matrix, count: long, type: DType, name: Text):
        """Throws unless an operand, which may be left out, has so many values, which follow each other row by row."""
        if is_missing(m):
            return
        by_rows: bool = m.layout == SG_LAYOUT_ROW_MAJOR or m.rows == 1 or m.cols == 1
        if m.rows * m.cols != count or m.span != count or not by_rows or m.dtype != type:
            refuse(name, f"{name} is {m}; it must be {count} contiguous values of {type}, row by row")

    @static
    def require_rows(m: Matrix, rows: long, cols: long, type: DType, name: Text, stride: long) -> long:
        """A row for each sequence. Rows of all such matrices are equally far apart, which is the result."""
        if m.dtype != type or m.rows != rows or m.cols != cols or m.layout != SG_LAYOUT_ROW_MAJOR:
            refuse(name, f"{name} is {m}; it must be {rows} x {cols} by rows, of {type}")
        if stride != 0 and stride != m.ld:
            refuse(name, f"{name} is {m}; the leading dimension of another state is {stride}")
        return m.ld

    @static
    def check_elementwise(function: Function, a: Matrix, b: Matrix, c: Matrix):
        """Throws unless the function has as many operands."""
        two: bool = number(function) >= number(SG_FUNCTION_ADD)
        if two == is_missing(b):
            refuse("b", (f"b is {MISSING}; " if two else "b is given; ") + f"{function} has " + ("two operands" if two else "one operand"))

    @static
    def check_linear(x: Matrix, w: Matrix, y: Matrix, op: Transpose):
        """Throws unless the shapes agree, in the words of the library, which knows a linear layer's plan as that of a GEMM."""
        if is_missing(x) or is_missing(w) or is_missing(y):
            return
        if op != SG_TRANSPOSE_N and op != SG_TRANSPOSE_T:
            refuse(OP_W, OP_W + f" is {number(op)}; it must be 0 (N) or 1 (T)")
        if y.rows != x.rows:
            refuse("y", f"y is {y.rows} x {y.cols}; with this x it must be {x.rows} x {y.cols}")
        rows: long = x.cols if op == SG_TRANSPOSE_N else y.cols
        cols: long = y.cols if op == SG_TRANSPOSE_N else x.cols
        if w.rows != rows or w.cols != cols:
            refuse("w", f"w is {w.rows} x {w.cols}; with this x, y and op of w it must be {rows} x {cols}")


class Stream(NativeObject):
    """A stream: its submissions run in order. Safe for use by several threads."""

    bind(sg_stream_priority)
    bind(sg_stream_compute_units)
    bind(sg_stream_is_partition)
    bind(sg_stream_query, "isIdle", "IsIdle")
    bind(sg_stream_synchronize)
    bind(sg_stream_wait_event, "waitFor", "WaitFor")


class Event(NativeObject):
    """A marker in a stream: other streams and the host can wait for it, and measure the time between two. It counts as
    complete until it is recorded.
    """

    bind(sg_event_record, this="java")
    bind(sg_event_native, "address", "GetNative")
    bind(sg_event_query, "hasHappened", "HasHappened")
    bind(sg_event_wait, "await")

    @only("java")
    def seconds_until(end: Event) -> double:
        """Time from this event to a later one, both complete, on the device's clock (virtual on simulated devices).

        end: the later event
        -> seconds
        raises IllegalState: if one is not complete yet
        """
        _require_happened(end)
        return sg_event_elapsed(end)

    @only("csharp")
    def seconds_since(start: Event) -> double:
        """Time from another event to this one, both complete, in seconds with the full resolution of the device's clock.

        start: the earlier event
        -> seconds
        raises IllegalState: if one is not complete yet
        """
        _require_happened(start)
        return sg_event_elapsed(start, self)

    def _require_happened(other: Event):
        """Throws unless both are complete."""
        if not has_happened() or not other.has_happened():
            refuse_state("an event has not happened yet")


class Trace(NativeObject):
    bind(sg_trace_write, format=SG_TRACE_FORMAT_AUTO)
    bind(sg_trace_export)
    bind(sg_trace_get_metrics, "metrics", "Metrics")
    bind(sg_trace_get_stream_metrics, "metrics", "Metrics")
    bind(sg_trace_overlap_jobs, "overlap", "Overlap", only="csharp")
    bind(sg_trace_overlap_streams, "overlap", "Overlap")


class Plan(NativeObject):
    bind(sg_plan_get_prediction, "prediction", "Prediction")
    bind(sg_plan_device_size)
    bind(sg_plan_describe, format=[SG_PLAN_FORMAT_TEXT])


class Context(NativeObject):
    bind(sg_context_device_count)
    bind(sg_context_get_device_info, "deviceInfo", "GetDeviceInfo")
    bind(sg_context_available_memory)
    bind(sg_context_get_metrics, "metrics", "Metrics")
    bind(sg_context_synchronize)
    bind(sg_stream_wrap, "wrapStream", "WrapStream")
    bind(sg_event_create, "event", "CreateEvent")
    bind(sg_event_wrap, "wrapEvent", "WrapEvent")
    bind(sg_graph_create, "graph", "CreateGraph")

    @csharp("MemoryKindOf")
    def memory_kind(matrix: Matrix) -> MemoryKind:
        """The memory space of a matrix, as the device sees it: is it pinned?

        matrix: the matrix
        -> PAGEABLE for a matrix in an array; on the cpu otherwise always DEVICE
        """
        if matrix.address == 0:
            return SG_MEMORY_PAGEABLE
        return sg_context_memory_kind(matrix.address, max(1, matrix.rows * matrix.cols))


class Pipeline(NativeObject):
    bind(sg_pipeline_prepare, only="java")
    bind(sg_pipeline_describe)
