// SPDX-License-Identifier: Apache-2.0
using System;
using System.Threading;
using System.Threading.Tasks;

namespace StreamGemm {
  public sealed partial class GemmContext {
    /// <summary>The matrix product of two arrays, in a new array.</summary>
    public async Task<T[,]> MultiplyAsync<T>(T[,] a, T[,] b, GemmOptions options = null,
                                             CancellationToken cancellationToken = default(CancellationToken)) where T : struct {
      T[,] c = ResultOf(a, b, options);
      await GemmAsync(Matrix.Of(a), Matrix.Of(b), Matrix.Of(c), options, cancellationToken).ConfigureAwait(false);
      return c;
    }

    /// <summary>The matrix product of two arrays, in a new array; blocks until it is complete.</summary>
    public T[,] Multiply<T>(T[,] a, T[,] b, GemmOptions options = null) where T : struct {
      T[,] c = ResultOf(a, b, options);
      Gemm(Matrix.Of(a), Matrix.Of(b), Matrix.Of(c), options);
      return c;
    }

    static T[,] ResultOf<T>(T[,] a, T[,] b, GemmOptions options) where T : struct {
      if (a == null) throw new ArgumentNullException("a");
      if (b == null) throw new ArgumentNullException("b");
      GemmOptions o = options ?? GemmOptions.Default;
      return new T[a.GetLongLength(o.OpA == Transpose.N ? 0 : 1), b.GetLongLength(o.OpB == Transpose.N ? 1 : 0)];
    }
  }
}
