// SPDX-License-Identifier: Apache-2.0
using System;

namespace StreamGemm {
  /// <summary>Images, each in a row of a matrix, whose columns are its elements. Copies and pins nothing.</summary>
  public readonly struct Images {
    internal readonly Matrix Memory;
    internal readonly long FirstChannel, UsedChannels;  // those that a matrix of windows has; 0: all

    /// <summary>Number of images.</summary>
    public long Count => Memory.Rows;
    /// <summary>Channels of an image.</summary>
    public long Channels { get; }
    /// <summary>Rows of pixels.</summary>
    public long Height { get; }
    /// <summary>Columns of pixels.</summary>
    public long Width { get; }
    /// <summary>The order of the elements of an image.</summary>
    public ImageLayout Layout { get; }
    /// <summary>Element type; 0 of default(Images), which stands for none.</summary>
    public DType DType => Memory.DType;

    Images(in Matrix memory, ImageLayout layout, long channels, long height, long width, long firstChannel = 0, long usedChannels = 0) {
      Windows.RequireRange("channels", channels, 0);
      Windows.RequireRange("height", height, 0);
      Windows.RequireRange("width", width, 0);
      if (memory.Layout != StreamGemm.Layout.RowMajor || (decimal)channels * height * width != memory.Cols)
        throw new ArgumentException("memory is " + memory + "; an image has " + channels + " x " + height + " x " + width +
                                    " elements, in a row", "memory");
      Memory = memory;
      Layout = layout;
      Channels = channels;
      Height = height;
      Width = width;
      FirstChannel = firstChannel;
      UsedChannels = usedChannels;
    }

    /// <summary>An array of images of channels of rows of pixels, or with NHWC of images of rows of pixels of channels.</summary>
    public static Images Of<T>(T[,,,] array, ImageLayout layout = ImageLayout.Nchw, DType dtype = 0) where T : struct {
      Matrix memory = Matrix.Of(array, dtype);
      bool last = layout == ImageLayout.Nhwc;
      return new Images(memory, layout, array.GetLongLength(last ? 3 : 1), array.GetLongLength(last ? 1 : 2), array.GetLongLength(last ? 2 : 3));
    }

    /// <summary>Images channel by channel; within each, rows of pixels.</summary>
    /// <param name="memory">Row major, with a row for each image.</param>
    /// <param name="channels">Channels of an image.</param>
    /// <param name="height">Rows of pixels.</param>
    /// <param name="width">Columns of pixels.</param>
    public static Images Nchw(in Matrix memory, long channels, long height, long width) =>
      new Images(memory, ImageLayout.Nchw, channels, height, width);

    /// <summary>Images by rows of pixels, each of as many consecutive elements as there are channels.</summary>
    /// <param name="memory">Row major, with a row for each image.</param>
    /// <param name="height">Rows of pixels.</param>
    /// <param name="width">Columns of pixels.</param>
    /// <param name="channels">Channels of an image.</param>
    public static Images Nhwc(in Matrix memory, long height, long width, long channels) =>
      new Images(memory, ImageLayout.Nhwc, channels, height, width);

    /// <summary>Some channels, for a matrix of windows of them: a group of channels. The same elements, none copied.</summary>
    /// <param name="first">The first one.</param>
    /// <param name="count">Their number, at least 1.</param>
    public Images Slice(long first, long count) {
      if (first < 0 || first >= Channels) throw new ArgumentOutOfRangeException("first", first, "first is outside the " + Channels + " channels");
      if (count < 1 || count > Channels - first)
        throw new ArgumentOutOfRangeException("count", count, "the slice ends outside the " + Channels + " channels");
      return new Images(Memory, Layout, Channels, Height, Width, first, count);
    }

    /// <inheritdoc/>
    public override string ToString() => Describe(DType, Layout, Count, Channels, Height, Width) +
      (UsedChannels == 0 ? "" : ", channels " + FirstChannel + " to " + (FirstChannel + UsedChannels - 1));

    internal Internal.sg_images In(Pins pins) => new Internal.sg_images { data = pins.Take(Memory), stride = Memory.Ld };

    internal void RequireWritable(string name) => Memory.RequireWritable(name);

    /// <summary>Throws unless these images are of this form and have all channels, or are a part, which may have some.</summary>
    internal void Require(string name, DType dtype, ImageLayout layout, long count, long channels, long height, long width, bool part = false) {
      if (DType != dtype || Layout != layout || Count != count || Channels != channels || Height != height || Width != width || (UsedChannels != 0 && !part))
        throw new ArgumentException(name + " is " + this + "; it must be " + Describe(dtype, layout, count, channels, height, width), name);
    }

    static string Describe(DType dtype, ImageLayout layout, long count, long channels, long height, long width) =>
      count + " " + layout + " images of " + channels + " channels of " + height + " x " + width + " " + dtype;
  }
}
