// SPDX-License-Identifier: Apache-2.0
package org.streamgemm;

import static org.junit.Assert.assertArrayEquals;
import static org.junit.Assert.assertSame;
import static org.junit.Assert.assertThrows;
import static org.junit.Assert.assertTrue;

import org.junit.Test;

/** The operations of layers.h, convert.h and gather.h, on both kinds of device. */
public class LayersTest extends DeviceTest {
  @Test
  public void functionsOfElements() {
    Matrix a = place(2, 2, -1, 2, -3, 4);
    Matrix c = place(2, 2, 9, 9, 9, 9);
    assertSame(c, context.layers().elementwiseAsync(Function.RELU, a, c).join());
    assertArrayEquals(new double[] {0, 2, 0, 4}, fetch(c), 0);
    context.layers().elementwiseAsync(Function.ADD, a, c, c, DEFAULTS).join(); // in place
    assertArrayEquals(new double[] {-1, 4, -3, 8}, fetch(c), 0);
    context.layers().elementwiseAsync(Function.RELU_GRADIENT, c, a, c, DEFAULTS).join();
    assertArrayEquals(new double[] {0, 4, 0, 8}, fetch(c), 0);
  }

  @Test
  public void scaleAndAdd() {
    Matrix a = place(2, 2, 1, -2, 3, -4);
    Matrix c = place(2, 2, 10, 10, 10, 10);
    assertSame(c, context.layers().axpbyAsync(a, c, new Axpby(), DEFAULTS).join());
    assertArrayEquals(new double[] {11, 8, 13, 6}, fetch(c), 0);
    context.layers().axpbyAsync(a, c, new Axpby().with(-4, 0.5).activation(Activation.RELU), DEFAULTS).join();
    assertArrayEquals(new double[] {1.5, 12, 0, 19}, fetch(c), 0);
    Matrix unread = poisoned(2, 2);
    assertSame(unread, context.layers().axpby(a, unread, new Axpby().with(2, 0)));
    assertArrayEquals(new double[] {2, -4, 6, -8}, fetch(unread), 0);
    context.layers().axpby(poisoned(2, 2), unread, new Axpby().with(0, 3)); // A is not accessed
    assertArrayEquals(new double[] {6, -12, 18, -24}, fetch(unread), 0);
    Matrix complex = context.deviceMatrix(DType.C128, 1, 1);
    context.copyAsync(complex, complexOf(1, 2)).join();
    Matrix sum = context.deviceMatrix(DType.C128, 1, 1);
    context.copyAsync(sum, complexOf(3, 4)).join();
    context.layers().axpby(complex, sum, new Axpby().with(0, 1, 2, 0)); // i (1 + 2i) + 2 (3 + 4i)
    java.nio.ByteBuffer found = java.nio.ByteBuffer.allocateDirect(16).order(java.nio.ByteOrder.nativeOrder());
    context.copyAsync(Matrix.of(found, DType.C128, 1, 1), sum).join();
    assertArrayEquals(new double[] {4, 9}, new double[] {found.getDouble(0), found.getDouble(8)}, 0);
    refused("c is 1 x 2", () -> context.layers().axpbyAsync(a, place(1, 2, 0, 0), new Axpby(), DEFAULTS));
    Axpby relu = new Axpby().activation(Activation.RELU);
    StreamGemmException unsupported =
        assertThrows(StreamGemmException.Unsupported.class, () -> context.layers().axpbyAsync(complex, sum, relu, DEFAULTS));
    assertTrue(unsupported.getMessage(), unsupported.getMessage().contains("activation is "));
  }

  private static Matrix complexOf(double re, double im) {
    java.nio.ByteBuffer values = java.nio.ByteBuffer.allocateDirect(16).order(java.nio.ByteOrder.nativeOrder());
    return Matrix.of(values.putDouble(re).putDouble(im).flip(), DType.C128, 1, 1);
  }

