// SPDX-License-Identifier: Apache-2.0
package org.streamgemm;

import static java.lang.ref.Reference.reachabilityFence;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.List;
import java.util.Objects;
import org.streamgemm.internal.Native;

/**
 * A GEMM: C = activation(alpha * op(A) * op(B) + beta * C + bias), one or a batch. Immutable; each {@code with}
 * method returns a changed copy. alpha is 1 and beta is 0 by default; beta == 0 never reads C; without a bias none is
 * added, without an activation none is applied. C may not overlap A, B or the bias.
 */
public final class Gemm {
  /** The views; with lists of items, the first ones. */
  final Matrix a;
  final Matrix b;
  final Matrix c;
  /** Items at arbitrary addresses, or null. */
  final List<Matrix> as;
  final List<Matrix> bs;
  final List<Matrix> cs;
  /** One row or one column; null: none. */
  Matrix bias;
  /**
   * All operands are memory that is used in place and cannot be freed early: a submission needs no preparation.
   */
  boolean plain;

  private Gemm(Matrix a, Matrix b, Matrix c, List<Matrix> as, List<Matrix> bs, List<Matrix> cs) {
    this.a = a;
    this.b = b;
    this.c = c;
    this.as = as;
    this.bs = bs;
    this.cs = cs;
    batch = as == null ? 1 : as.size();
  }

  /**
   * C = A * B.
   *
   * @param a only read
   * @param b only read
   * @param c the result
   * @return the GEMM
   */
  public static Gemm of(Matrix a, Matrix b, Matrix c) {
    Objects.requireNonNull(a, "a");
    Objects.requireNonNull(b, "b");
    writable(c, "c");
    Gemm made = new Gemm(a, b, c, null, null, null);
    made.plain = inPlace(a) && inPlace(b) && inPlace(c);
    return made;
  }

  /**
   * C_i = A_i * B_i for items at arbitrary addresses, of the same shape, type, layout and leading dimension.
   *
   * @param a the items of A
   * @param b the items of B, as many
   * @param c the items of C, as many
   * @return the GEMM
   */
  public static Gemm batched(List<Matrix> a, List<Matrix> b, List<Matrix> c) {
    List<Matrix> as = List.copyOf(a);
    List<Matrix> bs = List.copyOf(b);
    List<Matrix> cs = List.copyOf(c);
    if (as.isEmpty() || as.size() != bs.size() || as.size() != cs.size())
      throw invalid("a, b and c have " + as.size() + ", " + bs.size() + " and " + cs.size()
          + " items; as many are needed, at least one");
    alike(as, "a");
    alike(bs, "b");
    alike(cs, "c");
    for (int i = 0; i < cs.size(); ++i) writable(cs.get(i), "c[" + i + "]");
    return new Gemm(as.get(0), bs.get(0), cs.get(0), as, bs, cs);
  }

  /**
   * As a strided batch, whose first item the views are.
   *
   * @param items number of items, at least 1
   * @param a elements from one item's A to the next; 0 shares A
   * @param b elements from one item's B to the next; 0 shares B
   * @param c elements from one item's C to the next
   * @return a changed copy
   */
  public Gemm withBatch(long items, long a, long b, long c) {
    if (as != null) throw invalid("the GEMM is a batch already");
    if (items < 1) throw invalid("items is " + items);
    Gemm made = copy();
    made.batch = items;
    made.strideA = fits(this.a, items, a, "a");
    made.strideB = fits(this.b, items, b, "b");
    made.strideC = fits(this.c, items, c, "c");
    if (bias != null) fits(bias, items, strideBias, "bias");
    return made;
  }

  /**
   * With a bias for each item of a batch.
   *
   * @param bias the first item's: a row with a value for each column of C, or a column with one for each row
   * @param stride elements from one item's bias to the next; 0 shares it [= 0]
   * @return a changed copy
   */
  public Gemm withBias(Matrix bias, long stride) {
    boolean perColumn = bias.rows == 1 && bias.cols == c.cols;
    if (!perColumn && !(bias.rows == c.rows && bias.cols == 1))
      throw invalid("bias is " + bias + ", and c, which is " + c + ", needs a row or a column of values");
    if (bias.dtype != c.dtype) throw invalid("bias is " + bias.dtype + " and c is " + c.dtype);
    boolean apart = bias.ld != 1 && (bias.layout == Layout.ROW_MAJOR) != perColumn;
    if (apart && bias.rows * bias.cols > 1) throw invalid("the values of bias do not follow each other");
    Gemm made = copy();
    made.bias = bias;
    made.biasShape = perColumn ? Bias.PER_COLUMN : Bias.PER_ROW;
    made.strideBias = fits(bias, batch, stride, "bias");
    made.plain = plain && inPlace(bias);
    return made;
  }

