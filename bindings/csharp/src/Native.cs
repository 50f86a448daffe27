// SPDX-License-Identifier: Apache-2.0
using System;
using System.Numerics;
using StreamGemm.Internal;

namespace StreamGemm {
  /// <summary>Where a call submits, with the options that it is given.</summary>
  internal unsafe struct Submission {
    internal SubmitOptions Options;
    internal long On, Queue, Tag, Graph;  // On: the context, or what is run
    internal uint Flags;                  // besides those of the options
    internal long* Job;
    internal DescriptorUse Use;           // takes the descriptor instead of a submission; or null

    internal int Run(int call, void* desc) =>
      Use == null ? (Options ?? SubmitOptions.None).Run(call, On, desc, this) : Errors.Noted(call, Use(call, (long)desc));

    /// <summary>Runs a plan with what a call describes.</summary>
    internal int RunPlan(int call, long desc) {
      long* given = stackalloc long[2];
      given[0] = call;
      given[1] = desc;
      return (Options ?? SubmitOptions.None).Run(Call.PlanRun, On, given, this);
    }
  }

  /// <summary>What is done with the descriptor of a call by number (calls.h); returns a status.</summary>
  internal delegate int DescriptorUse(int call, long desc);

  /// <summary>Pins the operands and makes a call.</summary>
  internal delegate int LayerCall(Pins pins, Submission submission);

  /// <summary>The descriptors of GEMMs and copies, from matrices whose addresses the caller has pinned.</summary>
  internal static unsafe partial class Native {
    /// <summary>Addresses of a GEMM's operands, or of arrays of `Items` addresses, one for each item of a batch.</summary>
    internal struct Addresses {
      internal long A, B, C, ArrayA, ArrayB, ArrayC, Items, Bias;
    }

    /// <summary>A size that a caller gives.</summary>
    internal static ulong Size(long value, string name) {
      if (value < 0) throw new ArgumentOutOfRangeException(name, value, name + " is " + value + "; it must not be negative");
      return (ulong)value;
    }

    /// <summary>Whether a bias, which is a row or a column, has a value for each column of C.</summary>
    internal static bool PerColumn(in Matrix bias, in Matrix c) => bias.Rows == 1 && bias.Cols == c.Cols;

    internal static sg_scalar Scalar(Complex value) => new sg_scalar { re = value.Real, im = value.Imaginary };

    internal static sg_gemm_desc Gemm(in Matrix a, in Matrix b, in Matrix c, in Addresses at, GemmOptions o) {
      sg_gemm_desc d = sg_gemm_desc.Initial;
      d.a = a.At(at.A);
      d.b = b.At(at.B);
      d.c = c.At(at.C);
      Store(ref d, o);
      if (at.Items != 0) d.batch = at.Items;
      d.a_array = at.ArrayA;
      d.b_array = at.ArrayB;
      d.c_array = at.ArrayC;
      d.bias = at.Bias;
      d.bias_shape = o.Bias.DType == 0 || PerColumn(o.Bias, c) ? Bias.Column : Bias.Row;
      return d;
    }

    /// <summary>Of the elements of one matrix to another of the same sizes, type and layout.</summary>
    internal static sg_copy_desc Copy(in Matrix from, long source, in Matrix to, long destination) {
      long size = Element.Size(from.DType);
      sg_copy_desc d = sg_copy_desc.Initial;
      d.dst = destination;
      d.src = source;
      d.width = from.Inner * size;
      d.height = from.Outer;
      d.dst_pitch = to.Ld * size;
      d.src_pitch = from.Ld * size;
      return d;
    }
  }
}
