// SPDX-License-Identifier: Apache-2.0
// A chain of GEMMs ordered by the memory they share, in pinned buffers without a copy, with a stream and events to
// measure it, and a plan that predicts the same chain on a GPU that need not be present.
import java.nio.FloatBuffer;
import org.streamgemm.Compute;
import org.streamgemm.Context;
import org.streamgemm.DType;
import org.streamgemm.Event;
import org.streamgemm.Gemm;
import org.streamgemm.Job;
import org.streamgemm.Matrix;
import org.streamgemm.MemoryKind;
import org.streamgemm.Plan;
import org.streamgemm.PlanFormat;
import org.streamgemm.PlanOptions;
import org.streamgemm.Stream;
import org.streamgemm.Submit;

/** Streams, events, plans, zero copies. */
public final class Pipeline {
  private static final int N = 256;

  /** Runs it. */
  public static void main(String[] arguments) {
    String device = arguments.length > 0 ? arguments[0] : "auto";
    try (Context context = Context.open(device); Stream stream = context.stream(); Event start = context.event();
         Event end = context.event()) {
      FloatBuffer rotation = context.allocatePinned(4 * N * N).asFloatBuffer(); // moves each row up by one
      for (int i = 0; i < N * N; ++i) rotation.put(i, 0);
      for (int i = 0; i < N; ++i) rotation.put(i * N + (i + 1) % N, 1);
      FloatBuffer values = context.allocatePinned(4 * N * N).asFloatBuffer();
      for (int i = 0; i < N * N; ++i) values.put(i, i / N);

      Matrix shift = Matrix.of(rotation, N, N);
      Matrix even = Matrix.of(values, N, N);
      Matrix odd = context.pinnedMatrix(DType.F32, N, N);
      Submit inOrder = new Submit().stream(stream);
      start.record(stream);
      Job<Matrix> last = null;
      for (int i = 0; i < N; ++i)
        last = context.gemmAsync(i % 2 == 0 ? Gemm.of(shift, even, odd) : Gemm.of(shift, odd, even), inOrder);
      end.record(stream);
      last.join(); // after N shifts every row is back in its place
      for (int i = 0; i < N * N; ++i)
        if (values.get(i) != i / N) throw new AssertionError("element " + i + " is " + values.get(i));
      end.await();
      System.out.printf(
          "%s: %d GEMMs of %d x %d in %.3f ms%n", context.device().name(), N, N, N, 1e3 * start.secondsUntil(end));
    }
    try (Context gpu = Context.open("sim:h200")) {
      Matrix shape = Matrix.shape(DType.F32, 8192, 8192);
      PlanOptions onHost =
          new PlanOptions().placeA(MemoryKind.PINNED).placeB(MemoryKind.PINNED).placeC(MemoryKind.PINNED);
      try (Plan plan = gpu.plan(Gemm.of(shape, shape, shape).with(Compute.TF32), onHost)) {
        System.out.println(plan.describe(PlanFormat.TEXT));
        System.out.println(plan.describe(PlanFormat.TIMELINE));
        if (plan.prediction().predictedSeconds() > 1.2 * plan.prediction().boundSeconds())
          throw new AssertionError(plan.prediction());
      }
    }
  }
}
