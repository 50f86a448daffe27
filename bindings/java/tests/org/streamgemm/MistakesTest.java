// SPDX-License-Identifier: Apache-2.0
package org.streamgemm;

import static org.junit.Assert.assertTrue;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;
import java.util.regex.Pattern;
import org.junit.After;
import org.junit.Test;
import org.junit.function.ThrowingRunnable;

/**
 * Mistakes: each message names the argument as Java spells it, the value that was given and the rule. Some are written here, others
 * are drawn from the options, which are written from the model of the headers.
 */
public class MistakesTest {
  private static final Pattern C_NAMES = Pattern.compile("desc|->|submit->|[abc]_array|struct|NULL|sg_|stride_|\u0001|184467");
  private static final Pattern RULE =
      Pattern.compile("must|which|cannot|; |none|overlap|agree|is given|needs|negative|has no|outside|is empty|read-only|type is|below|holds|is null|divide|has \\d|spans|whose|differs|no handle|from \\d");

  private final Context context = Context.open("cpu");
  private final List<String> faults = new ArrayList<>();
  private int seen;

  @After
  public void close() {
    context.close();
  }

  private static Matrix matrix(int rows, int cols) {
    return Matrix.of(Support.direct(new float[rows * cols]), rows, cols);
  }

  private static Matrix doubles(int rows, int cols) {
    return Matrix.of(Support.directDoubles(new float[rows * cols]), rows, cols);
  }

  /** Checks the message of a call that must be refused: it has the words, in this order, and a rule. */
  private void look(ThrowingRunnable call, String... words) {
    String message = messageOf(call);
    ++seen;
    int at = 0;
    for (String word : words) at = message == null || at < 0 ? -1 : message.indexOf(word, at);
    if (at < 0 || !RULE.matcher(message).find() || C_NAMES.matcher(message).find()) faults.add(String.join(", ", words) + ": " + message);
  }

  private static String messageOf(ThrowingRunnable call) {
    try {
      call.run();
    } catch (InvocationTargetException e) {
      return e.getCause().getMessage();
    } catch (Throwable e) {
      return e.getMessage();
    }
    return null;
  }

  @After
  public void report() {
    assertTrue(String.join("\n", faults), faults.isEmpty());
  }

  private void lookAtGemms() {
    Matrix a = matrix(4, 4);
    Matrix b = matrix(4, 4);
    Matrix c = matrix(4, 4);
    Gemm good = Gemm.of(a, b, c);
    look(() -> context.gemm(a, matrix(5, 4), c), "4 x 4", "5 x 4", "agree", "b.rows()");
    look(() -> context.gemm(a, b, matrix(4, 3)), "c is 4 x 3", "4 x 4");
    look(() -> context.gemm(a, doubles(4, 4), c), "a.dtype() is f32", "b.dtype() is f64", "equal");
    look(() -> context.gemm(a, b, doubles(4, 4)), "c.dtype() is f64", "no result type");
    look(() -> context.gemm(a, b, a), "c overlaps a", "memory");
    look(() -> context.gemm(good.withBatch(-2, 16, 16, 16)), "items is -2", "at least 1");
    look(() -> context.gemm(good.withBatch(2, -16, 16, 16)), "stride of a is -16", "negative");
    look(() -> context.gemmAsync(List.of(), new Submit()), "products is empty");
    look(() -> context.gemmAsync(List.of(good, Gemm.of(a, matrix(5, 4), matrix(4, 4))), new Submit()), "products.get(1).b.rows()");
    look(() -> context.gemmAsync(List.of(good, good), new Submit()), "products.get(1).c overlaps products.get(0).c", "memory");
    look(() -> context.gemmAsync(List.of(good, Gemm.of(c, b, matrix(4, 4))), new Submit()), "products.get(0).c overlaps what products.get(1) reads");
    look(() -> context.gemmAsync(List.of(good, Gemm.of(a, doubles(4, 4), matrix(4, 4))), new Submit()), "products.get(1).a.dtype() is f32", "products.get(1).b.dtype() is f64");
    look(() -> context.gemmAsync(good, new Submit().priority(9)), "submit.priority is 9", "from -1 to 1");
    look(() -> context.gemmAsync(good, new Submit().label("a\0b")), "label holds a NUL", "a\\0b");
    look(() -> context.gemmAsync(good, new Submit().plan(new PlanOptions().tileM(-3))), "submit.plan.tileM is -3", "from 0");
    look(() -> context.plan(good, new PlanOptions().parts(-3)), "options.parts is -3", "from 0");
    look(() -> context.plan(Gemm.of(matrix(0, 4), b, matrix(0, 4))), "the operation leaves nothing to do", "0 x 4 x 4");
    look(() -> context.copyAsync(matrix(4, 3), a), "to is", "4 x 3", "from is", "4 x 4", "equal");
    look(() -> context.copyAsync(a, a), "to", "from", "overlap");
    try (Graph graph = context.graph(); Plan plan = context.plan(good)) {
      graph.record(good);
      look(() -> graph.update(7, good), "index is 7", "from 0 to 0");
      look(() -> graph.update(0, Gemm.of(matrix(5, 4), b, matrix(5, 4))), "the operation differs", "it is 4 x 5 x 4");
      look(() -> plan.runAsync(Gemm.of(matrix(5, 4), b, matrix(5, 4))), "the operation differs from the plan", "sizes");
    }
  }

