# SPDX-License-Identifier: Apache-2.0
"""Convolutions and their gradients. Each public function lists all of its parameters."""

from . import _raw
from ._enums import FilterLayout, ImageLayout, integer, value_of
from ._errors import InvalidArgument
from ._job import Job, finished

_NOTHING = ()
_MOST = (1 << 63) - 1
_SIZE = 1 << 29  # sizes are less


def _integers(given, name, counts, low=-_SIZE, high=_SIZE):
    """A tuple of integers; one number stands for two equal ones."""
    values = tuple(given) if hasattr(given, "__iter__") else (given, given)
    if len(values) not in counts:
        raise InvalidArgument(f"{name} has {len(values)} numbers; it must have {' or '.join(map(str, counts))}")
    return tuple(integer(value, name, low, high) for value in values)


def window_arguments(stride, padding, dilation, groups, layout, filter_layout):
    """What the native functions take after the arrays: the windows, groups and layouts."""
    padding = _integers(padding, "padding", (2, 4))
    return (
        (*_integers(stride, "stride", (2,)), *_integers(dilation, "dilation", (2,)), *(padding * 2)[:4]),
        integer(groups, "groups", -_MOST, _MOST), value_of(ImageLayout, layout, "layout"),
        value_of(FilterLayout, filter_layout, "filter_layout"),
    )


def size_arguments(size):
    """The height and width of x; -1: they follow from the arrays."""
    return (-1, -1) if size is None else _integers(size, "size", (2,))


def im2col_arguments(x, kernel, out, stride, padding, dilation, channels, layout, filter_layout):
    return False, x, out, None, *_kernel_arguments(kernel, stride, padding, dilation, channels, layout, filter_layout), False


def col2im_arguments(matrix, kernel, out, shape, stride, padding, dilation, channels, layout, filter_layout, accumulate):
    shape = None if shape is None else _integers(shape, "shape", (4,), 0, _MOST)
    options = _kernel_arguments(kernel, stride, padding, dilation, channels, layout, filter_layout)
    return True, matrix, out, shape, *options, accumulate


def _kernel_arguments(kernel, stride, padding, dilation, channels, layout, filter_layout):
    windows, _, layout, columns = window_arguments(stride, padding, dilation, 1, layout, filter_layout)
    channels = (0, 0) if channels is None else _integers(channels, "channels", (2,), 0)
    return _integers(kernel, "kernel", (2,), 1), windows, layout, columns, channels