  @Test
  public void softmax() {
    Matrix x = place(2, 2, 0, Math.log(3), 5, 5);
    Matrix y = place(2, 2, 9, 9, 9, 9);
    context.layers().softmaxAsync(x, y).join();
    assertArrayEquals(new double[] {0.25, 0.75, 0.5, 0.5}, fetch(y), 1e-14);
    context.layers().softmaxAsync(x, y, Mask.CAUSAL, 0, 1, DEFAULTS).join(); // a stack of two rows
    assertArrayEquals(new double[] {1, 0, 1, 0}, fetch(y), 0);
    context.layers().softmaxAsync(x, x, Mask.CAUSAL, 0, DEFAULTS).join();
    assertArrayEquals(new double[] {1, 0, 0.5, 0.5}, fetch(x), 1e-14);
  }

  @Test
  public void norms() {
    Matrix x = place(2, 2, 1, 3, -2, 2);
    Matrix y = place(2, 2, 0, 0, 0, 0);
    Matrix gamma = place(1, 2, 2, 3);
    Matrix beta = place(1, 2, 10, 20);
    context.layers().layerNormAsync(x, gamma, beta, y, 0, DEFAULTS).join();
    assertArrayEquals(new double[] {8, 23, 8, 23}, fetch(y), 1e-13);
    context.layers().rmsNormAsync(x, null, x, 0, DEFAULTS).join();
    assertArrayEquals(new double[] {1 / Math.sqrt(5), 3 / Math.sqrt(5), -1, 1}, fetch(x), 1e-14);
  }

  @Test
  public void rotaryEmbedding() {
    double c = Math.cos(1);
    double s = Math.sin(1);
    Matrix x = place(2, 2, 1, 2, 1, 2);
    Matrix y = place(2, 2, 0, 0, 0, 0);
    context.layers().rotaryAsync(x, y, new Rotary(), DEFAULTS).join();
    assertArrayEquals(new double[] {1, 2, c - 2 * s, s + 2 * c}, fetch(y), 1e-14);
    context.layers().rotaryAsync(y, y, new Rotary().inverse(true), DEFAULTS).join();
    assertArrayEquals(new double[] {1, 2, 1, 2}, fetch(y), 1e-14);
    Rotary byTables = new Rotary().tables(place(3, 1, 9, 2, 3), place(3, 1, 9, 5, 7)).firstPosition(1).sequenceLength(1);
    context.layers().rotaryAsync(x, y, byTables, DEFAULTS).join();
    assertArrayEquals(new double[] {2 - 10, 5 + 4, 2 - 10, 5 + 4}, fetch(y), 0);
  }

  @Test
  public void fills() {
    Matrix y = poisoned(2, 2);
    assertSame(y, context.layers().fillAsync(y, new Fill().value(1.5), DEFAULTS).join());
    assertArrayEquals(new double[] {1.5, 1.5, 1.5, 1.5}, fetch(y), 0);
    context.layers().fill(y, new Fill());
    assertArrayEquals(new double[4], fetch(y), 0);
    refused("value is 200", () -> context.layers().fillAsync(context.deviceMatrix(DType.I8, 2, 2), new Fill().value(200), DEFAULTS));
  }

  @Test
  public void clamps() {
    Matrix x = place(2, 2, -3, 1, Double.NaN, 2.5);
    Matrix y = poisoned(2, 2);
    Clamp limits = new Clamp().low(-1).high(2.5);
    context.layers().clampAsync(x, y, limits, DEFAULTS).join();
    assertArrayEquals(new double[] {-1, 1, Double.NaN, 2.5}, fetch(y), 0);
    Matrix dy = place(2, 2, 5, 6, 7, 8);
    assertSame(dy, context.layers().clampBackward(dy, x, dy, limits));
    assertArrayEquals(new double[] {0, 6, 0, 8}, fetch(dy), 0);
    refused("low is NaN", () -> context.layers().clampAsync(x, y, new Clamp().low(Double.NaN), DEFAULTS));
  }

