// SPDX-License-Identifier: Apache-2.0
using System;
using System.Collections.Generic;
using System.Numerics;
using System.Text;

namespace StreamGemm {
  /// <summary>Order and priority of a submission. Read during the call only, so one object can be reused for many calls.</summary>
  public partial class SubmitOptions {
    internal static readonly SubmitOptions None = new SubmitOptions();

    static long Nanoseconds(TimeSpan? limit, string name) {
      if (limit == null) return 0;
      if (limit.Value <= TimeSpan.Zero) throw new ArgumentException(name + " is " + limit + ", which is not positive", "options");
      return limit.Value.Ticks > long.MaxValue / 100 ? 0 : limit.Value.Ticks * 100;
    }

    static byte[] Utf8(string value, string name) {
      if (value != null && value.IndexOf('\0') >= 0)
        throw new ArgumentException(name + " holds a NUL: \"" + value.Replace("\0", "\\0") + "\"", "value");
      return string.IsNullOrEmpty(value) ? null : Encoding.UTF8.GetBytes(value + "\0");
    }

    static long[] Tokens(IReadOnlyList<GemmJob> jobs, string name) {
      if (jobs == null || jobs.Count == 0) return null;
      var tokens = new long[jobs.Count];
      for (int i = 0; i < tokens.Length; ++i) {
        if (jobs[i] == null) throw new ArgumentException(name + "[" + i + "] is null", "options");
        tokens[i] = jobs[i].Handle.Token;
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
