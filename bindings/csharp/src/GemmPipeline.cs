// SPDX-License-Identifier: Apache-2.0
using System;
using System.Collections.Generic;
using System.Linq;
using System.Threading;
using System.Threading.Tasks;
using StreamGemm.Internal;

namespace StreamGemm {
  /// <summary>
  /// Batches that pass through stages, beside their transfers and those of streamed weights. Stages are added and recorded
  /// first; then batches are pushed. Weights stay pinned and alive as long as the pipeline, or a batch in flight.
  /// </summary>
  public sealed unsafe partial class GemmPipeline {
    readonly GemmContext context;
    readonly long inputBytes;
    readonly List<Recorded> weights = new List<Recorded>();  // and what the stages have recorded; also the lock
    long outputBytes;

    internal GemmPipeline(GemmContext context, long token, long inputBytes) : base(token, release) {
      this.context = context;
      this.inputBytes = inputBytes;
    }

    /// <summary>Adds the next stage.</summary>
    /// <param name="output">Bytes of its output.</param>
    /// <param name="weights">Its weights, unchanged as long as batches run.</param>
    /// <param name="workspace">Bytes of its workspace; 0: none.</param>
    /// <param name="place">Where its weights are while batches run.</param>
    /// <param name="name">In messages and labels; null: by its number.</param>
    /// <param name="device">The number of the context's device that runs it; null: the library places the stage.</param>
    /// <returns>The stage, to record its operations.</returns>
    /// <exception cref="BusyException">The pipeline is prepared.</exception>
    public GemmStage AddStage(long output, Matrix[] weights = null, long workspace = 0, WeightsPlace place = WeightsPlace.Auto,
                              string name = null, int? device = null) {
      weights = weights ?? new Matrix[0];
      lock (this.weights) {
        var kept = new Recorded();
        try {
          var given = new sg_weight[weights.Length];
          for (int i = 0; i < weights.Length; ++i)
            given[i] = new sg_weight { data = kept.Pins.Take(weights[i]), bytes = BytesOf(weights[i]) };
          var stage = new sg_stage();
          using (var text = new Text(name, "name")) {
            fixed (sg_weight* first = given) {
              sg_stage_desc d = sg_stage_desc.Initial;
              d.name = text.Address.ToInt64();
              d.output_bytes = (long)Native.Size(output, "output");
              d.workspace_bytes = (long)Native.Size(workspace, "workspace");
              d.weights = (long)first;
              d.weight_count = weights.Length;
              d.place = place;
              if (device is int number) d.device = number;
              Raw.sg_call_add_stage(Handle.Token, (long)&d, stage);
            }
          }
          this.weights.Add(kept);  // the library has them now
          kept = null;
          outputBytes = output;
          GC.KeepAlive(this);
          return new GemmStage(this, context, stage, weights.Length);
        } catch {
          kept?.Release();
          throw;
        }
      }
    }

    /// <summary>Keeps what a stage has recorded.</summary>
    internal void Keep(Recorded child) {
      child.Hold();
      lock (weights) weights.Add(child);
    }

    static long BytesOf(in Matrix m) {
      if (m.Rows == 0 || m.Cols == 0) return 0;
      bool byRows = m.Layout == Layout.RowMajor;
      return (((byRows ? m.Rows : m.Cols) - 1) * m.Ld + (byRows ? m.Cols : m.Rows)) * Raw.sg_dtype_size((int)m.DType);
    }

    /// <summary>Chooses depth and buffers, and allocates the device memory; the first push does it otherwise.</summary>
    /// <returns>What was chosen and predicted.</returns>
    public PipelineInfo Prepare() {
      var info = new PipelineInfo();
      lock (weights) {  // it may copy them
        Raw.sg_pipeline_prepare(Handle.Token, info.native);
      }
      GC.KeepAlive(this);
      return info;
    }

    /// <summary>Pushes a batch. Blocks at the limit of batches in flight. Tasks complete in the order of the batches.</summary>
    /// <param name="input">Without gaps, of as many bytes as the pipeline's options say.</param>
    /// <param name="output">Without gaps, of as many bytes as the last stage's output.</param>
    /// <param name="options">Order and priority; null: the defaults.</param>
    /// <param name="cancellationToken">Cancels the batch.</param>
    public Task PushAsync(in Matrix input, in Matrix output, SubmitOptions options = null,
                          CancellationToken cancellationToken = default(CancellationToken)) =>
      Pending.Start(context.Completions, cancellationToken, options, Handle.Token, PushCall(input, output));

