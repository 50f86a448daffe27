// SPDX-License-Identifier: Apache-2.0
package org.streamgemm;

import java.util.concurrent.CancellationException;

/**
 * A failure that the library reports, with its status and message. Each status has a class of its own below. Two of
 * them are standard Java exceptions: a wrong argument is an {@link IllegalArgumentException}, and a cancelled job fails
 * with a {@link CancellationException}, as futures do.
 */
public class StreamGemmException extends RuntimeException implements StreamGemmFailure {
  private static final long serialVersionUID = 1;

  /** The status. */
  private final Status status;
  /** The whole message, which a job has when the program asks for its outcome; null: the one given at first. */
  private volatile String whole;

  /**
   * A failure.
   *
   * @param status its status
   * @param message its message
   */
  protected StreamGemmException(Status status, String message) {
    super(message);
    this.status = status;
  }

  @Override
  public Status status() {
    return status;
  }

  @Override
  public String getMessage() {
    return whole == null ? super.getMessage() : whole;
  }

  /** Replaces a message that was cut; `text` has C argument names. */
  final void complete(String text) {
    whole = Names.inJava(text);
  }

  /**
   * The exception of a status.
   *
   * @param status a failure
   * @param text its message, with C argument names
   * @return a {@link CancellationException} for {@link Status#CANCELLED}, an {@link InvalidArgument} for {@link
   *     Status#INVALID_ARGUMENT}, else an exception of this class
   */
  public static RuntimeException of(Status status, String text) {
    String message = Names.inJava(text);
    switch (status) {
      case INVALID_ARGUMENT:
        return new InvalidArgument(message);
      case INVALID_HANDLE:
        return new InvalidHandle(message);
      case OUT_OF_MEMORY:
        return new OutOfMemory(message);
      case NO_DEVICE:
        return new NoDevice(message);
      case UNSUPPORTED:
        return new Unsupported(message);
      case BUSY:
        return new Busy(message);
      case CANCELLED:
        return new CancellationException(message);
      case DEADLOCK:
        return new Deadlock(message);
      case BACKEND_FAILURE:
        return new BackendFailure(message);
      case DEPENDENCY_FAILED:
        return new DependencyFailed(message);
      case DEADLINE_EXCEEDED:
        return new DeadlineExceeded(message);
      case SHUTDOWN:
        return new Shutdown(message);
      case INTERNAL:
        return new Internal(message);
      default:
        return new StreamGemmException(status, message);
    }
  }

  /** An argument is wrong; the message names it. */
  public static final class InvalidArgument extends IllegalArgumentException implements StreamGemmFailure {
    private static final long serialVersionUID = 1;

    InvalidArgument(String message) {
      super(message);
    }

    @Override
    public Status status() {
      return Status.INVALID_ARGUMENT;
    }
  }

  /** An object was closed, or never was one. */
  public static final class InvalidHandle extends StreamGemmException {
    private static final long serialVersionUID = 1;

    InvalidHandle(String message) {
      super(Status.INVALID_HANDLE, message);
    }
  }

  /** Host or device memory ran out; nothing was started. */
  public static final class OutOfMemory extends StreamGemmException {
    private static final long serialVersionUID = 1;

    OutOfMemory(String message) {
      super(Status.OUT_OF_MEMORY, message);
    }
  }

  /** The device, or any backend for it, is not available. */
  public static final class NoDevice extends StreamGemmException {
    private static final long serialVersionUID = 1;

    NoDevice(String message) {
      super(Status.NO_DEVICE, message);
    }
  }

  /** The device does not support the requested combination. */
  public static final class Unsupported extends StreamGemmException {
    private static final long serialVersionUID = 1;

    Unsupported(String message) {
      super(Status.UNSUPPORTED, message);
    }
  }

  /** The object's state does not allow it now. */
  public static final class Busy extends StreamGemmException {
    private static final long serialVersionUID = 1;

    Busy(String message) {
      super(Status.BUSY, message);
    }
  }

  /** The wait would never return. */
  public static final class Deadlock extends StreamGemmException {
    private static final long serialVersionUID = 1;

    Deadlock(String message) {
      super(Status.DEADLOCK, message);
    }
  }

  /** The device or its library failed. */
  public static final class BackendFailure extends StreamGemmException {
    private static final long serialVersionUID = 1;

    BackendFailure(String message) {
      super(Status.BACKEND_FAILURE, message);
    }
  }

  /** A job that this one was ordered after failed, so this one did not run. */
  public static final class DependencyFailed extends StreamGemmException {
    private static final long serialVersionUID = 1;

    DependencyFailed(String message) {
      super(Status.DEPENDENCY_FAILED, message);
    }
  }

  /** The deadline of the submission passed before its work had completed. */
  public static final class DeadlineExceeded extends StreamGemmException {
    private static final long serialVersionUID = 1;

    DeadlineExceeded(String message) {
      super(Status.DEADLINE_EXCEEDED, message);
    }
  }

  /** The process is exiting; no new work is taken. */
  public static final class Shutdown extends StreamGemmException {
    private static final long serialVersionUID = 1;

    Shutdown(String message) {
      super(Status.SHUTDOWN, message);
    }
  }

  /** A fault of the library itself. */
  public static final class Internal extends StreamGemmException {
    private static final long serialVersionUID = 1;

    Internal(String message) {
      super(Status.INTERNAL, message);
    }
  }
}
