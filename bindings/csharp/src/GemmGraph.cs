// SPDX-License-Identifier: Apache-2.0
using System;
using System.Collections.Generic;
using System.Threading;
using System.Threading.Tasks;
using StreamGemm.Internal;

namespace StreamGemm {
  /// <summary>
  /// Submissions recorded once and run with one call. They are ordered as separate submissions would be: by their
  /// streams, and by overlapping operands. Runs of one graph are sequential. Recorded operands stay pinned and alive as
  /// long as the graph has them, or a run with them is in flight.
  /// </summary>
  public sealed unsafe partial class GemmGraph : NativeObject {
    static readonly Func<long, int> release = RawPINVOKE.sg_graph_release;

    readonly GemmContext context;
    readonly GemmPipeline pipeline;  // whose stage it is, and which keeps what is recorded, too; or null
    readonly List<Recorded> children = new List<Recorded>();  // also the lock: the library's list and this one change together

    internal GemmGraph(GemmContext context, long token, GemmPipeline pipeline = null) : base(token, release) {
      this.context = context;
      this.pipeline = pipeline;
    }

    /// <summary>Number of submissions recorded.</summary>
    public int Count {
      get {
        lock (children) return children.Count;
      }
    }

    /// <summary>Records a GEMM instead of running it.</summary>
    /// <param name="a">As in <see cref="GemmContext.Gemm(in Matrix, in Matrix, in Matrix, GemmOptions)"/>.</param>
    /// <param name="b">The same for B.</param>
    /// <param name="c">The same for C.</param>
    /// <param name="options">Scalars, operations, batch, stream, priority; null: the defaults. `After` is not allowed.</param>
    /// <returns>Its index.</returns>
    /// <exception cref="BusyException">The graph has been run.</exception>
    public int Record(in Matrix a, in Matrix b, in Matrix c, GemmOptions options = null) =>
      RecordLayer(options, GemmContext.GemmCall(Call.Gemm, a, b, c, options));

    /// <summary>Records a copy instead of running it.</summary>
    /// <returns>Its index.</returns>
    /// <exception cref="BusyException">The graph has been run.</exception>
    public int RecordCopy(in Matrix source, in Matrix destination, SubmitOptions options = null) =>
      RecordLayer(options, GemmContext.CopyCall(source, destination));

    /// <summary>Records an operation instead of running it.</summary>
    /// <param name="operation">What each run computes, of <see cref="Operations"/>.</param>
    /// <param name="options">Stream, priority and planning; null: the defaults. `After` is not allowed.</param>
    /// <returns>Its index.</returns>
    /// <exception cref="BusyException">The graph has been run.</exception>
    public int Record(OperationDesc operation, SubmitOptions options = null) => RecordLayer(options, OperationDesc.Given(operation).Call);

    /// <summary>Sets other matrices of the same shapes of a recorded operation, and other scalars, for runs submitted after this call. Its
    /// stream and priority stay.</summary>
    /// <param name="index">Its index.</param>
    /// <param name="operation">The same operation; what else it may change is in the documentation of sg_graph_update.</param>
    /// <exception cref="ArgumentException">It is another operation, or of other shapes, types, strides or options.</exception>
    public void Update(int index, OperationDesc operation) {
      LayerCall call = OperationDesc.Given(operation).Call;
      lock (children) {
        CheckIndex(index);
        var child = new Recorded();
        child.Pins.Replace(children[index].Pins);
        int status;
        try {
          status = call(child.Pins, new Submission { Use = (number, desc) => RawPINVOKE.sg_call_graph_update(Handle.Token, index, number, desc) });
        } catch {
          child.Release();
          throw;
        }
        Exchange(index, child, status);
      }
    }

    /// <summary>Sets other matrices of the same shapes, and other scalars and strides, of a recorded GEMM, for runs submitted
    /// after this call.</summary>
    public void Update(int index, in Matrix a, in Matrix b, in Matrix c, GemmOptions options = null) => Update(index, Operations.Gemm(a, b, c, options));

    /// <summary>Sets other matrices of the same shapes and leading dimensions of a recorded copy, for runs submitted after this
    /// call.</summary>
    public void Update(int index, in Matrix source, in Matrix destination) => Update(index, Operations.Copy(source, destination));

    /// <summary>Runs the graph, as <see cref="GemmContext.GemmAsync(in Matrix, in Matrix, in Matrix, GemmOptions, CancellationToken)"/>
    /// runs a GEMM. The first run, and the first after a change, takes longer.</summary>
    public Task RunAsync(SubmitOptions options = null, CancellationToken cancellationToken = default(CancellationToken)) {
      lock (children) return Pending.Start(context.Completions, cancellationToken, options, Handle.Token, Run);
    }

    /// <summary>Like <see cref="RunAsync"/>; returns a handle of the job.</summary>
    public GemmJob Submit(SubmitOptions options = null) {
      lock (children) return Pending.StartJob(context.Completions, options, Handle.Token, Run);
    }

    int Run(Pins pins, Submission submission) {
      pins.Hold(children.ToArray());
      int status = submission.Run(Call.GraphRun, null);
      GC.KeepAlive(this);
      return status;
    }

    /// <summary>Records <see cref="GemmContext.Custom"/> instead of running it: the function is called in each run.</summary>
    /// <returns>Its index.</returns>
    public int RecordCustom(Action<CustomCall> function, Matrix[] reads = null, Matrix[] writes = null, Matrix[] updates = null,
                            CustomOptions options = null) =>
      RecordLayer(options, GemmContext.CustomOperation(function, reads, writes, updates, options ?? new CustomOptions()));

    /// <summary>Records <see cref="GemmContext.AllReduce"/> instead of running it.</summary>
    /// <returns>Its index.</returns>
    public int RecordAllReduce(Matrix[] operands, SubmitOptions options = null) =>
      RecordLayer(options, GemmContext.AllReduceOperation(operands));

    int RecordLayer(SubmitOptions options, LayerCall call) {
      lock (children) {
        var child = new Recorded();
        return Keep(child, call(child.Pins, new Submission { Options = options, On = context.Handle.Token, Graph = Handle.Token }));
      }
    }

    int Keep(Recorded child, int status) {
      if (status < 0) {
        Exception error = Errors.Latest(status);
        child.Release();
        throw error;
      }
      children.Add(child);
      pipeline?.Keep(child);
      GC.KeepAlive(this);
      return children.Count - 1;
    }

    void Exchange(int index, Recorded child, int status) {
      if (status < 0) {
        Exception error = Errors.Latest(status);
        child.Release();
        throw error;
      }
      children[index].Release();
      children[index] = child;
      pipeline?.Keep(child);
      GC.KeepAlive(this);
    }

    void CheckIndex(int index) {
      if (index < 0 || index >= children.Count) throw new ArgumentOutOfRangeException("index", index, "index is not below " + children.Count);
    }

    /// <inheritdoc/>
    public override void Dispose() {
      lock (children) {
        Handle.Dispose();
        foreach (Recorded child in children) child.Release();
        children.Clear();
      }
    }
  }
}
