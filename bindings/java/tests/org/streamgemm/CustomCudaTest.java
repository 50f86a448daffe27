// SPDX-License-Identifier: Apache-2.0
package org.streamgemm;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertThrows;
import static org.junit.Assert.assertTrue;

import java.util.ArrayList;
import java.util.List;
import org.junit.Test;

/** Custom operations on the emulated GPU. */
public class CustomCudaTest {
  @Test
  public void theCallHasAStream() {
    try (Context context = Context.open("cuda:0")) {
      Matrix x = context.deviceMatrix(DType.F64, 2, 4);
      List<Object> found = new ArrayList<>();
      context.custom(new CustomOperation(call -> {
        StreamGemmException refused = assertThrows(StreamGemmException.Unsupported.class, () -> call.buffer(0));
        assertTrue(refused.getMessage(), refused.getMessage().contains("operand 0 is accessed by the native stream"));
        found.addAll(List.of(call.nativeStream() != 0, call.address(0) == x.address(), call.size(0)));
      }).updates(x));
      assertEquals(List.of(true, true, 64L), found);
      StreamGemmException failed = assertThrows(StreamGemmException.BackendFailure.class,
          () -> context.custom(new CustomOperation(call -> {
            throw new Exception("on purpose");
          }).writes(x)));
      assertTrue(failed.getMessage(), failed.getMessage().contains("java.lang.Exception: on purpose"));
    }
  }
}
