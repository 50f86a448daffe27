// SPDX-License-Identifier: Apache-2.0
using System;

namespace StreamGemm {
  /// <summary>Checks of operands that the library cannot make: of memory of which it has the address alone.</summary>
  internal static class Shapes {
    internal static long Gates(Cell cell) => cell == Cell.Lstm ? 4 : 3;

    /// <summary>The type of what a layer keeps for its gradients.</summary>
    internal static DType Wide(DType type) => type == DType.F64 ? DType.F64 : DType.F32;

    internal static void RequireMultiple(long size, long by, string which, string of) {
      if (by < 1 || size % by != 0) throw new ArgumentException(which.Replace("#", by.ToString()) + " the " + size + " of " + of);
    }

    internal static void RequireFor(string needing, bool given, string name, bool isThere) {
      if (given && !isThere) throw new ArgumentException(name + " is missing; " + needing + " needs it", name);
    }

    internal static void RequireContiguous(in Matrix values, long rows, long cols, DType type, string name) {
      if (values.DType == 0) return;
      bool byRows = values.Layout == Layout.RowMajor || rows == 1 || cols == 1;
      if (values.Rows != rows || values.Cols != cols || !byRows || values.Span != rows * cols || (type != 0 && values.DType != type))
        throw new ArgumentException(name + " is " + values + "; it must be " + rows + " x " + cols + " contiguous values" +
                                    (type == 0 ? "" : " of " + type) + (rows == 1 ? "" : ", row by row"), name);
    }

    /// <summary>A row for each sequence. Rows of all such matrices are equally far apart, which is the result.</summary>
    internal static long RequireRows(in Matrix state, long rows, long cols, DType type, string name, long stride) {
      if (state.DType == 0) return stride;
      if (state.DType != type || state.Rows != rows || state.Cols != cols || state.Layout != Layout.RowMajor)
        throw new ArgumentException(name + " is " + state + "; it must be " + rows + " x " + cols + ", row major, of " + type, name);
      if (stride != 0 && stride != state.Ld)
        throw new ArgumentException(name + " is " + state + "; the leading dimension of another state is " + stride, name);
      return state.Ld;
    }

    internal static void CheckElementwise(Function function, in Matrix a, in Matrix b, in Matrix c) {
      bool two = function >= Function.Add;
      if (two != (b.DType != 0))
        throw new ArgumentException((two ? "b is missing; " : "b is given; ") + function + (two ? " has two operands" : " has one operand"), "b");
    }
  }
}
