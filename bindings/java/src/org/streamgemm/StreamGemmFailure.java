// SPDX-License-Identifier: Apache-2.0
package org.streamgemm;

/**
 * What every exception of the library's failures has, but for a cancellation. Where Java has an exception for a failure
 * (IllegalArgumentException for arguments) it derives from that, else from {@link StreamGemmException}.
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