  @Test
  public void rowDots() {
    Matrix a = place(2, 3, 1, 2, 3, 4, 5, 6);
    Matrix b = place(2, 3, 1, 0, -1, 2, 2, 2);
    Matrix y = poisoned(2, 1);
    context.layers().rowDotAsync(a, b, y, DEFAULTS).join();
    assertArrayEquals(new double[] {-2, 30}, fetch(y), 0);
    assertSame(y, context.layers().rowDot(a, a, y));
    assertArrayEquals(new double[] {14, 77}, fetch(y), 0);
    refused("y is 2 x 3; with a of 2 x 3 it must be 2 x 1", () -> context.layers().rowDotAsync(a, b, b, DEFAULTS));
  }

  @Test
  public void triangles() {
    Matrix a = place(2, 2, 2, 9, 3, 4); // of which the lower triangle is used
    Matrix b = place(2, 1, 5, 6);
    context.layers().triangularAsync(a, b, new Triangular().kind(TriangularKind.MULTIPLY), DEFAULTS).join();
    assertArrayEquals(new double[] {10, 39}, fetch(b), 0);
    assertSame(b, context.layers().triangular(a, b, new Triangular()));
    assertArrayEquals(new double[] {5, 6}, fetch(b), 0);
    Matrix y = poisoned(2, 1);
    context.layers().symmetric(a, b, y, new Symmetric());
    assertArrayEquals(new double[] {28, 39}, fetch(y), 0);
    Matrix c = place(2, 2, 1, 7, 1, 1);
    context.layers().rankK(b, c, new RankK().b(y).beta(1));
    assertArrayEquals(new double[] {281, 7, 364, 469}, fetch(c), 0);
    refused("a is 2 x 2; with b of 1 x 2 it must be 1 x 1", () -> context.layers().triangularAsync(a, place(1, 2, 1, 1)));
  }

  @Test
  public void reductionsOfRows() {
    Matrix x = place(2, 3, 1, 2, 6, 4, -5, 4);
    Matrix y = poisoned(2, 1);
    assertSame(y, context.layers().rowReduceAsync(x, y, new RowReduce(), DEFAULTS).join());
    assertArrayEquals(new double[] {9, 3}, fetch(y), 0);
    context.layers().rowReduce(x, y, new RowReduce().reduction(Reduction.MEAN));
    assertArrayEquals(new double[] {3, 1}, fetch(y), 1e-15);
    context.layers().rowReduce(x, y, new RowReduce().reduction(Reduction.MIN));
    assertArrayEquals(new double[] {1, -5}, fetch(y), 0);
    refused("y is 2 x 3", () -> context.layers().rowReduceAsync(x, x, new RowReduce(), DEFAULTS));
  }

  @Test
  public void lossesAndTheirGradients() {
    Layers layers = context.layers();
    Matrix x = place(2, 2, 0, Math.log(3), 5, 5);
    Matrix y = poisoned(2, 1);
    Indices classes = onDevice(Indices.of(1, -100)); // the second row is ignored
    assertSame(y, layers.crossEntropyAsync(x, classes, y, DEFAULTS).join());
    assertArrayEquals(new double[] {Math.log(4.0 / 3), 0}, fetch(y), 1e-14);
    Matrix dx = poisoned(2, 2);
    assertSame(dx, layers.crossEntropyBackward(x, classes, dx, new CrossEntropy().scale(2)));
    assertArrayEquals(new double[] {0.5, -0.5, 0, 0}, fetch(dx), 1e-14);
    Matrix weights = place(2, 2, 0.25, 0.75, 0.5, 0.5);
    layers.softmaxBackwardAsync(weights, place(2, 2, 4, 0, 1, 1), dx, DEFAULTS).join();
    assertArrayEquals(new double[] {0.75, -0.75, 0, 0}, fetch(dx), 1e-14);
    refused("indices are given", () -> layers.crossEntropy(x, Indices.of(1), y));
    refused("it must be finite", () -> layers.crossEntropyBackward(x, classes, dx, new CrossEntropy().scale(Double.NaN)));
  }

