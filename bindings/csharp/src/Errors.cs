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

  internal static partial class Errors {
    /// <summary>Throws for a failure of this thread's latest call; returns other statuses.</summary>
    internal static int Check(int status) {
      if (status >= 0) return status;
      Exception error = Latest(status);
      Completions.StopAtExit();
      throw error;
    }

    /// <summary>The number of the operation of this thread's latest submission that failed, until its exception is made.</summary>
    [ThreadStatic] static int failed;

    /// <summary>Takes the status of a submission by number (calls.h).</summary>
    internal static int Noted(int call, int status) {
      if (status < 0) failed = call;
      return status;
    }

    /// <summary>The exception for a failure of this thread's latest call.</summary>
    internal static Exception Latest(int status) {
      int call = failed;
      failed = 0;  // a GEMM
      return Of((Status)status, Names.InCSharp(Internal.Raw.sg_last_error_marked(), call));
    }

    /// <summary>The exception for a status; an unknown status has the general one.</summary>
    internal static Exception Of(Status status, string message) {
      return Made(status, string.IsNullOrEmpty(message) ? Internal.Raw.sg_status_name((int)status) : message);
    }

    /// <summary>Faults of usage are thrown by the call itself, all others through the task, as .NET requires.</summary>
    internal static bool IsUsage(Exception error) {
      return error is ArgumentException || error is InvalidOperationException || error is NotSupportedException;
    }
  }
}
