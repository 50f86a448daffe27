// SPDX-License-Identifier: Apache-2.0
package org.streamgemm;

import static org.junit.Assert.assertArrayEquals;
import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertThrows;
import static org.junit.Assert.assertTrue;

import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import java.nio.IntBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import org.junit.Test;
import org.junit.runner.RunWith;
import org.junit.runners.Parameterized;

/** Plans and graphs of every operation, by a loop over Operations: a new operation is tested by itself, or fails for want of a shape here. */
@RunWith(Parameterized.class)
public class PlanTest {
  /** Shapes of matrices that are not 8 x 8, by the method and the parameter. */
  private static final Map<String, int[]> SHAPES = Map.ofEntries(
      Map.entry("layerNorm 1", new int[] {1, 8}), Map.entry("layerNorm 2", new int[] {1, 8}), Map.entry("rmsNorm 1", new int[] {1, 8}),
      Map.entry("layerNormBackward 2", new int[] {1, 8}), Map.entry("layerNormBackward 4", new int[] {1, 8}), Map.entry("layerNormBackward 5", new int[] {1, 8}),
      Map.entry("rmsNormBackward 2", new int[] {1, 8}), Map.entry("rmsNormBackward 4", new int[] {1, 8}), Map.entry("linearBackward 5", new int[] {1, 8}),
      Map.entry("conv2d 1", new int[] {2, 2}), Map.entry("conv2dBackward 2", new int[] {2, 2}), Map.entry("conv2dBackward 4", new int[] {2, 2}),
      Map.entry("conv2dBackward 5", new int[] {1, 2}), Map.entry("im2col 1", new int[] {32, 2}), Map.entry("col2im 0", new int[] {32, 2}),
      Map.entry("crossEntropy 2", new int[] {8, 1}), Map.entry("rowDot 2", new int[] {8, 1}), Map.entry("rowReduce 1", new int[] {8, 1}),
      Map.entry("dequantize 3", new int[] {8, 2}));

  @Parameterized.Parameters(name = "{0}")
  public static Collection<Object[]> devices() {
    return Arrays.asList(new Object[][] {{"cpu"}, {"sim:h200"}});
  }

  @Parameterized.Parameter public String device;

  /** The longest form of each method, but those whose operands have to be in the memory of devices. */
  private static Collection<Method> all() {
    Map<String, Method> found = new TreeMap<>();
    for (Method m : Operations.class.getMethods())
      if (m.getDeclaringClass() == Operations.class && !m.getName().equals("allReduce"))
        found.merge(m.getName(), m, (x, y) -> x.getParameterCount() > y.getParameterCount() ? x : y);
    return found.values();
  }

  /** One set of arguments, of the same values each time. */
  private static final class Arguments {
    private final boolean areShapes;
    private final List<FloatBuffer> memory = new ArrayList<>();

    Arguments(boolean areShapes) {
      this.areShapes = areShapes;
    }

    private Matrix matrix(int rows, int cols) {
      if (areShapes) return Matrix.shape(DType.F32, rows, cols);
      Random random = new Random(100 + memory.size());
      float[] values = new float[rows * cols];
      for (int i = 0; i < values.length; ++i) values[i] = 0.1f + random.nextFloat();
      FloatBuffer made = Support.direct(values);
      memory.add(made);
      return Matrix.of(made, rows, cols);
    }

    private Sequence sequence() {
      return Sequence.byStep(matrix(8, 8), 4);
    }

    OperationDesc<?> of(Method method) throws Exception {
      Class<?>[] types = method.getParameterTypes();
      Object[] given = new Object[types.length];
      for (int i = 0; i < given.length; ++i) given[i] = argument(method.getName() + " " + i, types[i]);
      return (OperationDesc<?>) method.invoke(null, given);
    }