  @Test
  public void gradientsOfNorms() {
    Matrix x = place(2, 2, 1, 3, -2, 2);
    Matrix dy = place(2, 2, 1, 2, 3, 5);
    Matrix dx = poisoned(2, 2);
    Matrix dgamma = poisoned(1, 2);
    Matrix dbeta = poisoned(1, 2);
    context.layers().layerNormBackwardAsync(dy, x, null, dx, dgamma, dbeta, 0, DEFAULTS).join();
    assertArrayEquals(new double[] {0, 0, 0, 0}, fetch(dx), 1e-14);
    assertArrayEquals(new double[] {-4, 7}, fetch(dgamma), 1e-14);
    assertArrayEquals(new double[] {4, 7}, fetch(dbeta), 0);
    assertSame(dx, context.layers().rmsNormBackward(dy, x, null, dx, null, 0));
    double factor = 1 / Math.sqrt(5);
    assertArrayEquals(new double[] {factor * (1 - 7.0 / 10), factor * (2 - 21.0 / 10), 2, 2}, fetch(dx), 1e-14);
    Matrix back = poisoned(2, 2);
    context.layers().rotary(dy, back, new Rotary());
    assertSame(back, context.layers().rotaryBackward(back, back, new Rotary()));
    assertArrayEquals(fetch(dy), fetch(back), 1e-14);
    refused("dgamma is f64 1 x 1", () -> context.layers().rmsNormBackward(dy, x, null, dx, poisoned(1, 1), 0));
  }

  @Test
  public void optimizers() {
    Layers layers = context.layers();
    Matrix parameters = place(2, 2, 1, 2, 3, 4);
    Matrix gradient = place(2, 2, 1, 1, -1, 2);
    Matrix momentum = place(2, 2, 1, 0, 0, 0);
    layers.sgdAsync(parameters, gradient, new Sgd().rate(0.5).momentum(0.5).momentumBuffer(momentum), DEFAULTS).join();
    assertArrayEquals(new double[] {0.25, 1.5, 3.5, 3}, fetch(parameters), 0);
    assertArrayEquals(new double[] {1.5, 1, -1, 2}, fetch(momentum), 0);
    Matrix first = place(2, 2, 0, 0, 0, 0);
    Matrix second = place(2, 2, 0, 0, 0, 0);
    assertSame(parameters, layers.adam(parameters, gradient, first, second, new Adam().rate(0.25)));
    assertArrayEquals(new double[] {0, 1.25, 3.75, 2.75}, fetch(parameters), 1e-7);
    refused("step is 0", () -> layers.adam(parameters, gradient, first, second, new Adam().step(0)));
    refused("second is f64 1 x 1", () -> layers.adam(parameters, gradient, first, poisoned(1, 1), new Adam()));
    refused("gradient is ", () -> layers.sgd(parameters, place(1, 3, 1, 2, 3), new Sgd()));
  }

  @Test
  public void pooling() {
    Matrix x = place(1, 4, 1, 5, 2, 3);
    Images images = Images.nchw(x, 1, 2, 2);
    Windows windows = new Windows(2, 2);
    Matrix y = poisoned(1, 1);
    Images pooled = Images.nchw(y, 1, 1, 1);
    assertSame(pooled, context.layers().pool2dAsync(images, pooled, windows, new Pool2d(), DEFAULTS).join());
    assertArrayEquals(new double[] {5}, fetch(y), 0);
    Matrix dx = poisoned(1, 4);
    context.layers().pool2dBackward(pooled, images, windows, Images.nchw(dx, 1, 2, 2), new Pool2d());
    assertArrayEquals(new double[] {0, 5, 0, 0}, fetch(dx), 0);
    Pool2d average = new Pool2d().pooling(Pooling.AVERAGE);
    context.layers().pool2d(images, pooled, windows, average);
    assertArrayEquals(new double[] {2.75}, fetch(y), 0);
    context.layers().pool2dBackward(pooled, null, windows, Images.nchw(dx, 1, 2, 2), average);
    assertArrayEquals(new double[] {2.75 / 4, 2.75 / 4, 2.75 / 4, 2.75 / 4}, fetch(dx), 0);
    refused("y is ", () -> context.layers().pool2d(images, Images.nchw(dx, 1, 2, 2), windows, average));
  }

