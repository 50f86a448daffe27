// SPDX-License-Identifier: Apache-2.0
package org.streamgemm;

import java.nio.Buffer;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.CharBuffer;
import java.nio.DoubleBuffer;
import java.nio.FloatBuffer;
import java.nio.IntBuffer;
import java.nio.LongBuffer;
import java.nio.ShortBuffer;
import java.util.Objects;
import org.streamgemm.internal.Native;

/**
 * A view of a matrix in memory with another owner: a direct buffer, an array, device memory. It copies nothing
 * and keeps the owner alive. Immutable.
 *
 * <p>Memory of direct buffers and of the device is used in place. An array is copied into pinned memory at
 * submission, and the result back at completion; no array is ever held in a critical section.
 */
public final class Matrix {
  /** Address of the first element, valid while the owner lives; 0 for a matrix in an array. [get] */
  final long address;
  /** Rows as stored. [get] */
  final long rows;
  /** Columns as stored. [get] */
  final long cols;
  /** The leading dimension: elements from the start of one row (row major) or column to the next. [get] */
  final long ld;
  /** Type of the elements. [get] */
  final DType dtype;
  /** Its layout: row or column major. [get] */
  final Layout layout;
  final boolean readOnly;
  void write(Scratch s, int at, long place) {
    s.putLong(at, place);
    s.putLong(at + 8, rows);
    s.putLong(at + 16, cols);
    s.putLong(at + 24, ld);
    s.putInt(at + 32, dtype.value);
    s.putInt(at + 36, layout.value);
  }

  /** Elements from the first one on that belong to the owner; Long.MAX_VALUE if unknown. */
  final long available;
  /** The float[] or double[] of the matrix, or null. */
  final Object array;
  final int arrayOffset;
  /** The owner of the memory: the buffer, array or other object that this keeps alive; null if there is none. [get] */
  private final Object owner;

  private Matrix(long address, long rows, long cols, long ld, DType dtype, Layout layout, boolean readOnly,
      long available, Object array, int arrayOffset, Object owner) {
    this.address = address;
    this.rows = rows;
    this.cols = cols;
    this.ld = ld;
    this.dtype = Objects.requireNonNull(dtype, "dtype");
    this.layout = Objects.requireNonNull(layout, "layout");
    this.readOnly = readOnly;
    this.available = available;
    this.array = array;
    this.arrayOffset = arrayOffset;
    this.owner = owner;
    if (rows < 0 || cols < 0) throw invalid("a matrix of " + rows + " x " + cols);
    if (ld < Math.max(1, inner()))
      throw invalid("ld is " + ld + ", less than the " + inner() + " elements of a contiguous run");
    if (span(1, 0) > available)
      throw invalid("a matrix of " + rows + " x " + cols + " with ld " + ld + " needs " + span(1, 0) + " elements, and "
          + available + " are there");
  }

  /**
   * A tight row-major f32 matrix at the position of a direct buffer of native order.
   *
   * @param buffer its memory
   * @param rows its rows
   * @param cols its columns
   * @return the view
   */
  public static Matrix of(FloatBuffer buffer, long rows, long cols) {
    return of(buffer, DType.F32, rows, cols);
  }

  /**
   * A tight row-major f64 matrix at the position of a direct buffer of native order.
   *
   * @param buffer its memory
   * @param rows its rows
   * @param cols its columns
   * @return the view
   */
  public static Matrix of(DoubleBuffer buffer, long rows, long cols) {
    return of(buffer, DType.F64, rows, cols);
  }