  private Gemm copy() {
    Gemm made = new Gemm(a, b, c, as, bs, cs);
    made.copyOptions(this);
    made.bias = bias;
    made.plain = plain;
    return made;
  }

  /** The operands of a GEMM: addresses, or addresses of lists of addresses. */
  static final class Places {
    final long a;
    final long b;
    final long c;
    final long bias;
    final ByteBuffer as;
    final ByteBuffer bs;
    final ByteBuffer cs;

    /** Unchanged: for operands that need no preparation, and for plans, to which an array is an unknown address. */
    Places(Gemm g) {
      a = g.a.address;
      b = g.b.address;
      c = g.c.address;
      bias = g.bias == null ? 0 : g.bias.address;
      as = g.as == null ? null : list(g.as, (m, i) -> m.address);
      bs = g.bs == null ? null : list(g.bs, (m, i) -> m.address);
      cs = g.cs == null ? null : list(g.cs, (m, i) -> m.address);
    }

    /** Copies arrays and holds device memory. */
    Places(Gemm g, Operands operands) {
      bias = g.bias == null ? 0 : operands.reads(g.bias, g.batch, g.strideBias, "bias");
      if (g.as == null) {
        a = operands.reads(g.a, g.batch, g.strideA, "a");
        b = operands.reads(g.b, g.batch, g.strideB, "b");
        c = operands.writes(g.c, g.batch, g.strideC, g.readsC(), "c");
        as = bs = cs = null;
        return;
      }
      a = b = c = 0;
      as = list(g.as, (m, i) -> operands.reads(m, 1, 0, "a[" + i + "]"));
      bs = list(g.bs, (m, i) -> operands.reads(m, 1, 0, "b[" + i + "]"));
      cs = list(g.cs, (m, i) -> operands.writes(m, 1, 0, g.readsC(), "c[" + i + "]"));
    }

    private interface AddressOf {
      long of(Matrix item, int index);
    }

    private static ByteBuffer list(List<Matrix> items, AddressOf address) {
      ByteBuffer list = ByteBuffer.allocateDirect(8 * items.size()).order(ByteOrder.nativeOrder());
      for (int i = 0; i < items.size(); ++i) list.putLong(8 * i, address.of(items.get(i), i));
      return list;
    }
  }

  /** Fills in an sg_gemm_desc. */
  void write(Scratch s, int at, Places p) {
    s.putLong(at, Structs.sg_gemm_desc.SIZE);
    a.write(s, at + Structs.sg_gemm_desc.a, p.a);
    b.write(s, at + Structs.sg_gemm_desc.b, p.b);
    c.write(s, at + Structs.sg_gemm_desc.c, p.c);
    writeOptions(s, at);
    s.putLong(at + Structs.sg_gemm_desc.a_array, at(p.as));
    s.putLong(at + Structs.sg_gemm_desc.b_array, at(p.bs));
    s.putLong(at + Structs.sg_gemm_desc.c_array, at(p.cs));
    s.putLong(at + Structs.sg_gemm_desc.bias, p.bias);
  }

  /** Makes a call with it. */
  long call(Scratch s, int number, long on, Places p, long order) {
    int to = s.push(Structs.sg_gemm_desc.SIZE);
    try {
      write(s, to, p);
      return Native.sg_call(number, on, s.address(to), order);
    } finally {
      reachabilityFence(p);
    }
  }

  private static long at(ByteBuffer list) {
    return list == null ? 0 : Native.address(list);
  }

  /** Whether C is read. */
  boolean readsC() {
    return beta != 0 || betaIm != 0;
  }

  private static boolean inPlace(Matrix m) {
    return m.array == null && m.device() == null;
  }

  private static void writable(Matrix m, String name) {
    Objects.requireNonNull(m, name);
    if (m.readOnly) throw invalid(name + " is in a read-only buffer");
  }

  private static void alike(List<Matrix> items, String name) {
    Matrix first = items.get(0);
    for (int i = 1; i < items.size(); ++i) {
      Matrix m = items.get(i);
      if (m.rows != first.rows || m.cols != first.cols || m.ld != first.ld || m.dtype != first.dtype
          || m.layout != first.layout)
        throw invalid(name + "[" + i + "] is " + m + " and " + name + "[0] is " + first);
    }
  }

  private static long fits(Matrix m, long items, long stride, String name) {
    if (stride < 0) throw invalid("the stride of " + name + " is " + stride);
    if (m.span(items, stride) > m.available)
      throw invalid(items + " items of " + name + " (" + m + "), " + stride + " elements apart, need "
          + m.span(items, stride) + " elements, and " + m.available + " are there");
    return stride;
  }

  private static StreamGemmException.InvalidArgument invalid(String message) {
    return new StreamGemmException.InvalidArgument(message);
  }
}