  @Test
  public void conversions() {
    Matrix a = place(2, 3, 1, 2, 3, 4, 5, 6);
    Matrix c = context.deviceMatrix(DType.F32, 3, 2);
    context.layers().convertAsync(a, Transpose.T, c, DEFAULTS).join();
    float[] found = new float[6];
    context.copyAsync(Matrix.of(found, 3, 2), c).join();
    assertArrayEquals(new float[] {1, 4, 2, 5, 3, 6}, found, 0);
  }

  @Test
  public void dequantization() {
    Matrix x = context.deviceMatrix(DType.I8, 1, 2);
    Matrix scales = context.deviceMatrix(DType.F32, 1, 2);
    Matrix zeros = context.deviceMatrix(DType.I8, 1, 2);
    Matrix y = context.deviceMatrix(DType.F32, 1, 4);
    java.nio.ByteBuffer codes = java.nio.ByteBuffer.allocateDirect(2).put(new byte[] {0x21, (byte) 0x8f}).flip(); // 1 2, -1 -8
    java.nio.ByteBuffer points = java.nio.ByteBuffer.allocateDirect(2).put(new byte[] {1, -1}).flip();
    context.copyAsync(x, Matrix.of(codes, DType.I8, 1, 2)).join();
    context.copyAsync(zeros, Matrix.of(points, DType.I8, 1, 2)).join();
    context.copyAsync(scales, Matrix.of(new float[] {10, 100}, 1, 2)).join();
    float[] found = new float[4];
    context.layers().dequantizeAsync(Quantization.I4, 2, x, scales, null, y, DEFAULTS).join();
    context.copyAsync(Matrix.of(found, 1, 4), y).join();
    assertArrayEquals(new float[] {10, 20, -100, -800}, found, 0);
    context.layers().dequantizeAsync(Quantization.I4, 2, x, scales, zeros, y, DEFAULTS).join();
    context.copyAsync(Matrix.of(found, 1, 4), y).join();
    assertArrayEquals(new float[] {0, 10, 0, -700}, found, 0);
    refused("blockSize is 3", () -> context.layers().dequantizeAsync(Quantization.I4, 3, x, scales, null, y, DEFAULTS));
    refused("zeroPoints is 1 x 4",
        () -> context.layers().dequantizeAsync(Quantization.I4, 2, x, scales, context.deviceMatrix(DType.I8, 1, 4), y, DEFAULTS));
  }

  /** An operation with a result of 2 x 2. */
  private interface Operation {
    void on(Layers layers, Matrix to);
  }

  private static Heads heads(Matrix m) {
    return Heads.inRows(m, 1, 1);
  }

  /** Two images of 1 x 2 pixels. */
  private static Images images(Matrix m) {
    return Images.nchw(m, 1, 1, 2);
  }

  private static Sequence steps(Matrix m) {
    return Sequence.byStep(m, 1);
  }

