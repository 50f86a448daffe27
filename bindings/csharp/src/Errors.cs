// SPDX-License-Identifier: Apache-2.0
using System;

namespace StreamGemm {
  /// <summary>
  /// Implemented by every exception of the library. Those with a counterpart in .NET derive from it (ArgumentException,
  /// OperationCanceledException, ...), the others from <see cref="StreamGemmException"/>; this interface is common to all:
  /// <c>catch (Exception e) when (e is IStreamGemmError)</c>.
  /// </summary>
  public interface IStreamGemmError {
    /// <summary>The status of the call or the job.</summary>
    Status Status { get; }

    /// <summary>The library's message.</summary>
    string Message { get; }
  }

  /// <summary>A failure that has no counterpart among .NET's own exceptions.</summary>
  public class StreamGemmException : Exception, IStreamGemmError {
    /// <summary>An exception for a status, with the library's message.</summary>
    public StreamGemmException(Status status, string message) : base(message) {
      Status = status;
    }

    /// <inheritdoc/>
    public Status Status { get; }
  }

  /// <summary>An argument is wrong; the message names it and its value.</summary>
  public sealed class InvalidArgumentException : ArgumentException, IStreamGemmError {
    internal InvalidArgumentException(string message) : base(message) { }

    /// <inheritdoc/>
    public Status Status => Status.InvalidArgument;
  }

  /// <summary>A handle is stale: its object was disposed on another thread meanwhile, or is from before a fork.</summary>
  public sealed class InvalidHandleException : InvalidOperationException, IStreamGemmError {
    internal InvalidHandleException(string message) : base(message) { }

    /// <inheritdoc/>
    public Status Status => Status.InvalidHandle;
  }

  /// <summary>Host or device memory ran out; nothing was started.</summary>
  public sealed class DeviceOutOfMemoryException : OutOfMemoryException, IStreamGemmError {
    internal DeviceOutOfMemoryException(string message) : base(message) { }

    /// <inheritdoc/>
    public Status Status => Status.OutOfMemory;
  }

  /// <summary>The device does not support the requested combination.</summary>
  public sealed class UnsupportedException : NotSupportedException, IStreamGemmError {
    internal UnsupportedException(string message) : base(message) { }

    /// <inheritdoc/>
    public Status Status => Status.Unsupported;
  }

  /// <summary>The job was cancelled, or a job that it depends on was.</summary>
  public sealed class JobCancelledException : OperationCanceledException, IStreamGemmError {
    internal JobCancelledException(string message) : base(message) { }

    /// <inheritdoc/>
    public Status Status => Status.Cancelled;
  }

  /// <summary>The named device, or any backend for it, is not available; the message says why.</summary>
  public sealed class NoDeviceException : StreamGemmException {
    internal NoDeviceException(string message) : base(Status.NoDevice, message) { }
  }

  /// <summary>The object's state does not allow it now.</summary>
  public sealed class BusyException : StreamGemmException {
    internal BusyException(string message) : base(Status.Busy, message) { }
  }

  /// <summary>The wait would never return.</summary>
  public sealed class DeadlockException : StreamGemmException {
    internal DeadlockException(string message) : base(Status.Deadlock, message) { }
  }

  /// <summary>The device or its library failed; the message carries its text.</summary>
  public sealed class BackendFailureException : StreamGemmException {
    internal BackendFailureException(string message) : base(Status.BackendFailure, message) { }
  }

  /// <summary>A job that this one was ordered after failed, so this one did not run.</summary>
  public sealed class DependencyFailedException : StreamGemmException {
    internal DependencyFailedException(string message) : base(Status.DependencyFailed, message) { }
  }

  /// <summary>The job's <see cref="SubmitOptions.Deadline"/> passed before it had completed.</summary>
  public sealed class DeadlineExceededException : TimeoutException, IStreamGemmError {
    internal DeadlineExceededException(string message) : base(message) { }

    /// <inheritdoc/>
    public Status Status => Status.DeadlineExceeded;
  }

  /// <summary>The process is exiting; no new work is taken.</summary>
  public sealed class ShutdownException : StreamGemmException {
    internal ShutdownException(string message) : base(Status.Shutdown, message) { }
  }

  /// <summary>A fault of the library itself. Please report it with its message.</summary>
  public sealed class InternalErrorException : StreamGemmException {
    internal InternalErrorException(string message) : base(Status.Internal, message) { }
  }

  internal static class Errors {
    /// <summary>Throws for a failure of this thread's latest call; returns other statuses.</summary>
    internal static int Check(int status) {
      if (status >= 0) return status;
      Exception error = Latest(status);
      Completions.StopAtExit();
      throw error;
    }

    /// <summary>The exception for a failure of this thread's latest call.</summary>
    internal static Exception Latest(int status) {
      return Of((Status)status, Internal.Raw.sg_last_error_message());
    }

    /// <summary>The exception for a status; an unknown status has the general one.</summary>
    internal static Exception Of(Status status, string message) {
      message = string.IsNullOrEmpty(message) ? Internal.Raw.sg_status_name((int)status) : Names.InCSharp(message);
      switch (status) {
        case Status.InvalidArgument: return new InvalidArgumentException(message);
        case Status.InvalidHandle: return new InvalidHandleException(message);
        case Status.OutOfMemory: return new DeviceOutOfMemoryException(message);
        case Status.NoDevice: return new NoDeviceException(message);
        case Status.Unsupported: return new UnsupportedException(message);
        case Status.Busy: return new BusyException(message);
        case Status.Cancelled: return new JobCancelledException(message);
        case Status.Deadlock: return new DeadlockException(message);
        case Status.BackendFailure: return new BackendFailureException(message);
        case Status.DependencyFailed: return new DependencyFailedException(message);
        case Status.DeadlineExceeded: return new DeadlineExceededException(message);
        case Status.Shutdown: return new ShutdownException(message);
        case Status.Internal: return new InternalErrorException(message);
        default: return new StreamGemmException(status, message);
      }
    }

    /// <summary>Faults of usage are thrown by the call itself, all others through the task, as .NET requires.</summary>
    internal static bool IsUsage(Exception error) {
      return error is ArgumentException || error is InvalidOperationException || error is NotSupportedException;
    }
  }
}