  private void lookAtLayers() {
    Layers layers = context.layers();
    Matrix x = matrix(4, 4);
    Matrix y = matrix(4, 4);
    Images images = Images.nchw(matrix(1, 72), 2, 6, 6);
    Images out = Images.nchw(matrix(1, 48), 3, 4, 4);
    Heads q = Heads.inColumns(matrix(5, 8), 1, 2);
    Heads k = Heads.inColumns(matrix(5, 12), 1, 3);
    look(() -> layers.softmax(x, matrix(4, 3), Mask.NONE, 0, 0), "x is 4 x 4", "y of 4 x 3", "must be");
    look(() -> layers.softmax(x, y, Mask.CAUSAL, 0, 3), "maskRows is 3", "divide", "x.rows()");
    look(() -> layers.softmax(x, y, Mask.CAUSAL, 1L << 62, 0), "maskOffset is 4611686018427387904", "must be from");
    look(() -> layers.layerNorm(x, null, null, y, -1), "epsilon is -1", "not negative");
    look(() -> layers.layerNorm(x, matrix(1, 3), null, y, 1e-5), "gamma is", "1 x 3", "4");
    look(() -> layers.rotary(x, y, new Rotary().theta(-1)), "theta is -1", "positive");
    look(() -> layers.rotary(x, y, new Rotary().headSize(3)), "headSize is 3", "divisor", "4");
    look(() -> layers.rotary(x, y, new Rotary().tables(matrix(4, 2), null)), "cos is given", "sin is not", "both");
    look(() -> layers.rotary(x, y, new Rotary().rotatedSize(3)), "rotatedSize is 3", "even");
    look(() -> layers.attention(q, k, k, Heads.inColumns(matrix(5, 8), 1, 2), new Attention()), "k has 3 heads", "divide", "2 of q");
    look(() -> layers.attention(q, q, q, Heads.inColumns(matrix(5, 8), 1, 2), new Attention().scale(Double.NaN)), "scale is", "finite");
    look(() -> layers.conv2d(images, matrix(3, 18), out, new Conv2d(new Windows(3, 3).stride(0, 1))), "strideH is 0", "1");
    look(() -> layers.conv2d(images, matrix(3, 98), out, new Conv2d(new Windows(7, 7))), "kernelH is 7", "padded image has 6");
    look(() -> layers.conv2d(images, matrix(3, 18), out, new Conv2d(new Windows(3, 3)).groups(3)), "groups is 3", "divide");
    look(() -> layers.linear(x, matrix(3, 4), y, new Linear()), "w is 3 x 4", "must be 4 x 4");
    look(() -> layers.linear(x, matrix(4, 4), matrix(3, 4), new Linear()), "y is 3 x 4", "must be 4 x 4");
    look(() -> layers.clamp(x, y, new Clamp().low(Double.NaN)), "low is NaN");
    look(() -> layers.axpby(x, matrix(4, 3), new Axpby()), "a is 4 x 4", "c is 4 x 3", "equal");
    look(() -> layers.rowDot(x, matrix(4, 3), matrix(4, 1)), "b is 4 x 3", "4 x 4");
    look(() -> layers.rowDot(x, y, matrix(4, 2)), "y is 4 x 2", "4 x 1");
    look(() -> layers.gather(x, Indices.of(1, 2, 3), matrix(2, 4)), "3 indices", "y.rows is 2");
    look(() -> layers.elementwise(org.streamgemm.Function.RELU, x, null, doubles(4, 4)), "a.dtype() is f32", "c.dtype() is f64", "equal");
  }

