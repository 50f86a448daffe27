// SPDX-License-Identifier: Apache-2.0
using System;
using System.Threading.Tasks;
using StreamGemm;

/// <summary>Convolutions, their gradients and matrices of windows, against loops over doubles.</summary>
static class Conv2dTest {
  const int Count = 2, Channels = 4, Height = 5, Width = 6, Out = 6, Groups = 2, KernelH = 3, KernelW = 2;
  const int OutH = 3, OutW = 5;  // of windows 2 rows and 1 column apart, whose columns are 2 apart, with padding 1, 0, 2, 1
  const int Filter = Channels / Groups * KernelH * KernelW, Pixels = Height * Width, OutPixels = OutH * OutW;
  static readonly GemmContext context = OnDevice.Context;
  static readonly double[,] x = OnDevice.Numbers(Count, Channels * Pixels), w = OnDevice.Numbers(Out, Filter), bias = OnDevice.Numbers(1, Out),
                            dy = OnDevice.Numbers(Count, Out * OutPixels);

  static Windows Shape(FilterLayout layout = FilterLayout.Oihw) => new Windows(KernelH, KernelW) {
    StrideH = 2, DilationW = 2, PadTop = 1, PadBottom = 2, PadRight = 1, Layout = layout
  };

  // The element of an image, or of a filter, whose channels are last if said so.
  static int At(bool last, int c, int h, int w, int channels, int height, int width) => last ? (h * width + w) * channels + c : (c * height + h) * width + w;

  // Calls `term` for each product that enters an element of Y, with image, element of Y, element of X, filter, element of the filter.
  static void Terms(int filters, int groups, bool imagesLast, bool filtersLast, Action<int, int, int, int, int> term) {
    int perGroup = Channels / groups;
    for (int n = 0; n < Count; ++n)
      for (int o = 0; o < filters; ++o)
        for (int i = 0; i < OutH; ++i)
          for (int j = 0; j < OutW; ++j)
            for (int c = 0; c < perGroup; ++c)
              for (int kh = 0; kh < KernelH; ++kh)
                for (int kw = 0; kw < KernelW; ++kw) {
                  int row = 2 * i + kh - 1, column = j + 2 * kw, channel = o / (filters / groups) * perGroup + c;
                  if (row < 0 || row >= Height || column >= Width) continue;
                  term(n, At(imagesLast, o, i, j, filters, OutH, OutW), At(imagesLast, channel, row, column, Channels, Height, Width), o,
                       At(filtersLast, c, kh, kw, perGroup, KernelH, KernelW));
                }
  }

  static int ChannelOfY(bool last, int element) => last ? element % Out : element / OutPixels;

  static double[,] Expected(bool imagesLast, bool filtersLast) {
    double[,] y = OnDevice.Made(Count, Out * OutPixels, (n, i) => bias[0, ChannelOfY(imagesLast, i)]);
    Terms(Out, Groups, imagesLast, filtersLast, (n, atY, atX, o, f) => y[n, atY] += x[n, atX] * w[o, f]);
    return OnDevice.Made(Count, Out * OutPixels, (n, i) => Math.Max(0, y[n, i]));
  }

  static Images OfX(Matrix m, bool last = false) => last ? Images.Nhwc(m, Height, Width, Channels) : Images.Nchw(m, Channels, Height, Width);

  static Images OfY(Matrix m, bool last = false) => last ? Images.Nhwc(m, OutH, OutW, Out) : Images.Nchw(m, Out, OutH, OutW);

