// SPDX-License-Identifier: Apache-2.0
using System;
using System.Text;
using System.Threading;
using System.Threading.Tasks;
using StreamGemm.Internal;

namespace StreamGemm {
  /// <summary>The schedule of a GEMM, made without running it: for inspection, prediction and repeated runs.</summary>
  public sealed unsafe class GemmPlan : IDisposable {
    static readonly Func<long, int> release = RawPINVOKE.sg_plan_release;
    readonly Completions completions;
    readonly Handle handle;

    internal GemmPlan(Completions completions, long token) {
      this.completions = completions;
      handle = new Handle(token, release, "GemmPlan");
    }

    /// <summary>The device model's prediction for the plan.</summary>
    public PlanPrediction Prediction {
      get {
        var prediction = new PlanPrediction();
        Raw.sg_plan_predict(handle.Token, prediction.native);
        GC.KeepAlive(this);
        return prediction;
      }
    }

    /// <summary>The plan as text: a few lines, JSON, or a timeline.</summary>
    public string Describe(PlanFormat format = PlanFormat.Text) {
      ulong size;
      Raw.sg_plan_describe(handle.Token, (int)format, 0, 0, out size);
      var text = new byte[size];
      fixed (byte* first = text) {
        Raw.sg_plan_describe(handle.Token, (int)format, (long)first, size, out size);
      }
      GC.KeepAlive(this);
      return Encoding.UTF8.GetString(text, 0, Math.Max(0, text.Length - 1));
    }

    /// <summary>Runs the plan on matrices of the planned shapes, like <see cref="GemmContext.GemmAsync"/>.</summary>
    public Task RunAsync(in Matrix a, in Matrix b, in Matrix c, GemmOptions options = null,
                         CancellationToken cancellationToken = default(CancellationToken)) {
      Task task = Pending.Start(completions, cancellationToken, options, handle.Token, RunCall(a, b, c, options));
      GC.KeepAlive(this);
      return task;
    }

    /// <summary>Like <see cref="RunAsync"/>; returns a handle of the job.</summary>
    public GemmJob Submit(in Matrix a, in Matrix b, in Matrix c, GemmOptions options = null) {
      GemmJob job = Pending.StartJob(completions, options, handle.Token, RunCall(a, b, c, options));
      GC.KeepAlive(this);
      return job;
    }

    static LayerCall RunCall(Matrix a, Matrix b, Matrix c, GemmOptions options) {
      GemmOptions o = GemmContext.Check(a, b, c, options);
      return (pins, submission) => {
        Native.Addresses at = default(Native.Addresses);
        at.A = pins.Take(a);
        at.B = pins.Take(b);
        at.C = pins.Take(c);
        at.Bias = pins.Take(o.Bias);
        sg_gemm_desc d = Native.Gemm(a, b, c, at, o);
        return submission.Run(Call.PlanRun, &d);
      };
    }

    /// <summary>Releases the plan. Its runs in flight continue.</summary>
    public void Dispose() => handle.Dispose();
  }

  public sealed unsafe partial class GemmContext {
    /// <summary>Makes a plan for a GEMM. The matrices may be shapes without memory (<see cref="Matrix.Shape"/>): then
    /// options.Plan.PlaceA, PlaceB, PlaceC are their memory spaces (default: device memory). A bias must be a real matrix.</summary>
    public GemmPlan Plan(in Matrix a, in Matrix b, in Matrix c, GemmOptions options = null) {
      GemmOptions o = Check(a, b, c, options);
      Pin pinA = default(Pin), pinB = default(Pin), pinC = default(Pin), pinBias = default(Pin);
      try {
        Native.Addresses at = default(Native.Addresses);
        at.A = pinA.Take(a);
        at.B = pinB.Take(b);
        at.C = pinC.Take(c);
        at.Bias = pinBias.Take(o.Bias);
        long plan;
        sg_gemm_desc d = Native.Gemm(a, b, c, at, o);
        long chosen = o.Plan == null ? 0 : (long)sg_plan_options.getCPtr(o.Plan.native).Handle;
        Errors.Check(RawPINVOKE.sg_call_plan_create(handle.Token, (long)&d, chosen, out plan));
        GC.KeepAlive(o);
        GC.KeepAlive(this);
        return new GemmPlan(completions, plan);
      } finally {
        pinA.Release();
        pinB.Release();
        pinC.Release();
        pinBias.Release();
      }
    }
  }
}
