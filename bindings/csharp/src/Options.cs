// SPDX-License-Identifier: Apache-2.0
using System;
using System.Collections.Generic;
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

  public sealed partial class GemmOptions {
    internal static readonly GemmOptions Default = new GemmOptions();
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
