// SPDX-License-Identifier: Apache-2.0
using System;
using System.Threading;
using System.Threading.Tasks;
using StreamGemm.Internal;

namespace StreamGemm {
  /// <summary>The schedule of a GEMM, made without running it: for inspection, prediction and repeated runs.</summary>
  public sealed partial class GemmPlan {
    readonly GemmContext context;

    internal GemmPlan(GemmContext context, long token) : base(token, release) {
      this.context = context;
    }

    /// <summary>Runs the plan on matrices of the planned shapes, like <see cref="GemmContext.GemmAsync"/>.</summary>
    public Task RunAsync(in Matrix a, in Matrix b, in Matrix c, GemmOptions options = null,
                         CancellationToken cancellationToken = default(CancellationToken)) {
      Task task = Pending.Start(context.Completions, cancellationToken, options, Handle.Token, GemmContext.GemmCall(Call.PlanRun, a, b, c, options));
      GC.KeepAlive(this);
      return task;
    }

    /// <summary>Like <see cref="RunAsync"/>; returns a handle of the job.</summary>
    public GemmJob Submit(in Matrix a, in Matrix b, in Matrix c, GemmOptions options = null) {
      GemmJob job = Pending.StartJob(context.Completions, options, Handle.Token, GemmContext.GemmCall(Call.PlanRun, a, b, c, options));
      GC.KeepAlive(this);
      return job;
    }
  }

  public sealed unsafe partial class GemmContext {
    /// <summary>Makes a plan for a GEMM. The matrices may be shapes without memory (<see cref="Matrix.Shape"/>): then
    /// options.Plan.PlaceA, PlaceB, PlaceC are their memory spaces (default: device memory). A bias must be a real matrix.</summary>
    public GemmPlan Plan(in Matrix a, in Matrix b, in Matrix c, GemmOptions options = null) {
      GemmOptions o = Check(a, b, c, options);
      var pins = default(GemmPins);
      try {
        long plan;
        sg_gemm_desc d = pins.Take(a, b, c, o);
        long chosen = o.Plan == null ? 0 : (long)sg_plan_options.getCPtr(o.Plan.native).Handle;
        Errors.Check(RawPINVOKE.sg_call_plan_create(Handle.Token, (long)&d, chosen, out plan));
        GC.KeepAlive(o);
        GC.KeepAlive(this);
        return new GemmPlan(this, plan);
      } finally {
        pins.Release();
      }
    }
  }
}
