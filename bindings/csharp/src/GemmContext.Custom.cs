// SPDX-License-Identifier: Apache-2.0
using System;
using System.Threading;
using System.Threading.Tasks;
using StreamGemm.Internal;

namespace StreamGemm {
  public sealed unsafe partial class GemmContext {
    const int MaxOperands = 4;  // SG_MAX_CUSTOM_OPERANDS

    /// <summary>Submits a function of the application's as a job, and returns at once. It runs after the jobs that write what it
    /// accesses, or read what it writes, and those that follow wait for it likewise. If the job is cancelled before it starts, the
    /// function is not called.</summary>
    /// <param name="function">Does the work, or enqueues it on a CUDA device's native stream, and does not wait there: the stream's
    /// device is to be made current first (cudaSetDevice). It runs on background threads of this assembly, of several jobs possibly at
    /// once, and calls nothing of this assembly that submits or waits. An exception fails the job with
    /// <see cref="BackendFailureException"/>, with its type and text in the message. The process's exit waits for functions that run;
    /// later ones fail with <see cref="ShutdownException"/>.</param>
    /// <param name="reads">What it only reads; null: nothing. Four operands at most in all, in device or pinned memory, or on the cpu in
    /// any.</param>
    /// <param name="writes">What it writes, whatever it contains; null: nothing.</param>
    /// <param name="updates">What it reads and writes, or writes parts of; null: nothing.</param>
    /// <param name="options">Predictions, order and priority; null: the defaults.</param>
    /// <param name="cancellationToken">Cancels the job.</param>
    public Task CustomAsync(Action<CustomCall> function, Matrix[] reads = null, Matrix[] writes = null, Matrix[] updates = null,
                            CustomOptions options = null, CancellationToken cancellationToken = default(CancellationToken)) =>
      Layer(options, cancellationToken, CustomOperation(function, reads, writes, updates, options ?? new CustomOptions()));

    /// <summary>Runs a function of the application's as a job, as <see cref="CustomAsync"/>; blocks until it is complete.</summary>
    /// <param name="function">The function.</param>
    /// <param name="reads">What it only reads; null: nothing.</param>
    /// <param name="writes">What it writes, whatever it contains; null: nothing.</param>
    /// <param name="updates">What it reads and writes, or writes parts of; null: nothing.</param>
    /// <param name="options">Predictions, order and priority; null: the defaults.</param>
    public void Custom(Action<CustomCall> function, Matrix[] reads = null, Matrix[] writes = null, Matrix[] updates = null,
                       CustomOptions options = null) =>
      LayerAndWait(options, CustomOperation(function, reads, writes, updates, options ?? new CustomOptions()));

    internal static LayerCall CustomOperation(Action<CustomCall> function, Matrix[] reads, Matrix[] writes, Matrix[] updates,
                                              CustomOptions how) {
      if (function == null) throw new ArgumentNullException("function");
      Matrix[][] lists = { reads ?? new Matrix[0], writes ?? new Matrix[0], updates ?? new Matrix[0] };
      string[] names = { "reads", "writes", "updates" };
      int count = lists[0].Length + lists[1].Length + lists[2].Length;
      if (count < 1 || count > MaxOperands)
        throw new ArgumentException("there are " + count + " operands; a custom operation has from 1 to " + MaxOperands);
      var operands = new Matrix[count];
      var sizes = new long[count];
      var accesses = new Access[count];
      int last = 0;
      for (int kind = 0; kind < 3; ++kind)
        for (int i = 0; i < lists[kind].Length; ++i, ++last) {
          Matrix m = lists[kind][i];
          string name = names[kind] + "[" + i + "]";
          if (m.Rows == 0 || m.Cols == 0) throw new ArgumentException(name + " is " + m + ", which is empty", name);
          if (kind > 0) m.RequireWritable(name);
          operands[last] = m;
          sizes[last] = m.Span * Element.Size(m.DType);
          accesses[last] = kind == 0 ? Access.Read : kind == 1 ? Access.Write : Access.ReadWrite;
        }
      return (pins, submission) => {
        var given = stackalloc sg_custom_operand[MaxOperands];
        for (int i = 0; i < count; ++i)
          given[i] = new sg_custom_operand { data = pins.Take(operands[i]), bytes = sizes[i], access = accesses[i] };
        CustomFunction kept = pins.Keep(function, sizes);
        sg_custom_desc d = sg_custom_desc.Initial;
        d.function = RawPINVOKE.sg_relay_function();
        d.user = kept.Operation;
        d.operands = (long)given;
        d.operand_count = count;
        d.compute_units = how.ComputeUnits;
        d.seconds = how.Seconds;
        return submission.Run(Call.Custom, &d);
      };
    }
  }

  /// <summary>Predictions of a custom operation, and the options of its submission.</summary>
  public sealed class CustomOptions : SubmitOptions {
    /// <summary>Expected time, for predictions and simulated devices; 0: by the bytes of the operands.</summary>
    public double Seconds { get; set; }

    /// <summary>Multiprocessors that it occupies, for predictions; 0: all; -1: none, as of a transfer between devices.</summary>
    public int ComputeUnits { get; set; }

    internal CustomOptions Copy() => (CustomOptions)MemberwiseClone();
  }
}
