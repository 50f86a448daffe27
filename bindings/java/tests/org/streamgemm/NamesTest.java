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
      refused("product differs", () -> plan.runAsync(Gemm.of(matrix(1, 2), matrix(2, 2), matrix(1, 2))));
      plan.close();
    }
    refused("options.computeLanes is -1", () -> Context.open(new ContextOptions().device("cpu").computeLanes(-1)));
  }

  @Test
  public void everyForm() {
    String[][] forms = {
        {"desc->a.dtype is f32 and desc->b.dtype is f64", "a.dtype() is f32 and b.dtype() is f64"},
        {"desc->op_a is 7", "opA is 7"},
        {"desc->c_array[3] is NULL", "c[3] is NULL"},
        {"items of desc->c_array overlap", "items of c overlap"},
        {"descs[12]->stride_c is 1", "products.get(12).strideC is 1"},
        {"desc->a.data is 0x1", "a is 0x1"},
        {"desc->q.token_stride is 2", "q.tokenStride() is 2"},
        {"desc->d_o is 0x1; with this x and op_w", "dO is 0x1; with this x and opW"},
        {"desc->alpha.re is 0.5", "alpha is 0.5"},
        {"desc->beta.im is 1e300", "betaIm is 1e300"},
        {"the size of desc->bias", "the size of bias"},
        {"submit->after[2] is 0x7", "submit.after[2] is 0x7"},
        {"submit->plan->memory_limit", "submit.plan.memoryLimit"},
        {"dst (0x1) and src (0x2) overlap", "to (0x1) and from (0x2) overlap"},
        {"an operand that one of descs writes", "an operand that one of products writes"},
        {"nothing of C's: description, source", "nothing of C's: description, source"},
    };
    for (String[] form : forms) assertEquals(form[1], Names.inJava(form[0]));
  }
}
