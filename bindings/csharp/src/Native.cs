// SPDX-License-Identifier: Apache-2.0
using System;
using StreamGemm.Internal;

namespace StreamGemm {
  /// <summary>The flat calls, from matrices and options. Each takes the matrices' addresses separately: the caller has pinned them.</summary>
  internal static unsafe class Native {
    /// <summary>Addresses of a GEMM's operands, or of arrays of `Items` addresses, one for each item of a batch.</summary>
    internal struct Addresses {
      internal long A, B, C, ArrayA, ArrayB, ArrayC, Items, Bias;
    }

    static int BiasShape(GemmOptions o, in Matrix c) {
      return (int)(o.Bias.DType == 0 || PerColumn(o.Bias, c) ? Bias.Column : Bias.Row);
    }

    /// <summary>Whether a bias, which is a row or a column, has a value for each column of C.</summary>
    internal static bool PerColumn(in Matrix bias, in Matrix c) => bias.Rows == 1 && bias.Cols == c.Cols;

    internal static int Gemm(long context, in Matrix a, in Matrix b, in Matrix c, in Addresses at, GemmOptions o, long queue, long tag,
                             long* job) {
      long[] tokens = o.AfterTokens();
      fixed (long* after = tokens)
      fixed (byte* label = o.LabelText) {
        int status = RawPINVOKE.sg_flat_gemm_async(context,
          at.A, a.Rows, a.Cols, a.Ld, (int)a.DType, (int)a.Layout, at.B, b.Rows, b.Cols, b.Ld, (int)b.DType, (int)b.Layout,
          at.C, c.Rows, c.Cols, c.Ld, (int)c.DType, (int)c.Layout, (int)o.OpA, (int)o.OpB, (int)o.Compute,
          o.Alpha.Real, o.Alpha.Imaginary, o.Beta.Real, o.Beta.Imaginary,
          at.Items == 0 ? o.Batch : at.Items, o.StrideA, o.StrideB, o.StrideC,
          at.ArrayA, at.ArrayB, at.ArrayC, at.Bias, o.StrideBias, BiasShape(o, c), (int)o.Activation,
          o.StreamToken, (long)after, tokens == null ? 0 : tokens.Length, o.Priority, (int)o.Flags, queue, tag, o.PlanAddress, o.DeadlineNanoseconds, (long)label, (long)job);
        GC.KeepAlive(o);
        return status;
      }
    }

    internal static int GemmAndWait(long context, in Matrix a, in Matrix b, in Matrix c, in Addresses at, GemmOptions o) {
      long[] tokens = o.AfterTokens();
      fixed (long* after = tokens)
      fixed (byte* label = o.LabelText) {
        int status = RawPINVOKE.sg_flat_gemm(context,
          at.A, a.Rows, a.Cols, a.Ld, (int)a.DType, (int)a.Layout, at.B, b.Rows, b.Cols, b.Ld, (int)b.DType, (int)b.Layout,
          at.C, c.Rows, c.Cols, c.Ld, (int)c.DType, (int)c.Layout, (int)o.OpA, (int)o.OpB, (int)o.Compute,
          o.Alpha.Real, o.Alpha.Imaginary, o.Beta.Real, o.Beta.Imaginary,
          at.Items == 0 ? o.Batch : at.Items, o.StrideA, o.StrideB, o.StrideC,
          at.ArrayA, at.ArrayB, at.ArrayC, at.Bias, o.StrideBias, BiasShape(o, c), (int)o.Activation,
          o.StreamToken, (long)after, tokens == null ? 0 : tokens.Length, o.Priority, (int)o.Flags, 0, 0, o.PlanAddress, o.DeadlineNanoseconds, (long)label);
        GC.KeepAlive(o);
        return status;
      }
    }

    internal static void SetItem(long group, int index, in Matrix a, in Matrix b, in Matrix c, in Addresses at, GemmOptions o) {
      RawPINVOKE.sg_flat_group_set(group, index,
        at.A, a.Rows, a.Cols, a.Ld, (int)a.DType, (int)a.Layout, at.B, b.Rows, b.Cols, b.Ld, (int)b.DType, (int)b.Layout,
        at.C, c.Rows, c.Cols, c.Ld, (int)c.DType, (int)c.Layout, (int)o.OpA, (int)o.OpB, (int)o.Compute,
        o.Alpha.Real, o.Alpha.Imaginary, o.Beta.Real, o.Beta.Imaginary,
        at.Items == 0 ? o.Batch : at.Items, o.StrideA, o.StrideB, o.StrideC,
        at.ArrayA, at.ArrayB, at.ArrayC, at.Bias, o.StrideBias, BiasShape(o, c), (int)o.Activation);
    }

