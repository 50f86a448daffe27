// SPDX-License-Identifier: Apache-2.0
using System;

namespace StreamGemm {
  /// <summary>The windows of a convolution.</summary>
  public sealed class Windows {
    /// <summary>Windows of some rows and columns.</summary>
    /// <param name="kernelH">Rows of a window.</param>
    /// <param name="kernelW">Columns of a window.</param>
    /// <param name="stride">Rows, and columns, from window to window.</param>
    /// <param name="padding">Rows and columns of zeros at each side of an image.</param>
    /// <param name="dilation">Rows, and columns, from one pixel of a window to the next.</param>
    public Windows(long kernelH, long kernelW, long stride = 1, long padding = 0, long dilation = 1) {
      KernelH = kernelH;
      KernelW = kernelW;
      StrideH = StrideW = stride;
      DilationH = DilationW = dilation;
      PadTop = PadLeft = PadBottom = PadRight = padding;
    }

    /// <summary>Rows of a window.</summary>
    public long KernelH { get; set; }
    /// <summary>Columns of a window.</summary>
    public long KernelW { get; set; }
    /// <summary>Rows from window to window.</summary>
    public long StrideH { get; set; }
    /// <summary>Columns from window to window.</summary>
    public long StrideW { get; set; }
    /// <summary>Rows from one pixel of a window to the next.</summary>
    public long DilationH { get; set; }
    /// <summary>Columns from one pixel of a window to the next.</summary>
    public long DilationW { get; set; }
    /// <summary>Rows of zeros above an image.</summary>
    public long PadTop { get; set; }
    /// <summary>Columns of zeros left of an image.</summary>
    public long PadLeft { get; set; }
    /// <summary>Rows of zeros below an image.</summary>
    public long PadBottom { get; set; }
    /// <summary>Columns of zeros right of an image.</summary>
    public long PadRight { get; set; }

    /// <summary>The order of the elements of a filter, and of the columns of a matrix of windows. Default: OIHW, channel by channel, as
    /// PyTorch and ONNX store filters.</summary>
    public FilterLayout Layout { get; set; }

    /// <summary>The number of windows below each other: the height of the result of a convolution.</summary>
    public long OutHeight(long height) {
      Checked(this);
      return Count(height, PadTop + PadBottom, KernelH, StrideH, DilationH);
    }

    /// <summary>The number of windows beside each other: the width of the result of a convolution.</summary>
    public long OutWidth(long width) {
      Checked(this);
      return Count(width, PadLeft + PadRight, KernelW, StrideW, DilationW);
    }

    static long Count(long size, long pads, long kernel, long stride, long dilation) {
      long room = size + pads - dilation * (kernel - 1) - 1;
      return size == 0 || room < 0 ? 0 : room / stride + 1;
    }

    internal Internal.sg_windows Native => new Internal.sg_windows {
      kernel_h = KernelH, kernel_w = KernelW, stride_h = StrideH, stride_w = StrideW, dilation_h = DilationH, dilation_w = DilationW,
      pad_top = PadTop, pad_left = PadLeft, pad_bottom = PadBottom, pad_right = PadRight
    };

    /// <summary>The windows, if all their numbers are in range.</summary>
    internal static Windows Checked(Windows windows) {
      if (windows == null) throw new ArgumentNullException("windows");
      RequireRange("windows.KernelH", windows.KernelH, 1);
      RequireRange("windows.KernelW", windows.KernelW, 1);
      RequireRange("windows.StrideH", windows.StrideH, 1);
      RequireRange("windows.StrideW", windows.StrideW, 1);
      RequireRange("windows.DilationH", windows.DilationH, 1);
      RequireRange("windows.DilationW", windows.DilationW, 1);
      RequireRange("windows.PadTop", windows.PadTop, 0);
      RequireRange("windows.PadLeft", windows.PadLeft, 0);
      RequireRange("windows.PadBottom", windows.PadBottom, 0);
      RequireRange("windows.PadRight", windows.PadRight, 0);
      return windows;
    }

    internal static void RequireRange(string name, long value, long least) {
      if (value < least || value >= 1L << 29)
        throw new ArgumentOutOfRangeException(name, value, name + " is " + value + "; it must be from " + least + " to 2^29 - 1");
    }
  }
}
