// SPDX-License-Identifier: Apache-2.0
package org.streamgemm;

/** Images, each in a row of a matrix, whose columns are its elements. Immutable; copies nothing. */
public final class Images {
  final Matrix memory;
  final ImageLayout layout;
  final long channels;
  final long height;
  final long width;
  /** The channels that a matrix of windows has. */
  final long firstChannel;
  final long usedChannels;

  private Images(Matrix memory, ImageLayout layout, long channels, long height, long width, long firstChannel, long usedChannels) {
    this.memory = memory;
    this.layout = layout;
    this.channels = channels;
    this.height = height;
    this.width = width;
    this.firstChannel = firstChannel;
    this.usedChannels = usedChannels;
  }

  /**
   * Images channel by channel; within each, rows of pixels.
   *
   * @param memory row major, with a row for each image
   * @param channels channels of an image
   * @param height rows of pixels
   * @param width columns of pixels
   * @return the images
   */
  public static Images nchw(Matrix memory, long channels, long height, long width) {
    return of(memory, ImageLayout.NCHW, channels, height, width);
  }

  /**
   * Images by rows of pixels, each of as many consecutive elements as there are channels.
   *
   * @param memory row major, with a row for each image
   * @param height rows of pixels
   * @param width columns of pixels
   * @param channels channels of an image
   * @return the images
   */
  public static Images nhwc(Matrix memory, long height, long width, long channels) {
    return of(memory, ImageLayout.NHWC, channels, height, width);
  }

  private static Images of(Matrix memory, ImageLayout layout, long channels, long height, long width) {
    Windows.requireRange("channels", channels, 0);
    Windows.requireRange("height", height, 0);
    Windows.requireRange("width", width, 0);
    if (memory.layout != Layout.ROW_MAJOR || !isProduct(memory.cols, channels, height, width))
      throw new StreamGemmException.InvalidArgument("memory is " + memory + "; an image has " + channels + " x " + height
          + " x " + width + " elements, in a row");
    return new Images(memory, layout, channels, height, width, 0, 0);
  }

  private static boolean isProduct(long elements, long channels, long height, long width) {
    return Math.multiplyHigh(channels * height, width) == 0 && channels * height * width == elements;
  }

  /**
   * Some channels, for a matrix of windows of them: a group of channels.
   *
   * @param first the first one
   * @param count their number, at least 1
   * @return a view of the same images
   */
  public Images channels(long first, long count) {
    if (first < 0 || count < 1 || first > channels - count)
      throw new StreamGemmException.InvalidArgument(count + " channels from " + first + " of " + channels);
    return new Images(memory, layout, channels, height, width, first, count);
  }

  /**
   * Number of images.
   *
   * @return the number
   */
  public long count() {
    return memory.rows;
  }

  /**
   * Channels of an image.
   *
   * @return the number
   */
  public long channels() {
    return channels;
  }

  /**
   * Rows of pixels.
   *
   * @return the number
   */
  public long height() {
    return height;
  }

  /**
   * Columns of pixels.
   *
   * @return the number
   */
  public long width() {
    return width;
  }

  /**
   * The memory of the images.
   *
   * @return the matrix that this was made of
   */
  public Matrix memory() {
    return memory;
  }

  /** Whether it is a range of channels. */
  boolean isPart() {
    return usedChannels != 0;
  }

  DType dtype() {
    return memory.dtype;
  }

  void write(Scratch s, int at, long place) {
    s.putLong(at, place);
    s.putLong(at + 8, memory.ld);
  }

  /** Throws unless these images are of this form and have all channels, or may be a part. */
  void require(String name, DType dtype, ImageLayout order, long count, long hasChannels, long hasHeight, long hasWidth,
      boolean mayBePart) {
    if (memory.dtype != dtype || layout != order || memory.rows != count || channels != hasChannels || height != hasHeight
        || width != hasWidth || (isPart() && !mayBePart))
      throw new StreamGemmException.InvalidArgument(name + " is " + this + "; it must be "
          + describe(dtype, order, count, hasChannels, hasHeight, hasWidth));
  }

  @Override
  public String toString() {
    return describe(memory.dtype, layout, memory.rows, channels, height, width)
        + (isPart() ? ", channels " + firstChannel + " to " + (firstChannel + usedChannels - 1) : "");
  }

  private static String describe(DType dtype, ImageLayout layout, long count, long channels, long height, long width) {
    return dtype.name().toLowerCase(java.util.Locale.ROOT) + " " + count + " " + layout + " images of " + channels
        + " channels of " + height + " x " + width;
  }
}
