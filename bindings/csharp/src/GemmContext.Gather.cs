// SPDX-License-Identifier: Apache-2.0
using System;
using System.Threading;
using System.Threading.Tasks;
using StreamGemm.Internal;

namespace StreamGemm {
  public sealed unsafe partial class GemmContext {
    /// <summary>Submits the copy of rows of a table by their numbers, and returns at once: row i of Y is row indices[i] of the table, of any
    /// type. The row of an index out of range becomes 0, or NaN. On a device with memory of its own, operands are in device
    /// memory.</summary>
    /// <param name="table">Row major; only read.</param>
    /// <param name="indices">As many as Y has rows; only read.</param>
    /// <param name="y">The result, row major, with the table's columns.</param>
    /// <param name="options">Flags of the gather, order and priority; null: the defaults.</param>
    /// <param name="cancellationToken">Cancels the job.</param>
    public Task GatherAsync(in Matrix table, in Indices indices, in Matrix y, GatherOptions options = null,
                            CancellationToken cancellationToken = default(CancellationToken)) =>
      Layer(options, cancellationToken, GatherCall(table, indices, y, options ?? new GatherOptions()));

    /// <summary>Copies rows of a table by their numbers, as <see cref="GatherAsync"/>; blocks until Y is complete.</summary>
    /// <param name="table">Row major; only read.</param>
    /// <param name="indices">As many as Y has rows; only read.</param>
    /// <param name="y">The result, row major, with the table's columns.</param>
    /// <param name="options">Flags of the gather, order and priority; null: the defaults.</param>
    public void Gather(in Matrix table, in Indices indices, in Matrix y, GatherOptions options = null) =>
      LayerAndWait(options, GatherCall(table, indices, y, options ?? new GatherOptions()));

    internal static LayerCall GatherCall(Matrix table, Indices indices, Matrix y, GatherOptions how) {
      RequireWritable(y, "y");
      if (y.Rows != indices.Count) throw new ArgumentException("y is " + y + "; " + indices.Count + " indices are given", "y");
      return (pins, o) => {
        long atTable = pins.Take(table), atIndices = pins.Take(indices.Memory), atY = pins.Take(y);
        return RawPINVOKE.sg_flat_gather_async(o.Context, o.Graph,
          atTable, table.Rows, table.Cols, table.Ld, (int)table.DType, (int)table.Layout,
          atY, y.Rows, y.Cols, y.Ld, (int)y.DType, (int)y.Layout, atIndices, (int)indices.Type, (int)how.GatherFlags,
          o.Stream, o.After, o.AfterCount, o.Priority, o.Flags, o.Queue, o.Tag, o.Plan, o.Deadline, o.Label, o.Job);
      };
    }
  }

  /// <summary>How rows are gathered, and the options of its submission.</summary>
  public sealed class GatherOptions : SubmitOptions {
    /// <summary>Whether indices below 0 count from the table's end, and whether rows of indices out of range become NaN. Default:
    /// neither.</summary>
    public GatherFlags GatherFlags { get; set; }
  }
}
