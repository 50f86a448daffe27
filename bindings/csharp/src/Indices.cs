// SPDX-License-Identifier: Apache-2.0
using System;

namespace StreamGemm {
  /// <summary>Numbers of rows of a table, which are read when a job runs. Copies and pins nothing.</summary>
  public readonly struct Indices {
    /// <summary>Elements of I32: one for each index of 32 bits, two for each of 64 bits.</summary>
    public Matrix Memory { get; }
    /// <summary>Type of the indices.</summary>
    public IndexType Type { get; }
    /// <summary>Number of indices.</summary>
    public long Count => Memory.Rows * Memory.Cols / (Type == IndexType.I64 ? 2 : 1);

    Indices(in Matrix memory, IndexType type) {
      Shapes.RequireContiguous(memory, memory.Rows, memory.Cols, DType.I32, "memory");
      if (type == IndexType.I64 && memory.Rows * memory.Cols % 2 != 0)
        throw new ArgumentException("memory is " + memory + "; an index of 64 bits has two elements", "memory");
      Memory = memory;
      Type = type;
    }

    internal void Require(string name, long count, string of) {
      if (Count != count) throw new ArgumentException(Count + " indices are given; " + of + " is " + count, name);
    }

    /// <summary>Numbers in memory of any kind.</summary>
    /// <param name="memory">Contiguous elements of I32: one for an index of 32 bits, two for one of 64 bits.</param>
    /// <param name="type">Type of the indices.</param>
    public static Indices Of(in Matrix memory, IndexType type = IndexType.I32) => new Indices(memory, type);

    /// <summary>An array of indices of 32 bits.</summary>
    public static Indices Of(int[] array) => new Indices(Matrix.Of(array, 1, array.LongLength), IndexType.I32);

    /// <summary>An array of indices of 64 bits.</summary>
    public static Indices Of(long[] array) {
      long words = 2 * array.LongLength;
      return new Indices(new Matrix(array, 0, 0, words, false, 1, words, 0, DType.I32, Layout.RowMajor), IndexType.I64);
    }

    /// <summary>An array of indices of 32 bits.</summary>
    public static implicit operator Indices(int[] array) => Of(array);
    /// <summary>An array of indices of 64 bits.</summary>
    public static implicit operator Indices(long[] array) => Of(array);
  }
}
