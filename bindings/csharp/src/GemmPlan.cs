// SPDX-License-Identifier: Apache-2.0
using System;
using System.Threading;
using System.Threading.Tasks;
using StreamGemm.Internal;

namespace StreamGemm {
  /// <summary>The schedule of an operation, made without running it: for inspection, prediction and repeated runs.</summary>
  public sealed partial class GemmPlan {
    readonly GemmContext context;
    readonly Recorded planned;  // the function of a custom operation

    internal GemmPlan(GemmContext context, long token, Recorded planned) : base(token, release) {
      this.context = context;
      this.planned = planned;
    }

    /// <summary>Runs the plan.</summary>
    /// <param name="operation">The planned operation, with matrices of the planned shapes in the planned memory spaces.</param>
    /// <param name="options">Order and priority; null: the defaults.</param>
    /// <param name="cancellationToken">Cancels the job.</param>
    /// <exception cref="ArgumentException">It is another operation, or differs from the plan.</exception>
    public Task RunAsync(OperationDesc operation, SubmitOptions options = null, CancellationToken cancellationToken = default(CancellationToken)) {
      Task task = Pending.Start(context.Completions, cancellationToken, options, Handle.Token, Run(operation));
      GC.KeepAlive(this);
      return task;
    }

    /// <summary>Like <see cref="RunAsync(OperationDesc, SubmitOptions, CancellationToken)"/>; returns a handle of the job.</summary>
    public GemmJob Submit(OperationDesc operation, SubmitOptions options = null) {
      GemmJob job = Pending.StartJob(context.Completions, options, Handle.Token, Run(operation));
      GC.KeepAlive(this);
      return job;
    }

    LayerCall Run(OperationDesc operation) {
      LayerCall call = OperationDesc.Given(operation).Call;
      return (pins, submission) => {
        Submission run = submission;
        pins.Replace(planned.Pins);
        submission.Use = (number, desc) => run.RunPlan(number, desc);
        return call(pins, submission);
      };
    }

    /// <summary>Runs the plan on matrices of the planned shapes, like <see cref="GemmContext.GemmAsync"/>.</summary>
    public Task RunAsync(in Matrix a, in Matrix b, in Matrix c, GemmOptions options = null,
                         CancellationToken cancellationToken = default(CancellationToken)) =>
      RunAsync(Operations.Gemm(a, b, c, options), options, cancellationToken);

    /// <summary>Like <see cref="RunAsync(in Matrix, in Matrix, in Matrix, GemmOptions, CancellationToken)"/>; returns a handle of the job.</summary>
    public GemmJob Submit(in Matrix a, in Matrix b, in Matrix c, GemmOptions options = null) => Submit(Operations.Gemm(a, b, c, options), options);

    /// <inheritdoc/>
    public override void Dispose() {
      base.Dispose();
      planned.Release();
    }
  }

  public sealed unsafe partial class GemmContext {
    /// <summary>Makes a plan for an operation. Its matrices may be shapes without memory (<see cref="Matrix.Shape"/>): then
    /// options.Place is their memory space, of a GEMM PlaceA, PlaceB and PlaceC (default: device memory).</summary>
    /// <param name="operation">Only shapes and memory spaces of its matrices are used.</param>
    /// <param name="options">Restrictions of the planner; null: none.</param>
    public GemmPlan Plan(OperationDesc operation, PlanOptions options = null) {
      var planned = new Recorded(true);
      long chosen = options == null ? 0 : (long)sg_plan_options.getCPtr(options.native).Handle, plan = 0;
      try {
        Errors.Check(OperationDesc.Given(operation).Call(planned.Pins, new Submission {
          Use = (call, desc) => RawPINVOKE.sg_call_plan_create(Handle.Token, call, desc, chosen, out plan)
        }));
      } catch {
        planned.Release();
        throw;
      }
      GC.KeepAlive(options);
      GC.KeepAlive(this);
      planned.Pins.Unpin();
      return new GemmPlan(this, plan, planned);
    }

    /// <summary>Makes a plan for a GEMM; options.Plan restricts the planner.</summary>
    public GemmPlan Plan(in Matrix a, in Matrix b, in Matrix c, GemmOptions options = null) => Plan(Operations.Gemm(a, b, c, options), options?.Plan);

    /// <summary>Whether the context's devices compute an operation; other failures are thrown.</summary>
    /// <param name="operation">Its matrices may be shapes without memory.</param>
    public bool Supports(OperationDesc operation) {
      int supports = 0;
      var pins = new Pins(true);
      try {
        Errors.Check(OperationDesc.Given(operation).Call(pins, new Submission { Use = (call, desc) => RawPINVOKE.sg_call_supports(Handle.Token, call, desc, out supports) }));
      } finally {
        pins.Release();
      }
      GC.KeepAlive(this);
      return supports != 0;
    }

    /// <summary>Submits an operation and returns at once.</summary>
    /// <param name="operation">The operation, of <see cref="Operations"/>.</param>
    /// <param name="options">Order and priority; null: the defaults.</param>
    /// <param name="cancellationToken">Cancels the job.</param>
    public Task RunAsync(OperationDesc operation, SubmitOptions options = null, CancellationToken cancellationToken = default(CancellationToken)) =>
      Layer(options, cancellationToken, OperationDesc.Given(operation).Call);
  }
}
