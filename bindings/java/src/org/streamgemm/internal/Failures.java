// SPDX-License-Identifier: Apache-2.0
package org.streamgemm.internal;

import java.nio.charset.StandardCharsets;
import org.streamgemm.Status;
import org.streamgemm.StreamGemmException;

/** Failures of native calls, as exceptions. */
final class Failures {
  private Failures() {}

  /** Called by the native code, on the thread whose call failed. */
  static void raise(int status, byte[] message, int call) {
    throw StreamGemmException.of(Status.of(status), new String(message, StandardCharsets.UTF_8), call);
  }
}