    internal static int Group(long context, long group, int count, SubmitOptions o, long queue, long tag, long* job) {
      long[] tokens = o.AfterTokens();
      fixed (long* after = tokens)
      fixed (byte* label = o.LabelText) {
        int status = RawPINVOKE.sg_flat_gemm_grouped_async(context, group, count,
          o.StreamToken, (long)after, tokens == null ? 0 : tokens.Length, o.Priority, (int)o.Flags, queue, tag, o.PlanAddress, o.DeadlineNanoseconds, (long)label, (long)job);
        GC.KeepAlive(o);
        return status;
      }
    }

    internal static int MakePlan(long context, in Matrix a, in Matrix b, in Matrix c, in Addresses at, GemmOptions o, out long plan) {
      int status = RawPINVOKE.sg_flat_plan_create(context,
        at.A, a.Rows, a.Cols, a.Ld, (int)a.DType, (int)a.Layout, at.B, b.Rows, b.Cols, b.Ld, (int)b.DType, (int)b.Layout,
        at.C, c.Rows, c.Cols, c.Ld, (int)c.DType, (int)c.Layout, (int)o.OpA, (int)o.OpB, (int)o.Compute,
        o.Alpha.Real, o.Alpha.Imaginary, o.Beta.Real, o.Beta.Imaginary,
        at.Items == 0 ? o.Batch : at.Items, o.StrideA, o.StrideB, o.StrideC,
        at.ArrayA, at.ArrayB, at.ArrayC, at.Bias, o.StrideBias, BiasShape(o, c), (int)o.Activation, o.PlanAddress, out plan);
      GC.KeepAlive(o);
      return status;
    }

    internal static int RunPlan(long plan, in Matrix a, in Matrix b, in Matrix c, in Addresses at, GemmOptions o, long queue, long tag,
                                long* job) {
      long[] tokens = o.AfterTokens();
      fixed (long* after = tokens)
      fixed (byte* label = o.LabelText) {
        int status = RawPINVOKE.sg_flat_plan_run_async(plan,
          at.A, a.Rows, a.Cols, a.Ld, (int)a.DType, (int)a.Layout, at.B, b.Rows, b.Cols, b.Ld, (int)b.DType, (int)b.Layout,
          at.C, c.Rows, c.Cols, c.Ld, (int)c.DType, (int)c.Layout, (int)o.OpA, (int)o.OpB, (int)o.Compute,
          o.Alpha.Real, o.Alpha.Imaginary, o.Beta.Real, o.Beta.Imaginary,
          at.Items == 0 ? o.Batch : at.Items, o.StrideA, o.StrideB, o.StrideC,
          at.ArrayA, at.ArrayB, at.ArrayC, at.Bias, o.StrideBias, BiasShape(o, c), (int)o.Activation,
          o.StreamToken, (long)after, tokens == null ? 0 : tokens.Length, o.Priority, (int)o.Flags, queue, tag, 0, o.DeadlineNanoseconds, (long)label, (long)job);
        GC.KeepAlive(o);
        return status;
      }
    }

    /// <summary>Copies the elements of one matrix to another of the same sizes, type and layout.</summary>
    internal static int Copy(long context, in Matrix from, long source, in Matrix to, long destination, SubmitOptions o, long queue,
                             long tag, long* job) {
      long size = Element.Size(from.DType);
      long[] tokens = o.AfterTokens();
      fixed (long* after = tokens)
      fixed (byte* label = o.LabelText) {
        int status = RawPINVOKE.sg_flat_copy_2d_async(context, destination, to.Ld * size, source, from.Ld * size,
          from.Inner * size, from.Outer,
          o.StreamToken, (long)after, tokens == null ? 0 : tokens.Length, o.Priority, (int)o.Flags, queue, tag, 0, o.DeadlineNanoseconds, (long)label, (long)job);
        GC.KeepAlive(o);
        return status;
      }
    }

    /// <summary>The arguments of every submission, while its options are pinned.</summary>
    internal struct Order {
      internal long Context, Graph, Stream, After, Queue, Tag, Plan, Deadline, Label, Job;
      internal int AfterCount, Priority, Flags;
    }

    internal delegate int InOrderCall(Order order);

    /// <summary>Makes a call that submits, with the arguments of its order.</summary>
    internal static int InOrder(SubmitOptions o, long context, long queue, long tag, long* job, InOrderCall call) {
      long[] tokens = o.AfterTokens();
      fixed (long* after = tokens)
      fixed (byte* label = o.LabelText) {
        int status = call(new Order {
          Context = context, Stream = o.StreamToken, After = (long)after, AfterCount = tokens == null ? 0 : tokens.Length, Priority = o.Priority,
          Flags = (int)o.Flags, Queue = queue, Tag = tag, Plan = o.PlanAddress, Deadline = o.DeadlineNanoseconds, Label = (long)label, Job = (long)job
        });
        GC.KeepAlive(o);
        return status;
      }
    }

