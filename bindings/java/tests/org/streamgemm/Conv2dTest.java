// SPDX-License-Identifier: Apache-2.0
package org.streamgemm;

import static org.junit.Assert.assertArrayEquals;
import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertSame;
import static org.junit.Assert.assertThrows;
import static org.junit.Assert.assertTrue;

import java.util.Arrays;
import org.junit.Test;

/** Convolutions, their gradients and matrices of windows, against loops over doubles. */
public class Conv2dTest extends DeviceTest {
  private static final int COUNT = 2;
  private static final int CHANNELS = 4;
  private static final int HEIGHT = 5;
  private static final int WIDTH = 6;
  private static final int OUT = 6;
  private static final int GROUPS = 2;
  private static final int KH = 3;
  private static final int KW = 2;
  /** Of windows 2 rows and 1 column apart, whose columns are 2 apart, with padding 1, 0, 2, 1. */
  private static final int OUT_H = 3;
  private static final int OUT_W = 5;
  private static final int FILTER = CHANNELS / GROUPS * KH * KW;

  private final double[] x = numbers(COUNT * CHANNELS * HEIGHT * WIDTH);
  private final double[] w = numbers(OUT * FILTER);
  private final double[] bias = numbers(OUT);
  private final double[] dy = numbers(COUNT * OUT * OUT_H * OUT_W);

  private static Windows windows() {
    return new Windows(KH, KW).stride(2, 1).dilation(1, 2).padding(1, 0, 2, 1);
  }

  /** A product that enters an element of Y: the indices of Y, X and W. */
  private interface Term {
    void at(int y, int x, int w);
  }

  /** All products of a convolution, whose images and filters have their channels last if said so. */
  private static void terms(int out, int groups, boolean imagesLast, boolean filtersLast, Term term) {
    int perGroup = CHANNELS / groups;
    for (int n = 0; n < COUNT; ++n)
      for (int o = 0; o < out; ++o)
        for (int i = 0; i < OUT_H; ++i)
          for (int j = 0; j < OUT_W; ++j)
            for (int c = 0; c < perGroup; ++c)
              for (int kh = 0; kh < KH; ++kh)
                for (int kw = 0; kw < KW; ++kw) {
                  int row = 2 * i + kh - 1;
                  int column = j + 2 * kw;
                  if (row < 0 || row >= HEIGHT || column >= WIDTH) continue;
                  int channel = o / (out / groups) * perGroup + c;
                  term.at(image(imagesLast, n, o, i, j, out, OUT_H, OUT_W),
                      image(imagesLast, n, channel, row, column, CHANNELS, HEIGHT, WIDTH),
                      image(filtersLast, o, c, kh, kw, perGroup, KH, KW));
                }
  }

  private static int image(boolean last, int n, int c, int h, int w, int channels, int height, int width) {
    return last ? ((n * height + h) * width + w) * channels + c : ((n * channels + c) * height + h) * width + w;
  }

  private static int channelOfY(boolean last, int index) {
    return last ? index % OUT : index / (OUT_H * OUT_W) % OUT;
  }

  private double[] expected(boolean imagesLast, boolean filtersLast) {
    double[] y = new double[dy.length];
    for (int i = 0; i < y.length; ++i) y[i] = bias[channelOfY(imagesLast, i)];
    terms(OUT, GROUPS, imagesLast, filtersLast, (atY, atX, atW) -> y[atY] += x[atX] * w[atW]);
    return Arrays.stream(y).map(value -> Math.max(0, value)).toArray();
  }

  private Images images(Matrix m, boolean last, long channels, long height, long width) {
    return last ? Images.nhwc(m, height, width, channels) : Images.nchw(m, channels, height, width);
  }

  private Images ofX(Matrix m, boolean last) {
    return images(m, last, CHANNELS, HEIGHT, WIDTH);
  }

  private Images ofY(Matrix m, boolean last) {
    return images(m, last, OUT, OUT_H, OUT_W);
  }

