// SPDX-License-Identifier: Apache-2.0
package org.streamgemm;

import static org.junit.Assert.assertEquals;

import java.util.List;
import java.util.concurrent.CountDownLatch;
import org.junit.Test;

/** Exits with work in flight, each in a VM of its own. */
public class ProcessTest {
  /** Exits with work in flight, in one of several ways. */
  public static final class Leave {
    public static void main(String[] arguments) throws Exception {
      Context context = Context.open(arguments[1]);
      int n = arguments[1].equals("cpu") ? 1024 : 64;
      Matrix a = context.pinnedMatrix(DType.F64, n, n);
      Gate gate = new Gate(1);
      gate.job(context, new Submit());
      for (int i = 0; i < 8; ++i) {
        context.gemmAsync(a, a, context.pinnedMatrix(DType.F64, n, n)).thenAccept(m -> {});
        context.gemmAsync(Matrix.of(new double[n * n], n, n), a, Matrix.of(new double[n * n], n, n));
      }
      if (context.inFlight() == 0) throw new AssertionError("nothing is in flight");
      System.out.println("leaving");
      gate.open();
      switch (arguments[0]) {
        case "return":
          return;
        case "close":
          context.close();
          return;
        case "exit":
          System.exit(0);
          return;
        case "halt":
          Runtime.getRuntime().halt(0);
          return;
        case "hook":
          Runtime.getRuntime().addShutdownHook(
              new Thread(() -> context.gemmAsync(a, a, context.pinnedMatrix(DType.F64, n, n))));
          System.exit(0);
          return;
        case "wait":
          Thread waiter = new Thread(context::synchronize);
          waiter.setDaemon(true);
          waiter.start();
          Thread.sleep(20);
          return;
        default:
          throw new AssertionError(arguments[0]);
      }
    }
  }

  @Test
  public void exitWithWorkInFlight() throws Exception {
    new Gate(1).close(); // skips the test where there is none
    for (String device : List.of("cpu", "sim:h200"))
      for (String way : List.of("return", "close", "exit", "halt", "hook", "wait"))
        assertEquals("leaving", Support.inOtherVm(Leave.class, List.of(), way, device).trim());
  }

  /** Exits with functions in flight, each of which takes a while, in one of several ways. */
  public static final class LeaveFunctions {
    public static void main(String[] arguments) throws Exception {
      Context context = Context.open(arguments[1]);
      CountDownLatch running = new CountDownLatch(1);
      for (int i = 0; i < 4; ++i) {
        Matrix x = context.pinnedMatrix(DType.F64, 1, 1);
        for (int j = 0; j < 50; ++j)
          context.customAsync(new CustomOperation(call -> {
            running.countDown();
            Thread.sleep(arguments[0].equals("stuck") ? 1_000_000 : 5);
            call.buffer(0).putDouble(0, new byte[1000].length);
          }).updates(x));
      }
      running.await();
      System.out.println("leaving");
      switch (arguments[0]) {
        case "return":
        case "stuck":
          return;
        case "close":
          context.close();
          return;
        case "exit":
          System.exit(0);
          return;
        case "halt":
          Runtime.getRuntime().halt(0);
          return;
        case "inside":
          failsWithShutdown(context, call -> System.exit(0));
          return;
        case "hook":
          Runtime.getRuntime().addShutdownHook(
              new Thread(() -> { failsWithShutdown(context, call -> Thread.sleep(1_000_000)); }));
          System.exit(0);
          return;
        default:
          throw new AssertionError(arguments[0]);
      }
    }
  }

  private static void failsWithShutdown(Context context, CustomOperation.Function function) {
    try {
      context.custom(new CustomOperation(function).updates(context.pinnedMatrix(DType.F64, 1, 1)));
      System.out.println("it did not fail");
    } catch (StreamGemmException.Shutdown expected) {
      // The VM exits.
    }
  }

  @Test
  public void exitWithFunctionsInFlight() throws Exception {
    for (String device : List.of("cpu", "sim:h200"))
      for (String way : List.of("return", "stuck", "close", "exit", "halt", "inside", "hook"))
        assertEquals("leaving", Support.inOtherVm(LeaveFunctions.class, List.of(), way, device).trim());
  }
}