    internal static int RecordGemm(long context, long graph, in Matrix a, in Matrix b, in Matrix c, in Addresses at, GemmOptions o) {
      long[] tokens = o.AfterTokens();
      fixed (long* after = tokens)
      fixed (byte* label = o.LabelText) {
        int status = RawPINVOKE.sg_csharp_record_gemm(context, graph,
          at.A, a.Rows, a.Cols, a.Ld, (int)a.DType, (int)a.Layout, at.B, b.Rows, b.Cols, b.Ld, (int)b.DType, (int)b.Layout,
          at.C, c.Rows, c.Cols, c.Ld, (int)c.DType, (int)c.Layout, (int)o.OpA, (int)o.OpB, (int)o.Compute,
          o.Alpha.Real, o.Alpha.Imaginary, o.Beta.Real, o.Beta.Imaginary,
          at.Items == 0 ? o.Batch : at.Items, o.StrideA, o.StrideB, o.StrideC,
          at.ArrayA, at.ArrayB, at.ArrayC, at.Bias, o.StrideBias, BiasShape(o, c), (int)o.Activation,
          o.StreamToken, (long)after, tokens == null ? 0 : tokens.Length, o.Priority, (int)o.Flags, 0, 0, o.PlanAddress, o.DeadlineNanoseconds, (long)label);
        GC.KeepAlive(o);
        return status;
      }
    }

    internal static int RecordCopy(long context, long graph, in Matrix from, long source, in Matrix to, long destination, SubmitOptions o) {
      long size = Element.Size(from.DType);
      long[] tokens = o.AfterTokens();
      fixed (long* after = tokens)
      fixed (byte* label = o.LabelText) {
        int status = RawPINVOKE.sg_csharp_record_copy_2d(context, graph, destination, to.Ld * size, source, from.Ld * size, from.Inner * size,
          from.Outer, o.StreamToken, (long)after, tokens == null ? 0 : tokens.Length, o.Priority, (int)o.Flags, 0, 0, 0, o.DeadlineNanoseconds, (long)label);
        GC.KeepAlive(o);
        return status;
      }
    }

    internal static int SetGemm(long graph, int index, in Matrix a, in Matrix b, in Matrix c, in Addresses at, GemmOptions o) {
      return RawPINVOKE.sg_csharp_graph_set_gemm(graph, index,
        at.A, a.Rows, a.Cols, a.Ld, (int)a.DType, (int)a.Layout, at.B, b.Rows, b.Cols, b.Ld, (int)b.DType, (int)b.Layout,
        at.C, c.Rows, c.Cols, c.Ld, (int)c.DType, (int)c.Layout, (int)o.OpA, (int)o.OpB, (int)o.Compute,
        o.Alpha.Real, o.Alpha.Imaginary, o.Beta.Real, o.Beta.Imaginary,
        at.Items == 0 ? o.Batch : at.Items, o.StrideA, o.StrideB, o.StrideC,
        at.ArrayA, at.ArrayB, at.ArrayC, at.Bias, o.StrideBias, BiasShape(o, c), (int)o.Activation);
    }

    internal static int RunGraph(long graph, SubmitOptions o, long queue, long tag, long* job) {
      long[] tokens = o.AfterTokens();
      fixed (long* after = tokens)
      fixed (byte* label = o.LabelText) {
        int status = RawPINVOKE.sg_csharp_graph_run_async(graph,
          o.StreamToken, (long)after, tokens == null ? 0 : tokens.Length, o.Priority, (int)o.Flags, queue, tag, 0, o.DeadlineNanoseconds, (long)label, (long)job);
        GC.KeepAlive(o);
        return status;
      }
    }

    internal static int Push(long pipeline, long input, long output, SubmitOptions o, long queue, long tag, long* job) {
      long[] tokens = o.AfterTokens();
      fixed (long* after = tokens)
      fixed (byte* label = o.LabelText) {
        int status = RawPINVOKE.sg_flat_pipeline_push_async(pipeline, input, output,
          o.StreamToken, (long)after, tokens == null ? 0 : tokens.Length, o.Priority, (int)o.Flags, queue, tag, 0, o.DeadlineNanoseconds, (long)label, (long)job);
        GC.KeepAlive(o);
        return status;
      }
    }
  }
}
