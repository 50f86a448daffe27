// SPDX-License-Identifier: Apache-2.0
package org.streamgemm;

import java.util.Objects;

/** The windows of a convolution: {@link Layers#conv2dAsync}, {@link Layers#im2colAsync}. Read during the call only. */
public final class Windows {
  final long kernelH;
  final long kernelW;
  long strideH = 1;
  long strideW = 1;
  long dilationH = 1;
  long dilationW = 1;
  long padTop;
  long padLeft;
  long padBottom;
  long padRight;
  FilterLayout layout = FilterLayout.OIHW;

  /**
   * Windows one pixel apart, without padding.
   *
   * @param kernelH rows of a window
   * @param kernelW columns of a window
   */
  public Windows(long kernelH, long kernelW) {
    this.kernelH = requireRange("kernelH", kernelH, 1);
    this.kernelW = requireRange("kernelW", kernelW, 1);
  }

  /**
   * Sets the distance of windows.
   *
   * @param strideH rows from window to window
   * @param strideW columns from window to window
   * @return these windows
   */
  public Windows stride(long strideH, long strideW) {
    this.strideH = requireRange("strideH", strideH, 1);
    this.strideW = requireRange("strideW", strideW, 1);
    return this;
  }

  /**
   * Sets the distance of the pixels of a window.
   *
   * @param dilationH rows from one to the next
   * @param dilationW columns from one to the next
   * @return these windows
   */
  public Windows dilation(long dilationH, long dilationW) {
    this.dilationH = requireRange("dilationH", dilationH, 1);
    this.dilationW = requireRange("dilationW", dilationW, 1);
    return this;
  }

  /**
   * Sets the zeros around an image.
   *
   * @param rows above and below
   * @param columns on the left and on the right
   * @return these windows
   */
  public Windows padding(long rows, long columns) {
    return padding(rows, columns, rows, columns);
  }

  /**
   * Sets the zeros around an image.
   *
   * @param top rows above
   * @param left columns on the left
   * @param bottom rows below
   * @param right columns on the right
   * @return these windows
   */
  public Windows padding(long top, long left, long bottom, long right) {
    this.padTop = requireRange("top", top, 0);
    this.padLeft = requireRange("left", left, 0);
    this.padBottom = requireRange("bottom", bottom, 0);
    this.padRight = requireRange("right", right, 0);
    return this;
  }

  /**
   * Sets the order of the elements of a filter, and of the columns of a matrix of windows.
   *
   * @param layout OIHW: channel by channel, as PyTorch and ONNX store filters; OHWI: pixel by pixel
   * @return these windows
   */
  public Windows layout(FilterLayout layout) {
    this.layout = Objects.requireNonNull(layout, "layout");
    return this;
  }

  /**
   * The number of windows below each other.
   *
   * @param height rows of an image
   * @return the height of the result of a convolution
   */
  public long outHeight(long height) {
    return windows(height, padTop + padBottom, kernelH, strideH, dilationH);
  }

  /**
   * The number of windows beside each other.
   *
   * @param width columns of an image
   * @return the width of the result of a convolution
   */
  public long outWidth(long width) {
    return windows(width, padLeft + padRight, kernelW, strideW, dilationW);
  }

  void write(Scratch s, int at) {
    long[] all = {kernelH, kernelW, strideH, strideW, dilationH, dilationW, padTop, padLeft, padBottom, padRight};
    for (int i = 0; i < all.length; ++i) s.putLong(at + 8 * i, all[i]);
  }

  private static long windows(long size, long pads, long kernel, long stride, long dilation) {
    long room = size + pads - dilation * (kernel - 1) - 1;
    return size == 0 || room < 0 ? 0 : room / stride + 1;
  }

  static long requireRange(String name, long value, long least) {
    if (value < least || value >= 1L << 29)
      throw new StreamGemmException.InvalidArgument(name + " is " + value + "; it must be from " + least + " to 2^29 - 1");
    return value;
  }
}
