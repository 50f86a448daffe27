// SPDX-License-Identifier: Apache-2.0
package org.streamgemm;

import static org.junit.Assert.assertArrayEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertThrows;
import static org.junit.Assert.assertTrue;

import java.time.Duration;
import java.util.Arrays;
import java.util.Collection;
import java.util.Random;
import java.util.concurrent.ExecutionException;
import java.util.function.Function;
import org.junit.After;
import org.junit.Before;
import org.junit.function.ThrowingRunnable;
import org.junit.runner.RunWith;
import org.junit.runners.Parameterized;

/** A test that runs on both kinds of device, with its operands in the device's memory. */
@RunWith(Parameterized.class)
public abstract class DeviceTest {
  static final Submit DEFAULTS = new Submit();

  @Parameterized.Parameters(name = "{0}")
  public static Collection<Object[]> devices() {
    return Arrays.asList(new Object[][] {{"cpu"}, {"sim:h200"}});
  }

  @Parameterized.Parameter public String device;

  Context context;
  private final Random random = new Random(1);

  @Before
  public void open() {
    context = Context.open(device);
  }

  @After
  public void close() {
    context.close();
  }

  /** Values in the device's memory. */
  final Matrix place(long rows, long cols, double... values) {
    Matrix made = context.deviceMatrix(DType.F64, rows, cols);
    context.copyAsync(made, Matrix.of(values, rows, cols)).join();
    return made;
  }

  /** A matrix in the device's memory whose content must be overwritten. */
  final Matrix poisoned(long rows, long cols) {
    double[] values = new double[(int) (rows * cols)];
    Arrays.fill(values, Double.NaN);
    return place(rows, cols, values);
  }

  final double[] fetch(Matrix from) {
    double[] values = new double[(int) (from.rows() * from.cols())];
    context.copyAsync(Matrix.of(values, from.rows(), from.cols()), from).join();
    return values;
  }

  /** Values between -1 and 1. */
  final double[] numbers(long count) {
    return random.doubles(count, -1, 1).toArray();
  }

  /** A copy in another type. */
  final Matrix cast(Matrix from, DType dtype) {
    Matrix made = context.deviceMatrix(dtype, from.rows(), from.cols());
    return context.layers().convert(from, Transpose.N, made);
  }

  /** Values that every type holds exactly, and small sums of their products, too. */
  static double[] integers(int count) {
    double[] made = new double[count];
    for (int i = 0; i < count; ++i) made[i] = i * 5 % 7 - 3;
    return made;
  }

  final void holds(double[] expected, Matrix found) {
    assertArrayEquals(expected, fetch(found), 1e-12);
  }

  /** A wrong call names its argument as in Java. */
  static void refused(String part, ThrowingRunnable call) {
    StreamGemmException.InvalidArgument error = assertThrows(StreamGemmException.InvalidArgument.class, call);
    assertTrue(error.getMessage(), error.getMessage().contains(part));
    assertFalse(error.getMessage(), error.getMessage().contains("desc"));
  }

  /** The failure of a job reaches its future. */
  final void fails(Function<Submit, Job<?>> call) {
    ExecutionException failure = assertThrows(
        ExecutionException.class, () -> call.apply(new Submit().deadline(Duration.ofNanos(1)).label("late")).get());
    assertTrue(failure.toString(), failure.getCause() instanceof StreamGemmException.DeadlineExceeded);
    assertTrue(failure.toString(), failure.getMessage().contains("late"));
  }
}