    private Object argument(String name, Class<?> type) throws Exception {
      int[] shape = SHAPES.getOrDefault(name, new int[] {8, 8});
      if (name.equals("elementwise 0")) return Function.ADD;
      if (name.equals("dequantize 1")) return 4L;
      if (name.equals("dequantize 2")) return areShapes ? Matrix.shape(DType.I8, 8, 8) : Matrix.of(ByteBuffer.allocateDirect(64).put(5, (byte) 3), DType.I8, 8, 8);
      if (name.equals("dequantize 4")) return null;
      if (type == Matrix.class) return matrix(shape[0], shape[1]);
      if (name.equals("gemmGroup 0")) return List.of(Gemm.of(matrix(8, 8), matrix(8, 8), matrix(8, 8)), Gemm.of(matrix(4, 8), matrix(8, 2), matrix(4, 2)).with(3, 0));
      if (type == Heads.class) return Heads.inColumns(matrix(8, 8), 2, 1);
      if (type == Images.class) return Images.nchw(matrix(8, 8), 2, 2, 2);
      if (type == Sequence.class) return sequence();
      if (type == Indices.class) return areShapes ? Indices.of(Matrix.shape(DType.I32, 1, 8), IndexType.I32) : Indices.of(Matrix.of(indices(), DType.I32, 1, 8), IndexType.I32);
      if (type == Windows.class) return new Windows(1, 1);
      if (type == Conv2d.class) return new Conv2d(new Windows(1, 1));
      if (type == Recurrent.class) return recurrent(name.equals("recurrentBackward 2"));
      if (type == RecurrentGradients.class) return new RecurrentGradients().dy(sequence()).dx(sequence()).weights(matrix(32, 8), matrix(32, 8));
      if (type.isEnum()) return type.getEnumConstants()[0];
      if (type.isArray()) return java.lang.reflect.Array.newInstance(type.getComponentType(), 0);
      if (type == boolean.class) return false;
      if (type == double.class) return 1e-5;
      return type == long.class ? (Object) 0L : type.getConstructor().newInstance();
    }

    private static IntBuffer indices() {
      return ByteBuffer.allocateDirect(32).order(ByteOrder.nativeOrder()).asIntBuffer().put(0, 3).put(1, 1).put(2, 4).put(3, 0).put(4, 5).put(5, 2).put(6, 6).put(7, 7);
    }

    private Recurrent recurrent(boolean hasReserve) {
      Recurrent made = new Recurrent(Cell.LSTM, matrix(32, 8), matrix(32, 8));
      return hasReserve ? made.reserve(matrix(8, 40)) : made;
    }

    /** All values, which two sets have in common after the same operation. */
    List<Float> values() {
      List<Float> all = new ArrayList<>();
      for (FloatBuffer each : memory)
        for (float value : Support.content(each)) all.add(value);
      return all;
    }
  }

  private static List<Float> computed(Context context, Method method) throws Exception {
    Arguments arguments = new Arguments(false);
    OperationDesc<?> operation = arguments.of(method);
    List<Float> before = arguments.values();
    context.runAsync(operation).join();
    assertFalse(method.getName(), before.equals(arguments.values()));
    return arguments.values();
  }

  private static PlanOptions place() {
    return new PlanOptions().place(MemoryKind.PAGEABLE).placeA(MemoryKind.PAGEABLE).placeB(MemoryKind.PAGEABLE).placeC(MemoryKind.PAGEABLE);
  }

  @Test(timeout = Support.LIMIT)
  public void everyOperationIsPlannedByItsShapes() throws Exception {
    try (Context context = Context.open(device)) {
      for (Method method : all()) {
        OperationDesc<?> shapes = new Arguments(true).of(method);
        assertTrue(method.getName(), context.supports(shapes));
        try (Plan plan = context.plan(shapes, place())) {
          assertTrue(method.getName(), plan.prediction().predictedSeconds() > 0);
          for (int run = 0; run < 2; ++run) {
            Arguments arguments = new Arguments(false);
            plan.runAsync(arguments.of(method)).join();
            assertEquals(method.getName(), computed(context, method), arguments.values());
          }
          Arguments others = new Arguments(false);
          OperationDesc<?> other = Gemm.of(others.matrix(8, 8), others.matrix(8, 8), others.matrix(8, 8));
          if (!List.of("linear", "gemmGroup").contains(method.getName()))
            assertTrue(assertThrows(StreamGemmException.InvalidArgument.class, () -> plan.runAsync(other)).getMessage().contains("operation"));
        }
      }
    }
  }

  @Test(timeout = Support.LIMIT)
  public void everyRecordedOperationIsUpdated() throws Exception {
    try (Context context = Context.open(device)) {
      for (Method method : all()) {
        List<Float> computed = computed(context, method);
        Arguments first = new Arguments(false);
        Arguments second = new Arguments(false);
        try (Graph graph = context.graph()) {
          assertEquals(0, graph.record(first.of(method)));
          OperationDesc<?> other = second.of(method);
          List<Float> before = second.values();
          graph.runAsync().join();
          assertEquals(method.getName(), computed, first.values());
          assertEquals("not yet", before, second.values());
          graph.update(0, other);
          graph.runAsync().join();
          assertEquals(method.getName(), computed, second.values());
        }
      }
    }
  }

