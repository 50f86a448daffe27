// SPDX-License-Identifier: Apache-2.0
using System.Numerics;
using System.Threading;
using System.Threading.Tasks;
using StreamGemm.Internal;

namespace StreamGemm {
  public sealed unsafe partial class GemmContext {
    /// <summary>Submits C = activation(alpha * A + beta * C), element by element, a scale-and-add, and returns at once. On a device
    /// with memory of its own, operands are in device memory.</summary>
    /// <param name="a">A, of C's shape, type and layout; only read. F64, F32, F16, BF16, C64, C128 or I32.</param>
    /// <param name="c">The result.</param>
    /// <param name="options">Scalars, activation, order and priority; null: the defaults, C += A.</param>
    /// <param name="cancellationToken">Cancels the job.</param>
    public Task AxpbyAsync(in Matrix a, in Matrix c, AxpbyOptions options = null,
                           CancellationToken cancellationToken = default(CancellationToken)) =>
      Layer(options, cancellationToken, AxpbyCall(a, c, options ?? new AxpbyOptions()));

    /// <summary>Computes C = activation(alpha * A + beta * C), as <see cref="AxpbyAsync"/>; blocks until the result is complete.</summary>
    /// <param name="a">A, of C's shape, type and layout; only read.</param>
    /// <param name="c">The result.</param>
    /// <param name="options">Scalars, activation, order and priority; null: the defaults, C += A.</param>
    public void Axpby(in Matrix a, in Matrix c, AxpbyOptions options = null) =>
      LayerAndWait(options, AxpbyCall(a, c, options ?? new AxpbyOptions()));

    internal static LayerCall AxpbyCall(Matrix a, Matrix c, AxpbyOptions how) {
      RequireWritable(c, "c");
      return (pins, o) => {
        long atA = pins.Take(a), atC = pins.Take(c);
        return RawPINVOKE.sg_flat_axpby_async(o.Context, o.Graph,
          atA, a.Rows, a.Cols, a.Ld, (int)a.DType, (int)a.Layout,
          atC, c.Rows, c.Cols, c.Ld, (int)c.DType, (int)c.Layout,
          how.Alpha.Real, how.Alpha.Imaginary, how.Beta.Real, how.Beta.Imaginary, (int)how.Activation,
          o.Stream, o.After, o.AfterCount, o.Priority, o.Flags, o.Queue, o.Tag, o.Plan, o.Deadline, o.Label, o.Job);
      };
    }
  }

  /// <summary>Scalars and activation of a scale-and-add, and the options of its submission.</summary>
  public sealed class AxpbyOptions : SubmitOptions {
    /// <summary>Factor of A. Default: 1. With 0, A is not accessed.</summary>
    public Complex Alpha { get; set; } = Complex.One;

    /// <summary>Factor of C. Default: 1. With 0, C is not read.</summary>
    public Complex Beta { get; set; } = Complex.One;

    /// <summary>Applied to the sum. Default: none.</summary>
    public Activation Activation { get; set; }
  }
}