  public static async Task Forward() {
    foreach (bool last in new[] { false, true }) {
      foreach (bool inner in new[] { false, true }) {
        Windows windows = Shape(inner ? FilterLayout.Ohwi : FilterLayout.Oihw);
        Expect.Equal(OutH, windows.OutHeight(Height), "rows of windows");
        Expect.Equal(OutW, windows.OutWidth(Width), "columns of windows");
        var options = new Conv2dOptions { Groups = Groups, Bias = OnDevice.Place(bias), Activation = Activation.Relu };
        Matrix y = OnDevice.Poisoned(Count, Out * OutPixels);
        if (inner) context.Conv2d(OfX(OnDevice.Place(x), last), OnDevice.Place(w), OfY(y, last), windows, options);
        else await context.Conv2dAsync(OfX(OnDevice.Place(x), last), OnDevice.Place(w), OfY(y, last), windows, options);
        OnDevice.Holds(Expected(last, inner), y, "channels last: " + last + ", filters: " + inner);
      }
    }
  }

  public static async Task ArraysArePinned() {
    var images = new double[Count, Channels, Height, Width];
    var filters = new double[Out, Channels / Groups, KernelH, KernelW];
    var y = new double[Count, Out, OutH, OutW];
    Buffer.BlockCopy(x, 0, images, 0, 8 * x.Length);
    Buffer.BlockCopy(w, 0, filters, 0, 8 * w.Length);
    Task job = context.Conv2dAsync(Images.Of(images), Matrix.Of(filters), Images.Of(y), Shape(), new Conv2dOptions { Groups = Groups, Bias = bias, Activation = Activation.Relu });
    Memory.Collect();
    await job;
    var got = new double[Count, Out * OutPixels];
    Buffer.BlockCopy(y, 0, got, 0, 8 * y.Length);
    OnDevice.Same(Expected(false, false), got, "of arrays");
  }

  public static async Task Gradients() {
    double[,] dx = new double[Count, Channels * Pixels], dw = new double[Out, Filter], dbias = new double[1, Out];
    Terms(Out, Groups, true, false, (n, atY, atX, o, f) => {
      dx[n, atX] += dy[n, atY] * w[o, f];
      dw[o, f] += dy[n, atY] * x[n, atX];
    });
    for (int n = 0; n < Count; ++n)
      for (int i = 0; i < Out * OutPixels; ++i) dbias[0, ChannelOfY(true, i)] += dy[n, i];
    Images gradient = OfY(OnDevice.Place(dy), true), from = OfX(OnDevice.Place(x), true);
    Matrix filters = OnDevice.Place(w), toX = OnDevice.Poisoned(Count, Channels * Pixels), toW = OnDevice.Poisoned(Out, Filter), toBias = OnDevice.Poisoned(1, Out);
    var options = new Conv2dOptions { Groups = Groups };
    await context.Conv2dBackwardAsync(gradient, Shape(), from, filters, OfX(toX, true), toW, toBias, options);
    OnDevice.Holds(dx, toX, "dX");
    OnDevice.Holds(dw, toW, "dW");
    OnDevice.Holds(dbias, toBias, "dbias");
    options.Accumulate = true;
    context.Conv2dBackward(gradient, Shape(), x: from, dw: toW, dbias: toBias, options: options);
    OnDevice.Holds(OnDevice.Sum(dw, dw), toW, "dW added");
    context.Conv2dBackward(gradient, Shape(), dbias: toBias);
    OnDevice.Holds(dbias, toBias, "dbias alone");
    Matrix alone = OnDevice.Poisoned(Count, Channels * Pixels);
    context.Conv2dBackward(gradient, Shape(), w: filters, dx: OfX(alone, true), options: options);
    OnDevice.Holds(dx, alone, "dX alone");
  }

  public static void GradientsOfF32ForF16() {
    double[,] from = OnDevice.Integers(Count, Channels * Pixels), gradient = OnDevice.Integers(Count, Out * OutPixels), expected = new double[Out, Filter];
    Terms(Out, Groups, false, false, (n, atY, atX, o, f) => expected[o, f] += gradient[n, atY] * from[n, atX]);
    Matrix toW = OnDevice.Cast(OnDevice.Poisoned(Out, Filter), DType.F32);
    context.Conv2dBackward(OfY(OnDevice.Cast(OnDevice.Place(gradient), DType.F16)), Shape(), x: OfX(OnDevice.Cast(OnDevice.Place(from), DType.F16)), dw: toW,
                           options: new Conv2dOptions { Groups = Groups });
    OnDevice.Holds(expected, OnDevice.Cast(toW, DType.F64), "dW");
  }

