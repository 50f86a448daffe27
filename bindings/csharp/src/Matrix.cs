// SPDX-License-Identifier: Apache-2.0
using System;
using System.Buffers;
using System.Numerics;
using System.Runtime.InteropServices;

namespace StreamGemm {
  /// <summary>
  /// A view of a matrix: elements of an array, of a Memory&lt;T&gt;, or of device memory, with sizes, leading dimension and
  /// layout. A new view copies and pins nothing: a job pins its operands from its submission until it has completed.
  /// </summary>
  public readonly struct Matrix {
    internal readonly object Owner;  // an Array, an IPinnable, a DeviceBuffer, another object that keeps the address valid, or null
    internal readonly long Address;  // of the owner's first element, if the owner has a fixed address
    internal readonly long First;    // the view's first element, counted from the owner's
    internal readonly long Length;   // elements from First on that may be accessed
    internal readonly bool ReadOnly;

    /// <summary>Rows.</summary>
    public long Rows { get; }
    /// <summary>Columns.</summary>
    public long Cols { get; }
    /// <summary>Leading dimension, in elements.</summary>
    public long Ld { get; }
    /// <summary>Element type.</summary>
    public DType DType { get; }
    /// <summary>Row or column major.</summary>
    public Layout Layout { get; }

    internal Matrix(object owner, long address, long first, long length, bool readOnly, long rows, long cols, long ld, DType dtype,
                    Layout layout) {
      if (rows < 0) throw new ArgumentOutOfRangeException("rows", rows, "rows is negative");
      if (cols < 0) throw new ArgumentOutOfRangeException("cols", cols, "cols is negative");
      long inner = layout == Layout.RowMajor ? cols : rows, outer = layout == Layout.RowMajor ? rows : cols;
      if (ld == 0) ld = inner;
      if (ld < inner)
        throw new ArgumentOutOfRangeException("ld", ld, "ld is below " + (layout == Layout.RowMajor ? "cols, " : "rows, ") + inner);
      long needed = Footprint(inner, outer, ld);
      if (needed > length)
        throw new ArgumentException("a " + rows + " x " + cols + " matrix with ld " + ld + " needs " + needed +
                                    " elements, the memory has " + length, "memory");
      Owner = owner;
      Address = address;
      First = first;
      Length = length;
      ReadOnly = readOnly;
      Rows = rows;
      Cols = cols;
      Ld = ld;
      DType = dtype;
      Layout = layout;
    }

    /// <summary>Elements of an array.</summary>
    /// <param name="array">The elements; element <paramref name="offset"/> is the matrix's first.</param>
    /// <param name="rows">Rows.</param>
    /// <param name="cols">Columns.</param>
    /// <param name="ld">Leading dimension in elements; 0 means tight.</param>
    /// <param name="layout">Row or column major.</param>
    /// <param name="offset">Index in the array of the matrix's first element.</param>
    /// <param name="dtype">Element type; 0 means that of T.</param>
    public static Matrix Of<T>(T[] array, long rows, long cols, long ld = 0, Layout layout = Layout.RowMajor, long offset = 0,
                               DType dtype = 0) where T : struct {
      if (array == null) throw new ArgumentNullException("array");
      if (offset < 0 || offset > array.LongLength) throw new ArgumentOutOfRangeException("offset", offset, "offset is outside the array");
      return new Matrix(array, 0, offset, array.LongLength - offset, false, rows, cols, ld, Element<T>.Check(dtype), layout);
    }

    /// <summary>A two-dimensional array, row major.</summary>
    public static Matrix Of<T>(T[,] array, DType dtype = 0) where T : struct {
      if (array == null) throw new ArgumentNullException("array");
      return new Matrix(array, 0, 0, array.LongLength, false, array.GetLongLength(0), array.GetLongLength(1), 0, Element<T>.Check(dtype),
                        Layout.RowMajor);
    }

    /// <summary>A four-dimensional array, row major: its first dimension is the rows, the others together are the columns.</summary>
    public static Matrix Of<T>(T[,,,] array, DType dtype = 0) where T : struct {
      if (array == null) throw new ArgumentNullException("array");
      long cols = array.GetLongLength(1) * array.GetLongLength(2) * array.GetLongLength(3);
      return new Matrix(array, 0, 0, array.LongLength, false, array.GetLongLength(0), cols, 0, Element<T>.Check(dtype), Layout.RowMajor);
    }

    /// <summary>Elements of a Memory: of an array, of a <see cref="PinnedMemory{T}"/>, of any MemoryManager.</summary>
    public static Matrix Of<T>(Memory<T> memory, long rows, long cols, long ld = 0, Layout layout = Layout.RowMajor, DType dtype = 0)
      where T : struct {
      return OfMemory<T>(memory, false, rows, cols, ld, layout, dtype);
    }

    /// <summary>Elements of a ReadOnlyMemory. Such a matrix can be A or B, never C.</summary>
    public static Matrix Of<T>(ReadOnlyMemory<T> memory, long rows, long cols, long ld = 0, Layout layout = Layout.RowMajor,
                               DType dtype = 0)
      where T : struct {
      return OfMemory(memory, true, rows, cols, ld, layout, dtype);
    }

    static Matrix OfMemory<T>(ReadOnlyMemory<T> memory, bool readOnly, long rows, long cols, long ld, Layout layout, DType dtype)
      where T : struct {
      dtype = Element<T>.Check(dtype);
      ArraySegment<T> segment;
      if (MemoryMarshal.TryGetArray(memory, out segment))
        return new Matrix(segment.Array, 0, segment.Offset, segment.Count, readOnly, rows, cols, ld, dtype, layout);
      MemoryManager<T> manager;
      int start, length;
      if (MemoryMarshal.TryGetMemoryManager<T, MemoryManager<T>>(memory, out manager, out start, out length))
        return new Matrix(manager, 0, start, length, readOnly, rows, cols, ld, dtype, layout);
      throw new ArgumentException("the memory is neither an array's nor a MemoryManager's", "memory");
    }

    /// <summary>Memory at an address, host or device, that stays valid while jobs use it.</summary>
    /// <param name="address">Of the first element.</param>
    /// <param name="rows">Rows.</param>
    /// <param name="cols">Columns.</param>
    /// <param name="dtype">Element type.</param>
    /// <param name="ld">Leading dimension in elements; 0 means tight.</param>
    /// <param name="layout">Row or column major.</param>
    /// <param name="keepAlive">An object to keep from the garbage collector as long as the matrix or a job on it lives.</param>
    public static Matrix At(IntPtr address, long rows, long cols, DType dtype, long ld = 0, Layout layout = Layout.RowMajor,
                            object keepAlive = null) {
      return new Matrix(keepAlive == null ? null : new Kept(keepAlive), (long)address, 0, long.MaxValue, false, rows, cols, ld, dtype,
                        layout);
    }

    /// <summary>A shape without memory, for plans.</summary>
    public static Matrix Shape(long rows, long cols, DType dtype, long ld = 0, Layout layout = Layout.RowMajor) {
      return new Matrix(null, 0, 0, long.MaxValue, false, rows, cols, ld, dtype, layout);
    }

    /// <summary>The transpose: the same elements, seen in the other layout.</summary>
    public Matrix T => new Matrix(Owner, Address, First, Length, ReadOnly, Cols, Rows, Ld, DType,
                                  Layout == Layout.RowMajor ? Layout.ColumnMajor : Layout.RowMajor);

    /// <summary>A part of the matrix: the same elements, none copied.</summary>
    public Matrix Block(long row, long col, long rows, long cols) {
      if (row < 0 || row > Rows) throw new ArgumentOutOfRangeException("row", row, "row is outside the matrix");
      if (col < 0 || col > Cols) throw new ArgumentOutOfRangeException("col", col, "col is outside the matrix");
      if (rows < 0 || rows > Rows - row) throw new ArgumentOutOfRangeException("rows", rows, "the block ends outside the matrix");
      if (cols < 0 || cols > Cols - col) throw new ArgumentOutOfRangeException("cols", cols, "the block ends outside the matrix");
      if (rows == 0 || cols == 0) return new Matrix(Owner, Address, First, Length, ReadOnly, rows, cols, Ld, DType, Layout);
      long skip = Layout == Layout.RowMajor ? row * Ld + col : row + col * Ld;
      return new Matrix(Owner, Address, First + skip, Length - skip, ReadOnly, rows, cols, Ld, DType, Layout);
    }

    /// <summary>A float array as a matrix.</summary>
    public static implicit operator Matrix(float[,] array) => Of(array);
    /// <summary>A double array as a matrix.</summary>
    public static implicit operator Matrix(double[,] array) => Of(array);
    /// <summary>A complex array as a matrix.</summary>
    public static implicit operator Matrix(Complex[,] array) => Of(array);
    /// <summary>A complex array as a matrix.</summary>
    public static implicit operator Matrix(ComplexFloat[,] array) => Of(array);
    /// <summary>A binary16 array as a matrix.</summary>
    public static implicit operator Matrix(Float16[,] array) => Of(array);
    /// <summary>A bfloat16 array as a matrix.</summary>
    public static implicit operator Matrix(BFloat16[,] array) => Of(array);
    /// <summary>An array of 8-bit integers as a matrix.</summary>
    public static implicit operator Matrix(sbyte[,] array) => Of(array);
    /// <summary>An array of 32-bit integers as a matrix.</summary>
    public static implicit operator Matrix(int[,] array) => Of(array);

    /// <inheritdoc/>
    public override string ToString() => Rows + " x " + Cols + " " + DType + ", ld " + Ld + ", " + Layout;

    internal Internal.sg_matrix In(Pins pins) => At(pins.Take(this));

    internal Internal.sg_matrix At(long address) =>
      new Internal.sg_matrix { data = address, rows = Rows, cols = Cols, ld = Ld, dtype = DType, layout = Layout };

    internal Matrix WithoutMemory => new Matrix(null, 0, 0, long.MaxValue, false, Rows, Cols, Ld, DType, Layout);

    /// <summary>Refuses a matrix of another shape than the one that was planned or recorded.</summary>
    internal void RequireLike(in Matrix planned, string name) {
      if (Rows != planned.Rows || Cols != planned.Cols || DType != planned.DType || Layout != planned.Layout || (Outer > 1 && Ld != planned.Ld))
        throw new ArgumentException(name + " is " + this + "; " + planned + " was planned or recorded", name);
    }

    internal void RequireWritable(string name) {
      if (ReadOnly) throw new ArgumentException(name + " is read-only memory", name);
    }

    /// <summary>Elements of a row of a row-major matrix, of a column of another.</summary>
    internal long Inner => Layout == Layout.RowMajor ? Cols : Rows;

    /// <summary>The number of those rows or columns.</summary>
    internal long Outer => Layout == Layout.RowMajor ? Rows : Cols;

    /// <summary>Elements from the first to the last.</summary>
    internal long Span => Footprint(Inner, Outer, Ld);

    /// <summary>Throws unless `batch` items, `stride` elements apart, fit into the matrix's memory.</summary>
    internal void CheckBatch(long batch, long stride, string name) {
      if (batch <= 1 || Rows == 0 || Cols == 0) return;
      if (stride < 0) throw new ArgumentOutOfRangeException(name, stride, "the stride of " + name + " is negative");
      long needed = Sum(Product(batch - 1, stride), Footprint(Inner, Outer, Ld));
      if (needed > Length)
        throw new ArgumentException(batch + " items, " + stride + " elements apart, need " + needed + " elements, the memory of " + name +
                                    " has " + Length, name);
    }

    // Elements from the first to the last; long.MaxValue on overflow.
    internal static long Footprint(long inner, long outer, long ld) {
      return inner == 0 || outer == 0 ? 0 : Sum(Product(outer - 1, ld), inner);
    }

    static long Product(long x, long y) => (double)x * y < 9e18 ? x * y : long.MaxValue;

    static long Sum(long x, long y) => x <= long.MaxValue - y ? x + y : long.MaxValue;

    /// <summary>Distinguishes a foreign owner from pinned ones.</summary>
    internal sealed class Kept {
      internal readonly object Value;
      internal Kept(object value) { Value = value; }
    }
  }

  public readonly partial struct Heads {
    /// <summary>An array of batches of heads of tokens of elements.</summary>
    public static Heads Of<T>(T[,,,] array, DType dtype = 0) where T : struct {
      Matrix memory = Matrix.Of(array, dtype);
      long batch = array.GetLongLength(0), heads = array.GetLongLength(1), tokens = array.GetLongLength(2), width = array.GetLongLength(3);
      return new Heads(memory, 0, batch, heads, tokens, width, heads * tokens * width, tokens * width, width);
    }
  }

  public readonly partial struct Images {
    /// <summary>An array of images of channels of rows of pixels, or with NHWC of images of rows of pixels of channels.</summary>
    public static Images Of<T>(T[,,,] array, ImageLayout layout = ImageLayout.Nchw, DType dtype = 0) where T : struct {
      bool last = layout == ImageLayout.Nhwc;
      return Of(Matrix.Of(array, dtype), layout, array.GetLongLength(last ? 3 : 1), array.GetLongLength(last ? 1 : 2), array.GetLongLength(last ? 2 : 3));
    }
  }
}
