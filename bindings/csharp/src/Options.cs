// SPDX-License-Identifier: Apache-2.0
using System;
using System.Collections.Generic;
using System.Numerics;
using System.Text;
using StreamGemm.Internal;

namespace StreamGemm {
  /// <summary>Order and priority of a submission. Read during the call only, so one object can be reused for many calls.</summary>
  public class SubmitOptions {
    internal static readonly SubmitOptions None = new SubmitOptions();

    /// <summary>Run after earlier submissions to this stream; null: no stream.</summary>
    public GemmStream Stream { get; set; }

    /// <summary>Run after these jobs too; null: after none.</summary>
    public IReadOnlyList<GemmJob> After { get; set; }

    /// <summary>-1 low, 0 normal (or the stream's), 1 high: runs before queued jobs of lower priority.</summary>
    public int Priority { get; set; }

    /// <summary>Flags of the submission.</summary>
    public SubmitFlags Flags { get; set; }

    /// <summary>Restricts the planner's choice; null: no restriction.</summary>
    public PlanOptions Plan { get; set; }

    /// <summary>Time limit from the submission: a job that has not started by then is dropped, a running job is stopped; it
    /// then fails with <see cref="DeadlineExceededException"/>. Null: no limit. Recorded submissions have none.</summary>
    public TimeSpan? Deadline { get; set; }

    /// <summary>A name for the job: in the message of its failure, and in the library's log. At most 63 bytes of UTF-8
    /// are kept, cut between characters. Null or "": none.</summary>
    public string Label {
      get => label;
      set {
        if (value != null && value.IndexOf('\0') >= 0)
          throw new ArgumentException("Label holds a NUL: \"" + value.Replace("\0", "\\0") + "\"", "value");
        LabelText = string.IsNullOrEmpty(value) ? null : Encoding.UTF8.GetBytes(value + "\0");
        label = value;
      }
    }

    string label;

    /// <summary>The label as UTF-8 with its NUL; null: none.</summary>
    internal byte[] LabelText { get; private set; }

    internal long DeadlineNanoseconds {
      get {
        if (Deadline == null) return 0;
        if (Deadline.Value <= TimeSpan.Zero) throw new ArgumentException("Deadline is " + Deadline + ", which is not positive", "options");
        return Deadline.Value.Ticks > long.MaxValue / 100 ? 0 : Deadline.Value.Ticks * 100;
      }
    }

    internal long StreamToken => Stream == null ? 0 : Stream.Handle.Token;

    internal long PlanAddress => Plan == null ? 0 : (long)sg_plan_options.getCPtr(Plan.native).Handle;

    internal long[] AfterTokens() {
      if (After == null || After.Count == 0) return null;
      var tokens = new long[After.Count];
      for (int i = 0; i < tokens.Length; ++i) {
        if (After[i] == null) throw new ArgumentException("After[" + i + "] is null", "options");
        tokens[i] = After[i].Handle.Token;
      }
      return tokens;
    }
  }

  /// <summary>A GEMM's scalars, operations and batch, and the options of its submission.</summary>
  public sealed class GemmOptions : SubmitOptions {
    internal static readonly GemmOptions Default = new GemmOptions();

    /// <summary>The factor of op(A) * op(B). Default: 1. The imaginary part is ignored for real types.</summary>
    public Complex Alpha { get; set; } = Complex.One;

    /// <summary>The factor of C's old value. Default: 0, which never reads C.</summary>
    public Complex Beta { get; set; }

    /// <summary>The operation applied to A.</summary>
    public Op OpA { get; set; }

    /// <summary>The operation applied to B.</summary>
    public Op OpB { get; set; }

    /// <summary>The least accurate arithmetic allowed. Default: exact.</summary>
    public Compute Compute { get; set; }

    /// <summary>Items of a batch; the matrices are those of its first item. 0 and 1: no batch.</summary>
    public long Batch { get; set; }

    /// <summary>Elements from one item's A to the next; 0 shares A.</summary>
    public long StrideA { get; set; }

    /// <summary>Elements from one item's B to the next; 0 shares B.</summary>
    public long StrideB { get; set; }

    /// <summary>Elements from one item's C to the next.</summary>
    public long StrideC { get; set; }

    /// <summary>Added to C: a row with a value for each column of C, or a column with a value for each row; contiguous, of C's
    /// type. Default: none. Read until the job has completed.</summary>
    public Matrix Bias { get; set; }

    /// <summary>Elements from one item's bias to the next; 0 shares it.</summary>
    public long StrideBias { get; set; }

    /// <summary>The activation applied last to each element of C. Default: none.</summary>
    public Activation Activation { get; set; }
  }

  /// <summary>One GEMM of a group: its matrices, scalars and operations. The options' order and priority are not used.</summary>
  public readonly struct GemmItem {
    /// <summary>A.</summary>
    public Matrix A { get; }
    /// <summary>B.</summary>
    public Matrix B { get; }
    /// <summary>C.</summary>
    public Matrix C { get; }
    /// <summary>Scalars, operations, batch; null: the defaults.</summary>
    public GemmOptions Options { get; }

    /// <summary>One GEMM of a group.</summary>
    public GemmItem(Matrix a, Matrix b, Matrix c, GemmOptions options = null) {
      A = a;
      B = b;
      C = c;
      Options = options;
    }
  }
}
