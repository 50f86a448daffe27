// SPDX-License-Identifier: Apache-2.0
package org.streamgemm;

import java.time.Duration;

/** Timeouts. */
final class Times {
  private Times() {}

  /** Nanoseconds of a time limit; 0: none. */
  static long limit(String name, Duration limit) {
    if (limit != null && (limit.isNegative() || limit.isZero()))
      throw new StreamGemmException.InvalidArgument(name + " is " + limit + ", which is not positive");
    long nanos = limit == null ? 0 : nanos(limit);
    return nanos == Long.MAX_VALUE ? 0 : nanos;
  }

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
