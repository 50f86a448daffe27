// SPDX-License-Identifier: Apache-2.0
using System;
using System.Collections.Generic;
using System.Runtime.InteropServices;
using System.Threading;
using System.Threading.Tasks;
using StreamGemm.Internal;

namespace StreamGemm {
  public sealed unsafe partial class GemmContext {
    /// <summary>Submits C = activation(alpha * op(A) * op(B) + beta * C + bias) and returns at once. The operands are pinned and kept alive until
    /// the job has completed, whatever the caller drops; until then A and B must not change and C must not be accessed.</summary>
    /// <param name="a">A; only read.</param>
    /// <param name="b">B; only read.</param>
    /// <param name="c">C.</param>
    /// <param name="options">Scalars, operations, batch, bias, activation, order; null: the defaults.</param>
    /// <param name="cancellationToken">Cancels the job: queued commands are dropped, a running command completes first.</param>
    /// <returns>A task that completes with the job; continuations run on the thread pool. It is canceled if the job
    /// was, and faulted by the job's failure.</returns>
    /// <exception cref="ArgumentException">An operand or an option is wrong; the message names it.</exception>
    public Task GemmAsync(in Matrix a, in Matrix b, in Matrix c, GemmOptions options = null,
                          CancellationToken cancellationToken = default(CancellationToken)) {
      if (cancellationToken.IsCancellationRequested) return Task.FromCanceled(cancellationToken);
      var pending = new Pending(Completions, cancellationToken);
      long job = 0;
      int status;
      try {
        status = Submit(pending, a, b, c, options, &job);
      } catch (Exception error) {
        return pending.Refused(error, job);
      }
      return pending.Submitted(status, job);
    }

    /// <summary>Like <see cref="GemmAsync"/>; returns a handle of the job: to wait, cancel, order other jobs after it, and read
    /// its statistics.</summary>
    public GemmJob SubmitGemm(in Matrix a, in Matrix b, in Matrix c, GemmOptions options = null) {
      var pending = new Pending(Completions, CancellationToken.None);
      long job = 0;
      int status;
      try {
        status = Submit(pending, a, b, c, options, &job);
      } catch {
        pending.Abandon(job);
        throw;
      }
      return pending.Job(status, job);
    }

    int Submit(Pending pending, in Matrix a, in Matrix b, in Matrix c, GemmOptions options, long* job) {
      GemmOptions o = Check(a, b, c, options);
      sg_gemm_desc d = pending.Gemm.Take(a, b, c, o);
      int status = o.Run(Call.Gemm, Handle.Token, &d, pending.Ordered(o, 0, job));
      GC.KeepAlive(this);
      return status;
    }

    /// <summary>Computes C = alpha * op(A) * op(B) + beta * C; blocks until C is complete.</summary>
    public void Gemm(in Matrix a, in Matrix b, in Matrix c, GemmOptions options = null) {
      GemmOptions o = Check(a, b, c, options);
      var pins = default(GemmPins);
      try {
        sg_gemm_desc d = pins.Take(a, b, c, o);
        Errors.Check(o.Run(Call.GemmAndWait, Handle.Token, &d, default(Submission)));
      } finally {
        pins.Release();
      }
      GC.KeepAlive(this);
    }

    /// <summary>Computes C (m x n) = alpha * op(A) * op(B) + beta * C over tight row-major spans, which may be on the stack;
    /// blocks until C is complete. op(A) is m x k, op(B) is k x n.</summary>
    public void Gemm<T>(ReadOnlySpan<T> a, ReadOnlySpan<T> b, Span<T> c, long m, long n, long k, GemmOptions options = null)
      where T : struct {
      GemmOptions o = options ?? GemmOptions.Default;
      Gemm(Layout.RowMajor, m, n, k, a, o.OpA == Transpose.N ? k : m, b, o.OpB == Transpose.N ? n : k, c, n, o);
    }

    /// <summary>BLAS form: C (m x n) = alpha * op(A) * op(B) + beta * C with leading dimensions, all three in `layout`; blocks
    /// until C is complete.</summary>
    public void Gemm<T>(Layout layout, long m, long n, long k, ReadOnlySpan<T> a, long lda, ReadOnlySpan<T> b, long ldb, Span<T> c,
                        long ldc, GemmOptions options = null) where T : struct {
      GemmOptions o = options ?? GemmOptions.Default;
      DType dtype = Element<T>.Check(0);
      CheckSizes(m, n, k);
      fixed (byte* pa = &First(a), pb = &First(b), pc = &First<T>(c)) {
        Gemm(View("a", layout, o.OpA, m, k, lda, (long)pa, a.Length, dtype), View("b", layout, o.OpB, k, n, ldb, (long)pb, b.Length, dtype),
             View("c", layout, Transpose.N, m, n, ldc, (long)pc, c.Length, dtype), o);
      }
    }