  @Test
  public void allAreRecorded() {
    Matrix x = place(2, 2, numbers(4));
    Matrix w = place(2, 2, numbers(4));
    Matrix filter = place(1, 1, 3);
    Matrix between = poisoned(2, 2);
    Matrix zeros = context.deviceMatrix(DType.F64, 2, 2);
    Matrix zerosToo = context.deviceMatrix(DType.F64, 2, 2);
    Indices indices = onDevice(Indices.of(1, 0));
    Recurrent layer = new Recurrent(Cell.GRU, place(6, 2, numbers(12)), place(6, 2, numbers(12)));
    layer.reserve(context.layers().recurrentReserve(steps(x)));
    Conv2d conv = new Conv2d(new Windows(1, 1));
    Attention how = new Attention();
    Operation[] all = {
        (l, y) -> l.elementwise(Function.MULTIPLY, x, w, y),
        (l, y) -> l.fill(y, new Fill().value(3)),
        (l, y) -> l.clamp(x, y, new Clamp().low(1).high(2)),
        (l, y) -> l.clampBackward(w, x, y, new Clamp().low(1).high(2)),
        (l, y) -> l.rowDot(x, w, y.block(0, 0, 2, 1)),
        (l, y) -> l.axpby(x, y, new Axpby().with(3, 0)),
        (l, y) -> l.symmetric(x, w, y, new Symmetric()),
        (l, y) -> {
          l.convert(x, Transpose.N, y);
          l.rankK(x, y, new RankK().beta(2));
        },
        (l, y) -> {
          l.convert(x, Transpose.N, y);
          l.triangular(w, y, new Triangular());
        },
        (l, y) -> l.softmax(x, y, Mask.CAUSAL, 0, 0),
        (l, y) -> l.layerNorm(x, null, null, y, 1e-5),
        (l, y) -> l.rmsNorm(x, null, y, 1e-5),
        (l, y) -> l.rotary(x, y, new Rotary()),
        (l, y) -> l.convert(x, Transpose.T, y),
        (l, y) -> l.rotaryBackward(x, y, new Rotary()),
        (l, y) -> l.softmaxBackward(x, w, y),
        (l, y) -> l.layerNormBackward(x, w, null, y, null, null, 1e-5),
        (l, y) -> l.rmsNormBackward(x, w, null, y, null, 1e-5),
        (l, y) -> l.rowReduce(x, y.block(0, 0, 2, 1), new RowReduce()),
        (l, y) -> l.crossEntropy(x, indices, y.block(0, 0, 2, 1)),
        (l, y) -> l.crossEntropyBackward(x, indices, y, new CrossEntropy()),
        (l, y) -> l.pool2d(images(x), images(y), new Windows(1, 1), new Pool2d()),
        (l, y) -> l.pool2dBackward(images(x), images(w), new Windows(1, 1), images(y), new Pool2d()),
        (l, y) -> {
          l.convert(x, Transpose.N, y);
          l.sgd(y, w, new Sgd());
        },
        (l, y) -> {
          l.clamp(x, zeros, new Clamp().low(0).high(0));
          l.clamp(x, zerosToo, new Clamp().low(0).high(0));
          l.convert(x, Transpose.N, y);
          l.adam(y, w, zeros, zerosToo, new Adam());
        },
        (l, y) -> {
          l.convert(x, Transpose.N, y);
          l.scatterAdd(y, w, indices);
        },
        (l, y) -> l.gather(x, indices, y),
        (l, y) -> l.linear(x, w, y, new Linear()),
        (l, y) -> l.linearBackward(x, null, w, y, null, null, new Linear()),
        (l, y) -> l.attention(heads(x), heads(w), heads(x), heads(y), how),
        (l, y) -> l.attentionBackward(heads(x), heads(w), heads(x), heads(w), heads(y), null, null, how),
        (l, y) -> l.conv2d(images(x), filter, images(y), conv),
        (l, y) -> l.conv2dBackward(images(x), null, filter, images(y), null, null, conv),
        (l, y) -> l.im2col(images(x), y, new Windows(1, 2)),
        (l, y) -> l.col2im(x, images(y), new Windows(1, 2), false),
        (l, y) -> l.recurrent(steps(x), steps(y), layer),
        (l, y) -> {
          l.recurrent(steps(x), steps(between), layer);
          l.recurrentBackward(steps(x), steps(between), layer, new RecurrentGradients().dy(steps(w)).dx(steps(y)));
        }};
    Matrix[] now = new Matrix[all.length];
    Matrix[] later = new Matrix[all.length];
    try (Graph graph = context.graph()) {
      for (int i = 0; i < all.length; ++i) {
        all[i].on(context.layers(), now[i] = poisoned(2, 2));
        all[i].on(graph.layers(new Submit().priority(1)), later[i] = poisoned(2, 2));
        assertTrue(Double.isNaN(fetch(later[i])[0]));
      }
      graph.runAsync().join();
      for (int i = 0; i < all.length; ++i) assertArrayEquals("operation " + i, fetch(now[i]), fetch(later[i]), 1e-13);
      refused("a graph records by the method without Async", () -> graph.layers().softmaxAsync(x, between));
    }
    try (Graph graph = context.graph()) {
      refused("use a direct buffer", () -> graph.layers().convert(x, Transpose.N, Matrix.of(new double[4], 2, 2)));
      refused("x is 2 x 2", () -> graph.layers().softmax(x, poisoned(1, 1), Mask.NONE, 0, 0));
    }
  }