# fmt: off
class ConvMethods:
    """Convolutions of a Context, which has _target."""

    def conv2d_async(
        self, x, w, bias=None, out=None, *, stride=1, padding=0, dilation=1, groups=1, layout="nchw", filter_layout="oihw",
        activation=None, workspace=0, compute="exact", stream=None, after=_NOTHING, priority=0, untracked=False, timeout=None,
        label=None, options=None,
    ):
        """Submits out = activation(conv(x, w) + bias) and returns its Job at once.

        x: images, an array of four dimensions in the order of layout, or a Job: f64, f32, f16 or bf16. The elements of an image
            are contiguous.
        w: filters, an array of (filters, channels of a group, rows, columns), or in the order of filter_layout.
        bias: a vector with a value for each filter.
        out: the images that are written; None makes new ones.
        stride, dilation: a number, or one for rows and one for columns.
        padding: a number, or (rows, columns), or (top, left, bottom, right).
        groups: of channels; each has its own filters.
        layout: "nchw" or "nhwc", of x and out. filter_layout: "oihw" or "ohwi".
        activation: "relu" or "gelu".
        workspace: limit of the memory for windows, in bytes; 0: the library's choice.
        compute: as for gemm_async. options: PlanOptions, of which streams and memory_limit apply.
        stream, after, priority, untracked, timeout, label: as for gemm_async.
        """
        return _raw.submit_conv2d(
            Job, self._target or self._open_target(), x, w, bias, out,
            *window_arguments(stride, padding, dilation, groups, layout, filter_layout), activation,
            integer(workspace, "workspace", 0, _MOST), compute, stream, after, priority, untracked, options, timeout, label,
        )

    def conv2d(
        self, x, w, bias=None, out=None, *, stride=1, padding=0, dilation=1, groups=1, layout="nchw", filter_layout="oihw",
        activation=None, workspace=0, compute="exact", stream=None, after=_NOTHING, priority=0, untracked=False, timeout=None,
        label=None, options=None,
    ):
        """Computes out = activation(conv(x, w) + bias), waits, and returns out.

        x, w, bias, out, stride, padding, dilation, groups, layout, filter_layout, activation, workspace, compute, stream, after,
        priority, untracked, timeout, label, options: as for conv2d_async.
        """
        return finished(self.conv2d_async(
            x, w, bias, out, stride=stride, padding=padding, dilation=dilation, groups=groups, layout=layout,
            filter_layout=filter_layout, activation=activation, workspace=workspace, compute=compute, stream=stream,
            after=after, priority=priority, untracked=untracked, timeout=timeout, label=label, options=options,
        ))

    def conv2d_backward_async(
        self, dy, x=None, w=None, *, dx=None, dw=None, dbias=None, size=None, stride=1, padding=0, dilation=1, groups=1,
        layout="nchw", filter_layout="oihw", accumulate=False, workspace=0, compute="exact", stream=None, after=_NOTHING,
        priority=0, untracked=False, timeout=None, label=None, options=None,
    ):
        """Submits the gradients of a convolution as one job and returns its Job at once; the result is (dx, dw, dbias).

        dy: the gradient of the loss with respect to conv(x, w) + bias, or a Job.
        x: as given to conv2d_async; None: dw is not computed, and None in the result.
        w: as given to conv2d_async; None: dx is not computed, and None in the result; dw must be given then.
        dx: images like x: the transposed convolution of dy with w. dw: like w.
        dbias: the sums of dy over images and pixels; False: not computed. dx, dw, dbias: arrays that are written; None makes a
            new one.
        size: the height and width of dx, if neither x nor dx is given.
        stride, padding, dilation, groups, layout, filter_layout, workspace: as given to conv2d_async.
        accumulate: adds to dw and dbias, which must be given then.
        compute: as for gemm_async. options: PlanOptions, of which streams and memory_limit apply.
        stream, after, priority, untracked, timeout, label: as for gemm_async.
        """
        return _raw.submit_conv2d_backward(
            Job, self._target or self._open_target(), dy, x, w, dx, dw, dbias, *size_arguments(size),
            *window_arguments(stride, padding, dilation, groups, layout, filter_layout), accumulate,
            integer(workspace, "workspace", 0, _MOST), compute, stream, after, priority, untracked, options, timeout, label,
        )

    def conv2d_backward(
        self, dy, x=None, w=None, *, dx=None, dw=None, dbias=None, size=None, stride=1, padding=0, dilation=1, groups=1,
        layout="nchw", filter_layout="oihw", accumulate=False, workspace=0, compute="exact", stream=None, after=_NOTHING,
        priority=0, untracked=False, timeout=None, label=None, options=None,
    ):
        """Computes the gradients of a convolution, waits, and returns (dx, dw, dbias).

        dy, x, w, dx, dw, dbias, size, stride, padding, dilation, groups, layout, filter_layout, accumulate, workspace, compute,
        stream, after, priority, untracked, timeout, label, options: as for conv2d_backward_async.
        """
        return finished(self.conv2d_backward_async(
            dy, x, w, dx=dx, dw=dw, dbias=dbias, size=size, stride=stride, padding=padding, dilation=dilation, groups=groups,
            layout=layout, filter_layout=filter_layout, accumulate=accumulate, workspace=workspace, compute=compute,
            stream=stream, after=after, priority=priority, untracked=untracked, timeout=timeout, label=label, options=options,
        ))

    def im2col_async(
        self, x, kernel, out=None, *, stride=1, padding=0, dilation=1, channels=None, layout="nchw", filter_layout="oihw",
        stream=None, after=_NOTHING, priority=0, untracked=False, timeout=None, label=None,
    ):
        """Submits the matrix of the windows of images, and returns its Job at once.

        x: images, an array of four dimensions of any element type in the order of layout, or a Job. The elements of an image are
            contiguous. In device memory, unless the device is the cpu.
        kernel: rows and columns of a window, or one number for both.
        out: the matrix that is written, with a row for each window of each image and a column for each pixel of a window in each
            channel; None makes a new one.
        stride, padding, dilation, layout: as for conv2d_async.
        channels: the first channel and the number of channels that the matrix has; None: all.
        filter_layout: the order of the columns: "oihw", channel by channel, or "ohwi", pixel by pixel.
        stream, after, priority, untracked, timeout, label: as for gemm_async.
        """
        return _raw.submit_windows(
            Job, self._target or self._open_target(),
            *im2col_arguments(x, kernel, out, stride, padding, dilation, channels, layout, filter_layout), stream, after,
            priority, untracked, timeout, label,
        )

    def im2col(
        self, x, kernel, out=None, *, stride=1, padding=0, dilation=1, channels=None, layout="nchw", filter_layout="oihw",
        stream=None, after=_NOTHING, priority=0, untracked=False, timeout=None, label=None,
    ):
        """Computes the matrix of the windows of images, waits, and returns out.

        x, kernel, out, stride, padding, dilation, channels, layout, filter_layout, stream, after, priority, untracked, timeout,
        label: as for im2col_async.
        """
        return finished(self.im2col_async(
            x, kernel, out, stride=stride, padding=padding, dilation=dilation, channels=channels, layout=layout,
            filter_layout=filter_layout, stream=stream, after=after, priority=priority, untracked=untracked, timeout=timeout,
            label=label,
        ))

    def col2im_async(
        self, matrix, kernel, out=None, *, shape=None, stride=1, padding=0, dilation=1, channels=None, layout="nchw",
        filter_layout="oihw", accumulate=False, stream=None, after=_NOTHING, priority=0, untracked=False, timeout=None,
        label=None,
    ):
        """Submits the sums of windows, and returns its Job at once: each element of the images becomes the sum of the elements of
        the matrix that im2col takes from it, which is the gradient of im2col.

        matrix: as im2col makes it, or a Job: f64, f32, f16 or bf16. In device memory, unless the device is the cpu.
        kernel, stride, padding, dilation, layout, filter_layout: as given to im2col_async.
        out: the images that are written; None makes new ones.
        shape: of new images, four numbers in the order of layout.
        channels: as given to im2col_async; of other channels nothing is written, and out must be given.
        accumulate: adds to out, which must be given then.
        stream, after, priority, untracked, timeout, label: as for gemm_async.
        """
        return _raw.submit_windows(
            Job, self._target or self._open_target(),
            *col2im_arguments(
                matrix, kernel, out, shape, stride, padding, dilation, channels, layout, filter_layout, accumulate
            ),
            stream, after, priority, untracked, timeout, label,
        )

    def col2im(
        self, matrix, kernel, out=None, *, shape=None, stride=1, padding=0, dilation=1, channels=None, layout="nchw",
        filter_layout="oihw", accumulate=False, stream=None, after=_NOTHING, priority=0, untracked=False, timeout=None,
        label=None,
    ):
        """Computes the sums of windows, waits, and returns out.

        matrix, kernel, out, shape, stride, padding, dilation, channels, layout, filter_layout, accumulate, stream, after, priority,
        untracked, timeout, label: as for col2im_async.
        """
        return finished(self.col2im_async(
            matrix, kernel, out, shape=shape, stride=stride, padding=padding, dilation=dilation, channels=channels,
            layout=layout, filter_layout=filter_layout, accumulate=accumulate, stream=stream, after=after, priority=priority,
            untracked=untracked, timeout=timeout, label=label,
        ))
# fmt: on