  @Test(timeout = Support.LIMIT)
  public void arrays() {
    try (Context context = Context.open(device)) {
      float[] x = {1, 2, 3, 4};
      float[] y = new float[4];
      OperationDesc<Matrix> twice = Operations.axpby(Matrix.of(x, 2, 2), Matrix.of(y, 2, 2), new Axpby().with(2, 0));
      try (Plan plan = context.plan(twice)) {
        plan.runAsync(twice).join();
      }
      assertArrayEquals(new float[] {2, 4, 6, 8}, y, 0);
    }
  }

  /** A GEMM and a linear layer, with and without a bias, with each operand in an array or in a direct buffer. */
  @Test(timeout = Support.LIMIT)
  public void arraysBesideBuffers() {
    try (Context context = Context.open(device)) {
      for (int arrays = 1; arrays < 16; ++arrays) {
        Matrix a = either((arrays & 1) != 0, 2, 1, 2, 3, 4);
        Matrix b = either((arrays & 2) != 0, 2, 1, 0, 0, 1);
        Matrix c = either((arrays & 4) != 0, 2, 0, 0, 0, 0);
        Matrix bias = either((arrays & 8) != 0, 1, 10, 20);
        for (OperationDesc<?> each : List.of(Gemm.of(a, b, c), Gemm.of(a, b, c).withBias(bias), Operations.linear(a, b, c), Operations.linear(a, b, c, new Linear().bias(bias)))) {
          try (Plan plan = context.plan(each)) {
            plan.runAsync(each).join();
          }
        }
        Gemm batch = Gemm.batched(List.of(a), List.of(b), List.of(c)).withBias(bias);
        if (arrays == 8) {
          try (Plan plan = context.plan(batch)) {
            plan.runAsync(batch).join();
          }
        } else {
          refused("[0] is f32 2 x 2 by rows, ld 2, in an array", () -> context.plan(batch));
        }
        float[] sums = c.array == null ? Support.content((FloatBuffer) c.owner()) : (float[]) c.array;
        assertArrayEquals("arrays " + arrays, new float[] {11, 22, 13, 24}, sums, 0);
      }
      Matrix shape = Matrix.shape(DType.F32, 2, 2);
      Matrix array = either(true, 2, 1, 2, 3, 4);
      Gemm mixed = Gemm.of(shape, shape, shape).withBias(either(true, 1, 10, 20));
      try (Plan plan = context.plan(mixed); Plan onDevice = context.plan(Gemm.of(shape, shape, shape).withBias(either(false, 1, 10, 20)))) {
        assertEquals(onDevice.prediction().bytesIn(), plan.prediction().bytesIn());
      }
      try (Plan plan = context.plan(Gemm.of(array, shape, shape), new PlanOptions().place(MemoryKind.PINNED))) {
        plan.runAsync(Gemm.of(array, array, either(true, 2, 0, 0, 0, 0))).join();
      }
    }
  }

  private static Matrix either(boolean isArray, int rows, float... values) {
    return isArray ? Matrix.of(values, rows, values.length / rows) : Matrix.of(Support.direct(values), rows, values.length / rows);
  }

  private static void refused(String words, org.junit.function.ThrowingRunnable call) {
    String message = assertThrows(StreamGemmException.InvalidArgument.class, call).getMessage();
    assertTrue(message, message.contains(words));
  }

  @Test(timeout = Support.LIMIT)
  public void mistakesNameTheArguments() {
    Matrix x = Matrix.shape(DType.F32, 8, 8);
    Matrix y = Matrix.shape(DType.F32, 8, 7);
    try (Context context = Context.open(device); Plan plan = context.plan(Operations.softmax(x, x), place())) {
      refused("x is 8 x 8", () -> context.plan(Operations.softmax(x, y)));
      String weights = "w is 8 x 7; with this x, y and op of w it must be 8 x 8";
      refused(weights, () -> context.layers().linear(x, y, x, new Linear()));
      refused(weights, () -> context.plan(Operations.linear(x, y, x)));
      refused(weights, () -> context.supports(Operations.linear(x, y, x)));
      refused("y is 8 x 7; with this x it must be 9 x 7", () -> context.plan(Operations.linear(Matrix.shape(DType.F32, 9, 8), y, y)));
      refused("opW is 2; it must be 0 (N) or 1 (T)", () -> context.plan(Operations.linear(x, x, x, new Linear().opW(Transpose.C))));
      refused("products.get(1).c is 8 x 7", () -> context.plan(Operations.gemmGroup(List.of(Gemm.of(x, x, x), Gemm.of(x, x, y)))));
      refused("products.get(0).b is f32 1 x 1 by rows, ld 1, in an array", () -> context.plan(Operations.gemmGroup(List.of(Gemm.of(x, either(true, 1, 1), x)))));
      refused("c is 8 x 8", () -> context.supports(Gemm.of(x, y, x)));
      refused("the operation differs", () -> plan.runAsync(Operations.softmax(Matrix.of(Support.direct(1, 2), 1, 2), Matrix.of(Support.direct(1, 2), 1, 2))));
      assertThrows(NullPointerException.class, () -> plan.runAsync(null));
    }
  }

