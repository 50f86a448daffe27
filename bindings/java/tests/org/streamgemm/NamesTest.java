// SPDX-License-Identifier: Apache-2.0
package org.streamgemm;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertThrows;
import static org.junit.Assert.assertTrue;

import java.util.List;
import org.junit.Test;
import org.junit.function.ThrowingRunnable;

/** Bad arguments are IllegalArgumentException, whose message uses the Java name of the argument. */
public class NamesTest {
  private static Matrix matrix(int rows, int cols) {
    return Matrix.of(Support.direct(new float[rows * cols]), rows, cols);
  }

  private static void refused(String name, ThrowingRunnable call) {
    IllegalArgumentException e = assertThrows(IllegalArgumentException.class, call);
    assertEquals(Status.INVALID_ARGUMENT, ((StreamGemmFailure) e).status());
    assertTrue(name + " in: " + e.getMessage(), e.getMessage().contains(name));
    assertFalse(e.getMessage(), e.getMessage().contains("->") || e.getMessage().contains("desc"));
  }

  @Test
  public void ofArguments() {
    try (Context context = Context.open("cpu"); Context other = Context.open("cpu"); Stream foreign = other.stream()) {
      Gemm good = Gemm.of(matrix(2, 2), matrix(2, 2), matrix(2, 2));
      Gemm wrong = Gemm.of(matrix(2, 2), matrix(3, 2), matrix(2, 2));
      refused("(b.rows())", () -> context.gemm(wrong));
      refused("(b.rows())", () -> context.gemmAsync(wrong, new Submit()));
      refused("(products.get(1).b.rows())", () -> context.gemmAsync(List.of(good, wrong), new Submit()));
      refused("products is empty", () -> context.gemmAsync(List.of(), new Submit()));
      refused("c is 2 x 3", () -> context.gemm(matrix(2, 2), matrix(2, 2), matrix(2, 3)));
      refused("submit.priority is 5", () -> context.gemmAsync(good, new Submit().priority(5)));
      refused("submit.stream", () -> context.gemmAsync(good, new Submit().stream(foreign)));
      refused("submit.plan.tileM is -1", () -> context.gemmAsync(good, new Submit().plan(new PlanOptions().tileM(-1))));
      refused("options.parts is -1", () -> context.plan(good, new PlanOptions().parts(-1)));
      Plan plan = context.plan(good);
      refused("the operation differs", () -> plan.runAsync(Gemm.of(matrix(1, 2), matrix(2, 2), matrix(1, 2))));
      plan.close();
    }
    refused("options.computeLanes is -1", () -> Context.open(new ContextOptions().device("cpu").computeLanes(-1)));
  }

  @Test
  public void everyForm() {
    int gemm = Structs.CALL_GEMM;
    Object[][] forms = {
        {gemm, "\1desc->a.dtype is f32 and \1desc->b.dtype is f64", "a.dtype() is f32 and b.dtype() is f64"},
        {gemm, "\1desc->op_a is 7", "opA is 7"},
        {gemm, "\1desc->c_array[3] is \1NULL", "c[3] is null"},
        {gemm, "items of \1desc->c_array overlap", "items of c overlap"},
        {-1, "\1descs[12]->stride_c is 1", "products.get(12).strideC is 1"},
        {gemm, "\1desc->a.data is 0x1", "a is 0x1"},
        {Structs.CALL_ATTENTION, "\1desc->q.token_stride is 2; \1desc->kv_heads is 3", "q.tokenStride() is 2; k.heads() is 3"},
        {Structs.CALL_ATTENTION_BACKWARD, "\1desc->dout is 0x1", "dOut is 0x1"},
        {gemm, "\1desc->alpha.re is 0.5", "alpha is 0.5"},
        {gemm, "\1desc->beta.im is 1e300", "betaIm is 1e300"},
        {-1, "\1submit->after[2] is 0x7", "submit.after[2] is 0x7"},
        {-1, "\1submit->plan->memory_limit", "submit.plan.memoryLimit"},
        {-1, "\1submit->timeout_ns", "submit.timeout"},
        {-1, "\1dst (0x1) and \1src (0x2) overlap", "to (0x1) and from (0x2) overlap"},
        {-1, "\1path is \"/data/src/dst/desc->a_array\"", "path is \"/data/src/dst/desc->a_array\""},
    };
    for (Object[] form : forms) assertEquals(form[2], Names.inJava((String) form[1], (int) form[0]));
  }
}