  /**
   * A matrix at the position of a direct buffer of native order.
   *
   * @param buffer its memory; a read-only one can only be an input
   * @param dtype type of its elements
   * @param rows its rows
   * @param cols its columns
   * @param ld leading dimension in elements; 0 means tight [= 0]
   * @param layout row or column major [= Layout.ROW_MAJOR]
   * @return the view
   */
  public static Matrix of(Buffer buffer, DType dtype, long rows, long cols, long ld, Layout layout) {
    Objects.requireNonNull(dtype, "dtype");
    if (!buffer.isDirect())
      throw invalid(
          "the buffer is on the Java heap; use a direct one (Context.allocatePinned, ByteBuffer.allocateDirect), or"
          + " Matrix.of(array, ...), which copies");
    int size = Native.sg_dtype_size(dtype.value);
    ByteOrder order = orderOf(buffer);
    if (order != ByteOrder.nativeOrder() && !(buffer instanceof ByteBuffer && size == 1))
      throw invalid(
          "the buffer's order is " + order + "; set order(ByteOrder.nativeOrder()) before it is filled or viewed");
    int unit = unitOf(buffer);
    long address = Native.address(buffer) + (long) buffer.position() * unit;
    return new Matrix(address, rows, cols, tight(rows, cols, ld, layout), dtype, layout, buffer.isReadOnly(),
        (long) buffer.remaining() * unit / size, null, 0, buffer);
  }

  /**
   * An f32 matrix in an array.
   *
   * @param array its memory
   * @param offset index of its first element [= 0]
   * @param rows its rows
   * @param cols its columns
   * @param ld leading dimension in elements; 0 means tight [= 0]
   * @param layout row or column major [= Layout.ROW_MAJOR]
   * @return the view
   */
  public static Matrix of(float[] array, int offset, long rows, long cols, long ld, Layout layout) {
    return inArray(array, array.length, offset, DType.F32, rows, cols, ld, layout);
  }

  /**
   * An f64 matrix in an array.
   *
   * @param array its memory
   * @param offset index of its first element [= 0]
   * @param rows its rows
   * @param cols its columns
   * @param ld leading dimension in elements; 0 means tight [= 0]
   * @param layout row or column major [= Layout.ROW_MAJOR]
   * @return the view
   */
  public static Matrix of(double[] array, int offset, long rows, long cols, long ld, Layout layout) {
    return inArray(array, array.length, offset, DType.F64, rows, cols, ld, layout);
  }

  private static Matrix inArray(
      Object array, int length, int offset, DType dtype, long rows, long cols, long ld, Layout layout) {
    Objects.checkFromToIndex(offset, length, length);
    return new Matrix(
        0, rows, cols, tight(rows, cols, ld, layout), dtype, layout, false, length - offset, array, offset, array);
  }

  /**
   * A matrix in device memory.
   *
   * @param buffer its memory
   * @param offset bytes before its first element
   * @param dtype type of its elements
   * @param rows its rows
   * @param cols its columns
   * @param ld leading dimension in elements; 0 means tight [= 0]
   * @param layout row or column major [= Layout.ROW_MAJOR]
   * @return the view
   */
  public static Matrix of(DeviceBuffer buffer, long offset, DType dtype, long rows, long cols, long ld, Layout layout) {
    if (offset < 0 || offset > buffer.size())
      throw invalid("offset is " + offset + " in a buffer of " + buffer.size() + " bytes");
    return new Matrix(buffer.address() + offset, rows, cols, tight(rows, cols, ld, layout), dtype, layout, false,
        (buffer.size() - offset) / Native.sg_dtype_size(dtype.value), null, 0, buffer);
  }

  /**
   * A matrix at an address, for other memory (a MemorySegment, another library). Nothing is
   * checked: a wrong address ends the process.
   *
   * @param address first element, in host or device memory
   * @param owner kept reachable while work uses the matrix; null if the memory stays anyway
   * @param dtype type of its elements
   * @param rows its rows
   * @param cols its columns
   * @param ld leading dimension in elements; 0 means tight
   * @param layout row or column major
   * @return the view
   */
  public static Matrix ofAddress(
      long address, Object owner, DType dtype, long rows, long cols, long ld, Layout layout) {
    return new Matrix(
        address, rows, cols, tight(rows, cols, ld, layout), dtype, layout, false, Long.MAX_VALUE, null, 0, owner);
  }