  /** What is described keeps the options that were checked, whatever becomes of the caller's. */
  @Test(timeout = Support.LIMIT)
  public void descriptionsAreImmutable() {
    Arguments of = new Arguments(false);
    try (Context context = Context.open(device)) {
      Matrix x = of.matrix(8, 8);
      float[] y = new float[64];
      Axpby axpby = new Axpby().with(2, 0);
      OperationDesc<?> operation = Operations.axpby(x, Matrix.of(y, 8, 8), axpby);
      axpby.with(5, 0);
      context.runAsync(operation).join();
      assertEquals(2 * of.memory.get(0).get(63), y[63], 0);
      Windows windows = new Windows(1, 1);
      operation = Operations.im2col(Images.nchw(x, 2, 2, 2), of.matrix(32, 2), windows);
      windows.padding(100, 100);
      context.runAsync(operation).join();
      Windows filters = new Windows(1, 1);
      Conv2d conv = new Conv2d(filters);
      operation = Operations.conv2d(Images.nchw(x, 2, 2, 2), of.matrix(2, 2), Images.nchw(of.matrix(8, 8), 2, 2, 2), conv);
      filters.padding(100, 100);
      conv.bias(of.matrix(1, 1));
      context.runAsync(operation).join();
      Recurrent how = of.recurrent(true);
      RecurrentGradients gradients = new RecurrentGradients().dy(of.sequence()).weights(of.matrix(32, 8), null);
      operation = Operations.recurrentBackward(of.sequence(), of.sequence(), how, gradients);
      how.reserve(of.matrix(1, 1));
      gradients.weights(of.matrix(1, 1), null);
      context.runAsync(operation).join();
      IntBuffer rows = Arguments.indices().put(0, 99);
      Matrix picked = of.matrix(8, 8);
      GatherFlag[] flags = {GatherFlag.NAN};
      operation = Operations.gather(x, Indices.of(Matrix.of(rows, DType.I32, 1, 8), IndexType.I32), picked, flags);
      flags[0] = GatherFlag.FROM_END;
      context.runAsync(operation).join();
      assertTrue(Float.isNaN(of.memory.get(of.memory.size() - 1).get(0)));
    }
  }

  @Test(timeout = Support.LIMIT)
  public void aFunctionStaysThatOfThePlan() {
    int[] calls = {0};
    try (Context context = Context.open(device)) {
      ByteBuffer one = context.allocatePinned(64).order(ByteOrder.nativeOrder());
      ByteBuffer other = context.allocatePinned(64).order(ByteOrder.nativeOrder());
      CustomOperation.Function function = call -> call.buffer(0).order(ByteOrder.nativeOrder()).putFloat(12, ++calls[0]);
      Matrix at = Matrix.of(one, DType.F32, 4, 4);
      Matrix there = Matrix.of(other, DType.F32, 4, 4);
      try (Plan plan = context.plan(new CustomOperation(function).writes(at)); Graph graph = context.graph()) {
        plan.runAsync(new CustomOperation(function).writes(there)).join();
        assertEquals(1f, other.getFloat(12), 0);
        refused("function", () -> plan.runAsync(new CustomOperation(call -> {}).writes(there)));
        graph.record(new CustomOperation(function).writes(at));
        graph.update(0, new CustomOperation(function).writes(there));
        graph.update(0, new CustomOperation(function).writes(at));
        System.gc();
        graph.runAsync().join();
        assertEquals(2f, one.getFloat(12), 0);
        refused("function", () -> graph.update(0, new CustomOperation(call -> {}).writes(there)));
      }
    }
  }
}