  @Test
  public void forward() {
    for (int i = 0; i < 4; ++i) {
      boolean last = i % 2 == 1;
      boolean inner = i / 2 == 1;
      Windows windows = windows().layout(inner ? FilterLayout.OHWI : FilterLayout.OIHW);
      assertEquals(OUT_H, windows.outHeight(HEIGHT));
      assertEquals(OUT_W, windows.outWidth(WIDTH));
      Conv2d how = new Conv2d(windows).groups(GROUPS).bias(place(1, OUT, bias)).activation(Activation.RELU);
      Images from = ofX(place(COUNT, CHANNELS * HEIGHT * WIDTH, x), last);
      Images to = ofY(poisoned(COUNT, OUT * OUT_H * OUT_W), last);
      if (inner) assertSame(to, context.layers().conv2d(from, place(OUT, FILTER, w), to, how));
      else assertSame(to, context.layers().conv2dAsync(from, place(OUT, FILTER, w), to, how, DEFAULTS).join());
      holds(expected(last, inner), to.memory());
    }
  }

  @Test
  public void arraysAreCopied() {
    double[] y = new double[dy.length];
    Conv2d how = new Conv2d(windows()).groups(GROUPS).bias(Matrix.of(bias, 1, OUT)).activation(Activation.RELU);
    context.layers().conv2d(ofX(Matrix.of(x, COUNT, CHANNELS * HEIGHT * WIDTH), false), Matrix.of(w, OUT, FILTER),
        ofY(Matrix.of(y, COUNT, OUT * OUT_H * OUT_W), false), how);
    assertArrayEquals(expected(false, false), y, 1e-12);
  }

  @Test
  public void gradients() {
    double[] dx = new double[x.length];
    double[] dw = new double[w.length];
    double[] dbias = new double[OUT];
    terms(OUT, GROUPS, true, false, (atY, atX, atW) -> {
      dx[atX] += dy[atY] * w[atW];
      dw[atW] += dy[atY] * x[atX];
    });
    for (int i = 0; i < dy.length; ++i) dbias[channelOfY(true, i)] += dy[i];
    Images gradient = ofY(place(COUNT, OUT * OUT_H * OUT_W, dy), true);
    Images from = ofX(place(COUNT, CHANNELS * HEIGHT * WIDTH, x), true);
    Matrix filters = place(OUT, FILTER, w);
    Images toX = ofX(poisoned(COUNT, CHANNELS * HEIGHT * WIDTH), true);
    Matrix toW = poisoned(OUT, FILTER);
    Matrix toBias = poisoned(1, OUT);
    Conv2d how = new Conv2d(windows()).groups(GROUPS);
    context.layers().conv2dBackwardAsync(gradient, from, filters, toX, toW, toBias, how, DEFAULTS).join();
    holds(dx, toX.memory());
    holds(dw, toW);
    holds(dbias, toBias);
    how.accumulate(true);
    context.layers().conv2dBackward(gradient, from, null, null, toW, toBias, how);
    holds(Arrays.stream(dw).map(value -> 2 * value).toArray(), toW);
    context.layers().conv2dBackward(gradient, null, null, null, null, toBias, how);
    holds(Arrays.stream(dbias).map(value -> 3 * value).toArray(), toBias);
    Images alone = ofX(poisoned(COUNT, CHANNELS * HEIGHT * WIDTH), true);
    context.layers().conv2dBackward(gradient, null, filters, alone, null, null, how);
    holds(dx, alone.memory());
  }

  @Test
  public void gradientsOfF32ForF16() {
    double[] from = integers(x.length);
    double[] gradient = integers(dy.length);
    double[] expected = new double[w.length];
    terms(OUT, GROUPS, false, false, (atY, atX, atW) -> expected[atW] += gradient[atY] * from[atX]);
    Matrix toW = cast(poisoned(OUT, FILTER), DType.F32);
    Conv2d how = new Conv2d(windows()).groups(GROUPS);
    context.layers().conv2dBackward(ofY(cast(place(COUNT, OUT * OUT_H * OUT_W, gradient), DType.F16), false),
        ofX(cast(place(COUNT, CHANNELS * HEIGHT * WIDTH, from), DType.F16), false), null, null, toW, null, how);
    holds(expected, cast(toW, DType.F64));
  }