  public static async Task MatricesOfWindows() {
    int rows = Count * OutPixels, columns = Channels * KernelH * KernelW;
    double[,] matrix = new double[rows, columns], sums = new double[Count, Channels * Pixels];
    Terms(1, 1, false, true, (n, row, atX, o, column) => {
      matrix[n * OutPixels + row, column] = x[n, atX];
      sums[n, atX] += x[n, atX];
    });
    Matrix made = OnDevice.Poisoned(rows, columns), back = OnDevice.Poisoned(Count, Channels * Pixels);
    await context.Im2ColAsync(OfX(OnDevice.Place(x)), made, Shape(FilterLayout.Ohwi));
    OnDevice.Holds(matrix, made, "windows");
    await context.Col2ImAsync(made, OfX(back), Shape(FilterLayout.Ohwi));
    OnDevice.Holds(sums, back, "sums of windows");
    context.Col2Im(made, OfX(back), Shape(FilterLayout.Ohwi), accumulate: true);
    OnDevice.Holds(OnDevice.Sum(sums, sums), back, "sums added");
    Matrix pixels = OnDevice.Poisoned(Count * Pixels, 2);
    context.Im2Col(OfX(OnDevice.Place(x)).Slice(1, 2), pixels, new Windows(1, 1));
    OnDevice.Holds(OnDevice.Made(Count * Pixels, 2, (i, j) => x[i / Pixels, (1 + j) * Pixels + i % Pixels]), pixels, "channels 1 and 2");
  }

  public static void WrongCallsNameTheArgument() {
    Images from = OfX(OnDevice.Place(x)), to = OfY(OnDevice.Poisoned(Count, Out * OutPixels));
    Matrix filters = OnDevice.Place(w);
    var two = new Conv2dOptions { Groups = Groups };
    OnDevice.Refused("y is 2 Nchw images of 6 channels of 3 x 5 F64; it must be 2 Nchw images of 6 channels of 5 x 6",
                     () => { context.Conv2dAsync(from, filters, to, new Windows(1, 1), two); });
    OnDevice.Refused("w is 6 x 12", () => context.Conv2d(from, filters, to, Shape()));
    OnDevice.Refused("options.Groups is 4, which does not divide the 6 of y", () => context.Conv2d(from, filters, to, Shape(), new Conv2dOptions { Groups = 4 }));
    OnDevice.Refused("channels 1 to 2", () => context.Conv2d(from.Slice(1, 2), filters, to, Shape(), two));
    OnDevice.Refused("w is missing; dx needs it", () => context.Conv2dBackward(to, Shape(), dx: from));
    OnDevice.Refused("dbias is 1 x 5", () => context.Conv2dBackward(to, Shape(), dbias: OnDevice.Poisoned(1, 5)));
    OnDevice.Refused("windows.StrideH is 0", () => context.Conv2d(from, filters, to, new Windows(1, 1, stride: 0)));
    OnDevice.Refused("memory is 2 x 120", () => Images.Nchw(OnDevice.Place(x), 3, Height, Width));
    OnDevice.Refused("matrix is 30 x 23", () => { context.Im2ColAsync(from, OnDevice.Poisoned(30, 23), Shape()); });
    OnDevice.Refused("5 channels from 0 of 4", () => from.Slice(0, 5));
    OnDevice.Fails(soon => context.Conv2dAsync(from, filters, to, Shape(), new Conv2dOptions { Groups = Groups, Timeout = soon }));
    OnDevice.Fails(soon => context.Conv2dBackwardAsync(to, Shape(), w: filters, dx: OfX(OnDevice.Place(x)), options: new Conv2dOptions { Groups = Groups, Timeout = soon }));
    OnDevice.Fails(soon => context.Im2ColAsync(from, OnDevice.Poisoned(30, 24), Shape(), new SubmitOptions { Timeout = soon }));
  }
}