    /// <summary>Asynchronous BLAS form: C (m x n) = alpha * op(A) * op(B) + beta * C with leading dimensions, all three in
    /// `layout`.</summary>
    public Task GemmAsync<T>(Layout layout, long m, long n, long k, ReadOnlyMemory<T> a, long lda, ReadOnlyMemory<T> b, long ldb,
                             Memory<T> c, long ldc, GemmOptions options = null,
                             CancellationToken cancellationToken = default(CancellationToken)) where T : struct {
      GemmOptions o = options ?? GemmOptions.Default;
      bool plainA = o.OpA == Transpose.N, plainB = o.OpB == Transpose.N;
      CheckSizes(m, n, k);
      CheckLd("a", layout, o.OpA, m, k, lda, a.Length);
      CheckLd("b", layout, o.OpB, k, n, ldb, b.Length);
      CheckLd("c", layout, Transpose.N, m, n, ldc, c.Length);
      return GemmAsync(Matrix.Of(a, plainA ? m : k, plainA ? k : m, lda, layout), Matrix.Of(b, plainB ? k : n, plainB ? n : k, ldb, layout),
                       Matrix.Of(c, m, n, ldc, layout), o, cancellationToken);
    }

    /// <summary>Submits a batch of GEMMs of one shape whose matrices are at arbitrary addresses, as one job.</summary>
    /// <param name="a">The A of each item; all of one shape, type and layout.</param>
    /// <param name="b">The B of each item.</param>
    /// <param name="c">The C of each item; no two overlap.</param>
    /// <param name="options">As in <see cref="GemmAsync"/>; its batch and strides are not used.</param>
    /// <param name="cancellationToken">Cancels the job.</param>
    public Task GemmBatchAsync(IReadOnlyList<Matrix> a, IReadOnlyList<Matrix> b, IReadOnlyList<Matrix> c, GemmOptions options = null,
                               CancellationToken cancellationToken = default(CancellationToken)) =>
      Layer(options, cancellationToken, BatchCall(a, b, c, options));

    internal static LayerCall BatchCall(IReadOnlyList<Matrix> a, IReadOnlyList<Matrix> b, IReadOnlyList<Matrix> c, GemmOptions options) {
      GemmOptions o = options ?? GemmOptions.Default;
      Matrix[] allC = SameShape(c, "c", -1), allA = SameShape(a, "a", allC.Length), allB = SameShape(b, "b", allC.Length);
      int count = allC.Length;
      for (int i = 0; i < count; ++i) Check(allA[i], allB[i], allC[i], GemmOptions.Default);
      CheckBias(allC[0], o, count);
      return (pins, submission) => {
        var addresses = new long[3 * count];
        for (int i = 0; i < count; ++i) {
          addresses[i] = pins.TakeItem(allA[i], "a", i);
          addresses[count + i] = pins.TakeItem(allB[i], "b", i);
          addresses[2 * count + i] = pins.TakeItem(allC[i], "c", i);
        }
        fixed (long* first = addresses) {
          var at = new Native.Addresses { Items = count, ArrayA = (long)first, ArrayB = (long)(first + count), ArrayC = (long)(first + 2 * count),
                                          Bias = pins.Take(o.Bias) };
          sg_gemm_desc d = Native.Gemm(allA[0], allB[0], allC[0], at, o);
          return submission.Run(Call.Gemm, &d);
        }
      };
    }

    /// <summary>Submits GEMMs of different shapes, types and scalars as one job.</summary>
    /// <param name="items">The GEMMs; no C overlaps another GEMM's operands.</param>
    /// <param name="options">Order and priority; null: the defaults.</param>
    /// <param name="cancellationToken">Cancels the job.</param>
    public Task GemmGroupAsync(IReadOnlyList<GemmItem> items, SubmitOptions options = null,
                               CancellationToken cancellationToken = default(CancellationToken)) =>
      Layer(options, cancellationToken, GroupCall(items));

    internal static LayerCall GroupCall(IReadOnlyList<GemmItem> items) {
      if (items == null) throw new ArgumentNullException("items");
      if (items.Count == 0) throw new ArgumentException("items is empty", "items");
      var all = new GemmItem[items.Count];
      for (int i = 0; i < all.Length; ++i) {
        GemmItem item = items[i];
        all[i] = new GemmItem(item.A, item.B, item.C, Check(item.A, item.B, item.C, item.Options?.Copy()));
      }
      return (pins, submission) => {
        var descs = new sg_gemm_desc[all.Length];
        for (int i = 0; i < descs.Length; ++i) descs[i] = pins.Take(all[i].A, all[i].B, all[i].C, all[i].Options);
        fixed (sg_gemm_desc* first = descs) {
          long* group = stackalloc long[2];
          group[0] = (long)first;
          group[1] = descs.Length;
          return submission.Run(Call.GemmGrouped, group);
        }
      };
    }

