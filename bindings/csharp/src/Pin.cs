// SPDX-License-Identifier: Apache-2.0
using System;
using System.Buffers;
using System.Runtime.InteropServices;
using System.Threading;

namespace StreamGemm {
  /// <summary>Keeps memory alive and at its address until released.</summary>
  internal struct Pin {
    object owner;
    GCHandle handle;

    /// <summary>Pins the memory of a matrix.</summary>
    /// <returns>The address of its first element.</returns>
    internal unsafe long Take(in Matrix matrix) {
      object of = matrix.Owner;
      if (of == null && matrix.Address == 0) return 0;  // a shape
      long skip = matrix.First * Element.Size(matrix.DType);
      if (of is Array) {
        handle = GCHandle.Alloc(of, GCHandleType.Pinned);
        return (long)handle.AddrOfPinnedObject() + skip;
      }
      if (of is IPinnable) {
        long address = (long)((IPinnable)of).Pin(0).Pointer + skip;
        owner = of;
        return address;
      }
      owner = of;
      return matrix.Address + skip;
    }

    internal void Release() {
      if (handle.IsAllocated) handle.Free();
      (owner as IPinnable)?.Unpin();
      owner = null;
    }
  }

  /// <summary>Pins of the operands of one GEMM.</summary>
  internal struct GemmPins {
    Pin a, b, c, bias;

    internal Internal.sg_gemm_desc Take(in Matrix a, in Matrix b, in Matrix c, GemmOptions o) {
      var at = new Native.Addresses { A = this.a.Take(a), B = this.b.Take(b), C = this.c.Take(c), Bias = bias.Take(o.Bias) };
      return Native.Gemm(a, b, c, at, o);
    }

    internal void Release() {
      a.Release();
      b.Release();
      c.Release();
      bias.Release();
    }
  }

  /// <summary>Pins of several matrices, and the function of a custom operation or the shapes of a copy.</summary>
  internal sealed class Pins {
    const long PlanAddress = -4096;  // SG_PLAN_ADDRESS

    Pin[] all = new Pin[8];
    int count;
    CustomFunction function, planned;
    Matrix source, destination, plannedSource, plannedDestination;  // without memory
    Recorded[] shared;
    readonly bool areShapes;

    /// <summary>Pins for a submission, or for a plan, whose operands may have no memory.</summary>
    internal Pins(bool areShapes = false) {
      this.areShapes = areShapes;
    }

    /// <summary>Pins the memory of a matrix.</summary>
    /// <returns>The address of its first element; 0 for one that is left out.</returns>
    internal long Take(in Matrix matrix) {
      if (count == all.Length) Array.Resize(ref all, 2 * count);
      long address = all[count++].Take(matrix);
      return address == 0 && areShapes && matrix.DType != 0 ? PlanAddress : address;
    }

    /// <summary>Of a batch at arbitrary addresses, which a plan has, too.</summary>
    internal long TakeItem(in Matrix matrix, string list, int index) {
      long address = Take(matrix);
      if (address != PlanAddress) return address;
      string name = list + "[" + index + "]";
      throw new ArgumentException(name + " is " + matrix + ", without memory; a plan needs the memory of a batch at arbitrary addresses", name);
    }

    internal Internal.sg_gemm_desc Take(in Matrix a, in Matrix b, in Matrix c, GemmOptions o) =>
      Native.Gemm(a, b, c, new Native.Addresses { A = Take(a), B = Take(b), C = Take(c), Bias = Take(o.Bias) }, o);

    /// <summary>Takes what an operation was planned or recorded with: its function stays, and the shapes of a copy.</summary>
    internal void Replace(Pins earlier) {
      planned = earlier.function;
      plannedSource = earlier.source;
      plannedDestination = earlier.destination;
    }

    /// <summary>Keeps the shapes of a copy. The library knows them in bytes alone.</summary>
    internal void Keep(in Matrix from, in Matrix to) {
      if (plannedSource.DType != 0) {
        from.RequireLike(plannedSource, "source");
        to.RequireLike(plannedDestination, "destination");
      }
      source = from.WithoutMemory;
      destination = to.WithoutMemory;
    }

    /// <summary>The function of a custom operation, kept.</summary>
    internal CustomFunction Keep(Action<CustomCall> called, long[] sizes) {
      if (planned != null && planned.Function != called) throw new ArgumentException("function is not the one that was planned or recorded", "function");
      function = planned == null ? new CustomFunction(called, sizes) : planned.Held();
      return function;
    }

    /// <summary>Holds the operands of a graph's children.</summary>
    internal void Hold(Recorded[] children) {
      foreach (Recorded child in children) child.Hold();
      shared = children;
    }

    internal void Release() {
      Interlocked.Exchange(ref function, null)?.Release();
      for (int i = 0; shared != null && i < shared.Length; ++i) shared[i].Release();
      Unpin();
    }

    /// <summary>Releases the matrices alone.</summary>
    internal void Unpin() {
      for (int i = 0; i < count; ++i) all[i].Release();
      count = 0;
    }
  }
}
