// SPDX-License-Identifier: Apache-2.0
package org.streamgemm;

import java.time.Duration;

/** Timeouts. */
final class Times {
  private Times() {}

  /** Nanoseconds of a timeout, which is not negative; values out of range become very long. */
  static long nanos(Duration timeout) {
    if (timeout.isNegative())
      throw new StreamGemmException.InvalidArgument("timeout is " + timeout + ", which is negative");
    try {
      return timeout.toNanos();
    } catch (ArithmeticException e) {
      return Long.MAX_VALUE;
    }
  }
}
