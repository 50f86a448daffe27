// SPDX-License-Identifier: Apache-2.0
using System;
using System.Threading;
using System.Threading.Tasks;
using StreamGemm.Internal;

namespace StreamGemm {
  public sealed unsafe partial class GemmContext {
    /// <summary>Submits a copy of a matrix and returns at once. Host and device memory in any combination.</summary>
    /// <param name="source">Copied from.</param>
    /// <param name="destination">Copied to: has the same sizes, type and layout; its leading dimension may differ. Does not overlap
    /// the source.</param>
    /// <param name="options">Order and priority; null: the defaults.</param>
    /// <param name="cancellationToken">Cancels the job.</param>
    public Task CopyAsync(in Matrix source, in Matrix destination, SubmitOptions options = null,
                          CancellationToken cancellationToken = default(CancellationToken)) =>
      Layer(options, cancellationToken, CopyCall(source, destination));

    /// <summary>Like <see cref="CopyAsync"/>; returns a handle of the job.</summary>
    public GemmJob SubmitCopy(in Matrix source, in Matrix destination, SubmitOptions options = null) {
      GemmJob job = Pending.StartJob(Completions, options, Handle.Token, CopyCall(source, destination));
      GC.KeepAlive(this);
      return job;
    }

    /// <summary>Blocking form of <see cref="CopyAsync"/>: returns when the copy has completed.</summary>
    public void Copy(in Matrix source, in Matrix destination, SubmitOptions options = null) {
      using (GemmJob job = SubmitCopy(source, destination, options)) job.Wait();
    }

    /// <summary>A tight matrix in device memory of its own, which lives as long as the matrix. Not cleared.</summary>
    /// <param name="rows">Rows.</param>
    /// <param name="cols">Columns.</param>
    /// <param name="dtype">Element type.</param>
    /// <param name="layout">Row or column major.</param>
    public Matrix DeviceMatrix(long rows, long cols, DType dtype, Layout layout = Layout.RowMajor) {
      int size = Element.Size(dtype);
      if (size == 0) throw new ArgumentException("dtype is " + dtype, "dtype");
      if (rows < 0 || cols < 0) throw new ArgumentOutOfRangeException("rows", rows, "a matrix of " + rows + " x " + cols);
      return AllocateDevice(Math.Max(1, checked(rows * cols * size))).Matrix(rows, cols, dtype, 0, layout);
    }

    /// <summary>A copy of a matrix in device memory of its own: of its sizes, type and layout, without gaps.</summary>
    /// <param name="matrix">Copied from, in any memory.</param>
    public Matrix OnDevice(in Matrix matrix) {
      if (matrix.DType == 0) throw new ArgumentException("matrix is no matrix: its type is not set", "matrix");
      Matrix made = DeviceMatrix(matrix.Rows, matrix.Cols, matrix.DType, matrix.Layout);
      if (matrix.Rows > 0 && matrix.Cols > 0) Copy(matrix, made);
      return made;
    }

    /// <summary>A new array with the elements of a matrix in any memory, after the jobs that write them.</summary>
    /// <param name="matrix">What is read; T must be its element type.</param>
    public T[,] ToArray<T>(in Matrix matrix) where T : struct {
      if (Element<T>.Type != matrix.DType)
        throw new ArgumentException("matrix is " + matrix + ", whose elements are no " + typeof(T).Name, "matrix");
      var made = new T[matrix.Rows, matrix.Cols];
      if (made.Length == 0) return made;
      if (matrix.Layout == Layout.RowMajor) {
        Copy(matrix, Matrix.Of(made));
        return made;
      }
      var turned = new T[matrix.Cols, matrix.Rows];
      Copy(matrix.T, Matrix.Of(turned));
      for (long i = 0; i < matrix.Rows; ++i)
        for (long j = 0; j < matrix.Cols; ++j) made[i, j] = turned[j, i];
      return made;
    }

    internal static LayerCall CopyCall(Matrix source, Matrix destination) {
      CheckCopy(source, destination);
      return (pins, submission) => {
        pins.Keep(source, destination);
        sg_copy_desc d = Native.Copy(source, pins.Take(source), destination, pins.Take(destination));
        return submission.Run(Call.Copy, &d);
      };
    }

    internal static void CheckCopy(in Matrix source, in Matrix destination) {
      if (source.DType == 0) throw new ArgumentException("source is no matrix: its type is not set", "source");
      if (destination.ReadOnly) throw new ArgumentException("destination is read-only memory", "destination");
      if (source.Rows != destination.Rows || source.Cols != destination.Cols || source.DType != destination.DType ||
          source.Layout != destination.Layout)
        throw new ArgumentException("destination is " + destination + ", but source is " + source + "; they must be equal", "destination");
    }

    // A copy of zero bytes: it completes after everything before it on its stream.
    internal Task BarrierAsync(SubmitOptions options, CancellationToken cancellationToken) =>
      CopyAsync(Matrix.Shape(0, 0, DType.F32), Matrix.Shape(0, 0, DType.F32), options, cancellationToken);
  }
}