    /// <summary>Like <see cref="PushAsync"/>; returns a handle of the job.</summary>
    public GemmJob Push(in Matrix input, in Matrix output, SubmitOptions options = null) =>
      Pending.StartJob(context.Completions, options, Handle.Token, PushCall(input, output));

    LayerCall PushCall(Matrix input, Matrix output) => (pins, submission) => {
      lock (weights) {
        Check("input", input, inputBytes);
        Check("output", output, outputBytes);
        pins.Hold(weights.ToArray());
      }
      long* addresses = stackalloc long[2];
      addresses[0] = pins.Take(input);
      addresses[1] = pins.Take(output);
      int status = submission.Run(Call.PipelinePush, addresses);
      GC.KeepAlive(this);
      return status;
    };

    /// <summary>
    /// Pushes several batches at once, as one job. With replicas they run beside each other, one on each device, and share
    /// streamed weights. Blocks at the limit of batches in flight, which is also that of their number.
    /// </summary>
    /// <param name="inputs">Each as of <see cref="PushAsync"/>.</param>
    /// <param name="outputs">Each as of <see cref="PushAsync"/>; as many as there are inputs.</param>
    /// <param name="options">Order and priority; null: the defaults.</param>
    /// <param name="cancellationToken">Cancels the batches.</param>
    public Task PushBatchesAsync(IReadOnlyList<Matrix> inputs, IReadOnlyList<Matrix> outputs, SubmitOptions options = null,
                                 CancellationToken cancellationToken = default(CancellationToken)) =>
      Pending.Start(context.Completions, cancellationToken, options, Handle.Token, PushBatchesCall(inputs, outputs));

    /// <summary>Like <see cref="PushBatchesAsync"/>; returns a handle of the job.</summary>
    public GemmJob PushBatches(IReadOnlyList<Matrix> inputs, IReadOnlyList<Matrix> outputs, SubmitOptions options = null) =>
      Pending.StartJob(context.Completions, options, Handle.Token, PushBatchesCall(inputs, outputs));

    LayerCall PushBatchesCall(IReadOnlyList<Matrix> givenInputs, IReadOnlyList<Matrix> givenOutputs) {
      if (givenInputs == null) throw new ArgumentNullException("inputs");
      if (givenOutputs == null) throw new ArgumentNullException("outputs");
      Matrix[] inputs = givenInputs.ToArray(), outputs = givenOutputs.ToArray();  // what is checked is what is pinned
      int count = inputs.Length;
      if (outputs.Length != count)
        throw new ArgumentException("outputs has " + outputs.Length + " items, and inputs has " + count);
      return (pins, submission) => {
        var from = new long[Math.Max(count, 1)];
        var to = new long[Math.Max(count, 1)];
        lock (weights) {
          for (int i = 0; i < count; ++i) {
            Check("inputs[" + i + "]", inputs[i], inputBytes);
            Check("outputs[" + i + "]", outputs[i], outputBytes);
          }
          pins.Hold(weights.ToArray());
        }
        for (int i = 0; i < count; ++i) {
          from[i] = pins.Take(inputs[i]);
          to[i] = pins.Take(outputs[i]);
        }
        fixed (long* first = from, second = to) {
          long* desc = stackalloc long[3];
          desc[0] = (long)first;
          desc[1] = (long)second;
          desc[2] = count;
          int status = submission.Run(Call.PipelinePushBatches, desc);
          GC.KeepAlive(this);
          return status;
        }
      };
    }

    static void Check(string name, in Matrix given, long bytes) {
      bool byRows = given.Layout == Layout.RowMajor;
      if (given.Ld != (byRows ? given.Cols : given.Rows) && (byRows ? given.Rows : given.Cols) > 1)
        throw new ArgumentException(name + " is " + given + ", which has gaps");
      if (BytesOf(given) != bytes)
        throw new ArgumentException(name + " is " + given + ", of " + BytesOf(given) + " bytes; the pipeline's has " + bytes);
    }

    /// <inheritdoc/>
    public override void Dispose() {
      lock (weights) {
        Handle.Dispose();
        foreach (Recorded each in weights) each.Release();
        weights.Clear();
      }
    }
  }
}