  private Indices onDevice(Indices indices) {
    Matrix made = context.deviceMatrix(DType.I32, 1, indices.memory().cols());
    context.copyAsync(made, indices.memory()).join();
    return Indices.of(made, indices.count() == made.cols() ? IndexType.I32 : IndexType.I64);
  }

  @Test
  public void rowsOfATable() {
    Layers layers = context.layers();
    Matrix table = place(3, 2, 1, 2, 3, 4, 5, 6);
    Matrix y = poisoned(4, 2);
    assertSame(y, layers.gatherAsync(table, onDevice(Indices.of(2, 0, 3, -1)), y, DEFAULTS).join());
    assertArrayEquals(new double[] {5, 6, 1, 2, 0, 0, 0, 0}, fetch(y), 0);
    assertSame(y, layers.gather(table, onDevice(Indices.of(1L << 32, 1, -3, 2)), y, GatherFlag.FROM_END, GatherFlag.NAN));
    assertArrayEquals(new double[] {Double.NaN, Double.NaN, 3, 4, 1, 2, 5, 6}, fetch(y), 0);
    refused("3 indices are given; y.rows is 4", () -> layers.gather(table, Indices.of(1, 2, 3), y));
    refused("memory is f64 3 x 2", () -> Indices.of(table, IndexType.I32));
    refused("an index of 64 bits has two", () -> Indices.of(context.deviceMatrix(DType.I32, 1, 3), IndexType.I64));
    refused("table is 3 x 2; with y of 1 x 3", () -> layers.gather(table, onDevice(Indices.of(1)), poisoned(1, 3)));
    fails(submit -> layers.gatherAsync(table, onDevice(Indices.of(0, 0, 0, 0)), y, submit));
    layers.gather(table, Indices.of(0, 1, 2, 0), y);
    assertArrayEquals(new double[] {1, 2, 3, 4, 5, 6, 1, 2}, fetch(y), 0);
  }

  @Test
  public void arraysAreCopied() {
    double[] values = {-1, 2};
    Matrix x = Matrix.of(values, 1, 2);
    context.layers().elementwiseAsync(Function.RELU, x, x).join();
    assertArrayEquals(new double[] {0, 2}, values, 0);
  }

  @Test
  public void wrongCallsNameTheArgument() {
    Matrix x = place(1, 2, 1, 2);
    Matrix three = place(1, 3, 1, 2, 3);
    refused("b is null; ADD has two operands", () -> context.layers().elementwiseAsync(Function.ADD, x, x));
    refused("RELU has one operand", () -> context.layers().elementwiseAsync(Function.RELU, x, x, x, DEFAULTS));
    refused("x is 1 x 3", () -> context.layers().softmaxAsync(three, x));
    refused("maskOffset is 1", () -> context.layers().softmaxAsync(x, x, Mask.NONE, 1, DEFAULTS));
    refused("gamma is ", () -> context.layers().rmsNormAsync(x, three, x, 0, DEFAULTS));
    refused("epsilon is -1", () -> context.layers().layerNormAsync(x, null, null, x, -1, DEFAULTS));
    refused("headSize is 3", () -> context.layers().rotaryAsync(x, x, new Rotary().headSize(3), DEFAULTS));
  }
}