  @Test
  public void matricesOfWindows() {
    int rows = COUNT * OUT_H * OUT_W;
    int columns = CHANNELS * KH * KW;
    double[] matrix = new double[rows * columns];
    double[] counts = new double[x.length];
    terms(1, 1, false, true, (row, atX, column) -> {
      matrix[row * columns + column] = x[atX];
      counts[atX] += 1;
    });
    Images from = ofX(place(COUNT, CHANNELS * HEIGHT * WIDTH, x), false);
    Matrix made = poisoned(rows, columns);
    Windows windows = windows().layout(FilterLayout.OHWI);
    assertSame(made, context.layers().im2colAsync(from, made, windows, DEFAULTS).join());
    holds(matrix, made);
    Images sums = ofX(poisoned(COUNT, CHANNELS * HEIGHT * WIDTH), false);
    assertSame(sums, context.layers().col2imAsync(made, sums, windows, false, DEFAULTS).join());
    double[] expected = new double[x.length];
    for (int i = 0; i < x.length; ++i) expected[i] = counts[i] * x[i];
    holds(expected, sums.memory());
    context.layers().col2im(made, sums, windows, true);
    holds(Arrays.stream(expected).map(value -> 2 * value).toArray(), sums.memory());

    Images range = from.channels(1, 2); // of one pixel: columns 1 and 2 of each pixel
    Matrix pixels = poisoned(COUNT * HEIGHT * WIDTH, 2);
    context.layers().im2col(range, pixels, new Windows(1, 1));
    double[] chosen = new double[COUNT * HEIGHT * WIDTH * 2];
    for (int i = 0; i < chosen.length; ++i) {
      int pixel = i / 2 % (HEIGHT * WIDTH);
      chosen[i] = x[((i / 2 / (HEIGHT * WIDTH)) * CHANNELS + 1 + i % 2) * HEIGHT * WIDTH + pixel];
    }
    holds(chosen, pixels);
  }

  @Test
  public void wrongCallsNameTheArgument() {
    Images from = ofX(place(COUNT, CHANNELS * HEIGHT * WIDTH, x), false);
    Images to = ofY(poisoned(COUNT, OUT * OUT_H * OUT_W), false);
    Matrix filters = place(OUT, FILTER, w);
    Layers layers = context.layers();
    Conv2d how = new Conv2d(windows()).groups(GROUPS);
    refused("y is f64 2 NCHW images of 6 channels of 3 x 5; it must be f64 2 NCHW images of 6 channels of 5 x 6",
        () -> layers.conv2d(from, filters, to, new Conv2d(new Windows(1, 1)).groups(GROUPS)));
    refused("w is f64 6 x 12", () -> layers.conv2dAsync(from, filters, to, new Conv2d(windows()), DEFAULTS));
    refused("groups is 4, which does not divide the 6 of y", () -> layers.conv2d(from, filters, to, new Conv2d(windows()).groups(4)));
    refused("x is f64 2 NCHW images of 4 channels of 5 x 6, channels 1 to 2", () -> layers.conv2d(from.channels(1, 2), filters, to, how));
    refused("w is null; dx needs it", () -> layers.conv2dBackward(to, from, null, from, null, null, how));
    refused("dbias is f64 1 x 5", () -> layers.conv2dBackward(to, null, null, null, null, poisoned(1, 5), how));
    refused("strideH is 0", () -> new Windows(1, 1).stride(0, 1));
    refused("memory is f64 2 x 120", () -> Images.nchw(from.memory(), 3, HEIGHT, WIDTH));
    refused("matrix is 30 x 23", () -> layers.im2col(from, poisoned(30, 23), windows()));
    refused("5 channels from 0 of 4", () -> from.channels(0, 5));
    StreamGemmException.OutOfMemory small =
        assertThrows(StreamGemmException.OutOfMemory.class, () -> layers.conv2dBackward(to, from, null, null, filters, null, how.workspace(1)));
    assertTrue(small.getMessage(), small.getMessage().contains("of workspace; the limit is 1"));
    how.workspace(0);
    fails(submit -> layers.conv2dAsync(from, filters, to, how, submit));
    fails(submit -> layers.conv2dBackwardAsync(to, null, filters, ofX(poisoned(COUNT, CHANNELS * HEIGHT * WIDTH), false), null, null, how, submit));
    fails(submit -> layers.im2colAsync(from, poisoned(30, 24), windows(), submit));
  }
}
