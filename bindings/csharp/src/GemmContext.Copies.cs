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

    internal static LayerCall CopyCall(Matrix source, Matrix destination) {
      CheckCopy(source, destination);
      return (pins, submission) => {
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
