// SPDX-License-Identifier: Apache-2.0
package org.streamgemm;

/**
 * Implemented by the exceptions of all failures except cancellation. If Java has an exception for a failure
 * (IllegalArgumentException for arguments), the class derives from that, else from {@link StreamGemmException}.
 */
public interface StreamGemmFailure {
  /**
   * The status.
   *
   * @return the status
   */
  Status status();

  /**
   * The library's message.
   *
   * @return the message
   */
  String getMessage();
}