    internal static LayerCall GemmCall(int call, Matrix a, Matrix b, Matrix c, GemmOptions options) {
      GemmOptions o = Check(a, b, c, options);
      return (pins, submission) => {
        sg_gemm_desc d = pins.Take(a, b, c, o);
        return submission.Run(call, &d);
      };
    }

    // Checks that the library cannot make: the size of managed memory, and whether it is writable.
    internal static GemmOptions Check(in Matrix a, in Matrix b, in Matrix c, GemmOptions options) {
      GemmOptions o = options ?? GemmOptions.Default;
      if (a.DType == 0) throw new ArgumentException("a is no matrix: its type is not set", "a");
      if (b.DType == 0) throw new ArgumentException("b is no matrix: its type is not set", "b");
      if (c.DType == 0) throw new ArgumentException("c is no matrix: its type is not set", "c");
      if (c.ReadOnly) throw new ArgumentException("c is read-only memory", "c");
      if (o.Batch > 1) {
        a.CheckBatch(o.Batch, o.StrideA, "a");
        b.CheckBatch(o.Batch, o.StrideB, "b");
        c.CheckBatch(o.Batch, o.StrideC, "c");
      }
      CheckBias(c, o, o.Batch);
      return o;
    }

    static void CheckBias(in Matrix c, GemmOptions o, long batch) {
      Matrix bias = o.Bias;
      if (bias.DType == 0) return;
      bool perColumn = Native.PerColumn(bias, c);
      if (!perColumn && !(bias.Rows == c.Rows && bias.Cols == 1))
        throw new ArgumentException("Bias is " + bias + "; c, which is " + c + ", needs a row or a column of values", "options");
      if (bias.DType != c.DType) throw new ArgumentException("Bias is " + bias.DType + ", c is " + c.DType, "options");
      bool apart = bias.Ld != 1 && (bias.Layout == Layout.RowMajor) != perColumn;
      if (apart && bias.Rows * bias.Cols > 1) throw new ArgumentException("the values of Bias do not follow each other", "options");
      if (batch > 1) bias.CheckBatch(batch, o.StrideBias, "bias");
    }

    // A copy of a list of matrices of one shape.
    static Matrix[] SameShape(IReadOnlyList<Matrix> given, string name, int count) {
      if (given == null) throw new ArgumentNullException(name);
      if (given.Count == 0) throw new ArgumentException(name + " has no items", name);
      if (count >= 0 && given.Count != count) throw new ArgumentException(name + " has " + given.Count + " items, c has " + count, name);
      var list = new Matrix[given.Count];
      for (int i = 0; i < list.Length; ++i) {
        list[i] = given[i];
        if (list[i].Rows != list[0].Rows || list[i].Cols != list[0].Cols || list[i].Ld != list[0].Ld || list[i].DType != list[0].DType ||
            list[i].Layout != list[0].Layout)
          throw new ArgumentException(name + "[" + i + "] is " + list[i] + ", but " + name + "[0] is " + list[0], name);
      }
      return list;
    }

    static Matrix View(string name, Layout layout, Transpose op, long rows, long cols, long ld, long address, long length, DType dtype) {
      CheckLd(name, layout, op, rows, cols, ld, length);
      return new Matrix(null, address, 0, length, false, op == Transpose.N ? rows : cols, op == Transpose.N ? cols : rows, ld, dtype, layout);
    }

    // The checks of a matrix in a BLAS form, whose arguments have names of their own.
    static void CheckSizes(long m, long n, long k) {
      Native.Size(m, "m");
      Native.Size(n, "n");
      Native.Size(k, "k");
    }

    static void CheckLd(string name, Layout layout, Transpose op, long rows, long cols, long ld, long length) {
      bool byRows = (layout == Layout.RowMajor) == (op == Transpose.N);
      long inner = byRows ? cols : rows, outer = byRows ? rows : cols, needed = Matrix.Footprint(inner, outer, ld == 0 ? inner : ld);
      if (ld != 0 && ld < inner)
        throw new ArgumentOutOfRangeException("ld" + name, ld, "ld" + name + " is " + ld + "; it must be at least " + inner + ", or 0");
      if (needed > length)
        throw new ArgumentException(name + " has " + length + " elements; " + outer + " x " + inner + " with ld" + name + " " + ld + " needs " + needed, name);
    }

    static ref byte First<T>(ReadOnlySpan<T> span) where T : struct => ref MemoryMarshal.GetReference(MemoryMarshal.AsBytes(span));
  }
}