  /**
   * A shape without memory, to make plans with.
   *
   * @param dtype type of its elements
   * @param rows its rows
   * @param cols its columns
   * @return a row-major matrix without memory
   */
  public static Matrix shape(DType dtype, long rows, long cols) {
    return ofAddress(0, null, dtype, rows, cols, 0, Layout.ROW_MAJOR);
  }

  /**
   * A part of the matrix.
   *
   * @param row its first row
   * @param col its first column
   * @param height its rows
   * @param width its columns
   * @return a view of the same memory
   */
  public Matrix block(long row, long col, long height, long width) {
    if (row < 0 || col < 0 || height < 0 || width < 0 || row > rows - height || col > cols - width)
      throw invalid("a block of " + height + " x " + width + " at (" + row + ", " + col + ") of a matrix of " + rows
          + " x " + cols);
    long skipped = height == 0 || width == 0 ? 0 : layout == Layout.ROW_MAJOR ? row * ld + col : row + col * ld;
    long left = available == Long.MAX_VALUE ? available : available - skipped;
    long start = array == null ? address + skipped * Native.sg_dtype_size(dtype.value) : 0;
    return new Matrix(start, height, width, ld, dtype, layout, readOnly, left, array,
        array == null ? 0 : (int) (arrayOffset + skipped), owner);
  }

  /** The device memory of the matrix, or null. */
  DeviceBuffer device() {
    return owner instanceof DeviceBuffer ? (DeviceBuffer) owner : null;
  }

  /** Bytes of an element. */
  long elementSize() {
    return Native.sg_dtype_size(dtype.value);
  }

  /** Elements of a contiguous run: of a row, or of a column. */
  long inner() {
    return layout == Layout.ROW_MAJOR ? cols : rows;
  }

  /** The number of those runs: rows, or columns. */
  long outer() {
    return layout == Layout.ROW_MAJOR ? rows : cols;
  }

  /** Elements from the first to the end of the last of `batch` items at `stride`. */
  long span(long batch, long stride) {
    if (rows == 0 || cols == 0 || batch == 0) return 0;
    try {
      return Math.addExact(
          Math.multiplyExact(batch - 1, stride), Math.addExact(Math.multiplyExact(outer() - 1, ld), inner()));
    } catch (ArithmeticException e) {
      return Long.MAX_VALUE;
    }
  }

  @Override
  public String toString() {
    return dtype.name().toLowerCase(java.util.Locale.ROOT) + " " + rows + " x " + cols
        + (layout == Layout.ROW_MAJOR ? " by rows" : " by columns") + ", ld " + ld
        + (array != null           ? ", in an array"
                : device() != null ? ", on the device"
                                   : "");
  }

  private static long tight(long rows, long cols, long ld, Layout layout) {
    return ld != 0 ? ld : Math.max(1, layout == Layout.ROW_MAJOR ? cols : rows);
  }

  private static StreamGemmException.InvalidArgument invalid(String message) {
    return new StreamGemmException.InvalidArgument(message);
  }

  private static ByteOrder orderOf(Buffer buffer) {
    if (buffer instanceof FloatBuffer) return ((FloatBuffer) buffer).order();
    if (buffer instanceof ByteBuffer) return ((ByteBuffer) buffer).order();
    if (buffer instanceof DoubleBuffer) return ((DoubleBuffer) buffer).order();
    if (buffer instanceof ShortBuffer) return ((ShortBuffer) buffer).order();
    if (buffer instanceof IntBuffer) return ((IntBuffer) buffer).order();
    if (buffer instanceof LongBuffer) return ((LongBuffer) buffer).order();
    return ((CharBuffer) buffer).order();
  }

  static int unitOf(Buffer buffer) {
    if (buffer instanceof FloatBuffer || buffer instanceof IntBuffer) return 4;
    if (buffer instanceof ByteBuffer) return 1;
    return buffer instanceof DoubleBuffer || buffer instanceof LongBuffer ? 8 : 2;
  }
}
