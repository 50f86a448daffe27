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
      if (cancellationToken.IsCancellationRequested) return Task.FromCanceled(cancellationToken);
      var pending = new Pending(completions, cancellationToken);
      long job = 0;
      int status;
      try {
        status = Submit(pending, a, b, c, options, &job);
      } catch (Exception error) {
        return pending.Refused(error);
      }
      return pending.Submitted(status, job);
    }

    /// <summary>Like <see cref="RunAsync"/>; returns a handle of the job.</summary>
    public GemmJob Submit(in Matrix a, in Matrix b, in Matrix c, GemmOptions options = null) {
      var pending = new Pending(completions, CancellationToken.None);
      long job = 0;
      int status;
      try {
        status = Submit(pending, a, b, c, options, &job);
      } catch {
        pending.Abandon();
        throw;
      }
      return pending.Job(status, job);
    }

    int Submit(Pending pending, in Matrix a, in Matrix b, in Matrix c, GemmOptions options, long* job) {
      GemmOptions o = GemmContext.Check(a, b, c, options);
      Native.Addresses at = default(Native.Addresses);
      at.A = pending.PinA(a);
      at.B = pending.PinB(b);
      at.C = pending.PinC(c);
      at.Bias = pending.PinBias(o.Bias);
      int status = Native.RunPlan(handle.Token, a, b, c, at, o, completions.Queue, pending.Tag, job);
      GC.KeepAlive(this);
      return status;
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
        Errors.Check(Native.MakePlan(handle.Token, a, b, c, at, o, out plan));
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