  private void lookAtObjects() {
    look(() -> context.allocateDevice(-1), "bytes is -1", "negative");
    look(() -> context.allocateDevice(0), "bytes is 0");
    look(() -> context.allocatePinned(-1), "bytes is -1", "negative");
    look(() -> context.stream(new StreamOptions().priority(5)), "options.priority is 5", "from -1 to 1");
    look(() -> context.stream(new StreamOptions().computeUnits(-4)), "options.computeUnits is -4", "from 0");
    look(() -> Context.open("no-such"), "no-such");
    look(() -> Context.open("cpu\0x"), "NUL");
    look(() -> Context.open(new ContextOptions().memoryLimit(-5)), "memoryLimit is -5", "negative");
    look(() -> Context.open(new ContextOptions().device("cpu").computeLanes(-1)), "options.computeLanes is -1", "from 0");
    look(() -> context.pipeline(new PipelineOptions().inputBytes(-64)), "inputBytes is -64", "negative");
    look(() -> context.pipeline(new PipelineOptions().inputBytes(0)), "options.inputBytes is 0", "from 1");
    look(() -> Matrix.of(ByteBuffer.allocateDirect(8), DType.F32, 2, 2), "order is BIG_ENDIAN", "order(ByteOrder.nativeOrder())");
    look(() -> Heads.inColumns(matrix(4, 4), 1, 3), "heads is 3", "divide", "4");
    look(() -> new Windows(3, 3).padding(-1, 0), "-1", "0");
    try (Pipeline pipeline = context.pipeline(new PipelineOptions().inputBytes(64))) {
      look(() -> pipeline.stage("x", -4, 0, WeightsPlace.AUTO), "output is -4", "negative");
      look(() -> pipeline.stage("x", 4, -4, WeightsPlace.AUTO), "workspace is -4", "negative");
    }
    try (Trace trace = Trace.start()) {
      trace.stop();
      look(() -> trace.write(Path.of("/data/src/dst/x.html")), "path is \"/data/src/dst/x.html\"", "written");
      look(() -> trace.write(Path.of("run.htm")), "path is \"run.htm\"", "whose format is unknown", ".html");
    }
  }

  @Test
  public void written() {
    lookAtGemms();
    lookAtLayers();
    lookAtObjects();
    assertTrue("" + seen, seen >= 60);
  }

  /** Sets each number of an options class to one that it cannot be, and uses it; `use` runs what takes the options. */
  private <T> void draw(java.util.function.Supplier<T> made, Function<T, Object> use) {
    for (Method setter : made.get().getClass().getMethods()) {
      Class<?>[] taken = setter.getParameterTypes();
      if (taken.length != 1 || setter.getDeclaringClass() == Object.class || !taken[0].isPrimitive() || taken[0] == boolean.class) continue;
      Object value = taken[0] == double.class ? (Object) Double.NaN : taken[0] == long.class ? (Object) (-5L) : (Object) (-5);
      String message = messageOf(() -> use.apply(cast(setter.invoke(made.get(), value))));
      if (message == null) continue; // any number is allowed
      ++seen;
      boolean says = message.matches("(?s).*\\b" + setter.getName() + "\\b.*") && (message.contains("-5") || message.contains("NaN") || message.contains("nan"));
      if (!says || !RULE.matcher(message).find() || C_NAMES.matcher(message).find()) faults.add(setter + ": " + message);
    }
  }

  @SuppressWarnings("unchecked")
  private static <T> T cast(Object object) {
    return (T) object;
  }

  @Test
  public void drawnFromTheModel() {
    Layers layers = context.layers();
    Gemm good = Gemm.of(matrix(4, 4), matrix(4, 4), matrix(4, 4));
    Heads heads = Heads.inColumns(matrix(5, 8), 1, 2);
    draw(PlanOptions::new, o -> context.plan(good, o));
    draw(() -> new ContextOptions().device("cpu"), Context::open);
    draw(() -> new PipelineOptions().inputBytes(64), context::pipeline);
    draw(TraceOptions::new, Trace::start);
    draw(Submit::new, o -> context.gemmAsync(good, o).join());
    draw(Rotary::new, o -> layers.rotary(matrix(4, 4), matrix(4, 4), o));
    draw(Clamp::new, o -> layers.clamp(matrix(4, 4), matrix(4, 4), o));
    draw(Attention::new, o -> layers.attention(heads, heads, heads, Heads.inColumns(matrix(5, 8), 1, 2), o));
    draw(() -> new Conv2d(new Windows(3, 3)), o -> layers.conv2d(Images.nchw(matrix(1, 72), 2, 6, 6), matrix(3, 18), Images.nchw(matrix(1, 48), 3, 4, 4), o));
    assertTrue("" + seen, seen >= 25);
  }
}
