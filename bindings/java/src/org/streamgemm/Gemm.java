// SPDX-License-Identifier: Apache-2.0
package org.streamgemm;

import java.util.List;
import java.util.Objects;
import org.streamgemm.internal.Native;

/**
 * A GEMM: C = activation(alpha * op(A) * op(B) + beta * C + bias), one or a batch. Immutable; each {@code with}
 * method returns a changed copy. alpha is 1 and beta is 0 by default; beta == 0 never reads C; without a bias none is
 * added, without an activation none is applied. C may not overlap A, B or the bias.
 */
public final class Gemm extends OperationDesc<Matrix> {
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
    if (items < 1) throw invalid("items is " + items + "; it must be at least 1");
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

  @Override
  LayerCall<Matrix> call() {
    return call(Structs.CALL_GEMM);
  }

  /** The call of a number with it. */
  LayerCall<Matrix> call(int number) {
    LayerCall<Matrix> made = new LayerCall<>(c);
    if (as == null) made.reads("a", a, batch, strideA).reads("b", b, batch, strideB).writes("c", c, batch, strideC, readsC());
    else made.reads("a", as).reads("b", bs).writes("c", cs, readsC());
    return made.reads("bias", bias, batch, strideBias).calls(number, Structs.sg_gemm_desc.SIZE, this::write);
  }

  /** The addresses of operands that need no preparation. */
  long[] addresses() {
    return new long[] {a.address, b.address, c.address, bias == null ? 0 : bias.address};
  }

  /** Makes a call with operands at addresses. */
  long call(Scratch s, int number, long on, long[] at, long order) {
    int to = s.push(Structs.sg_gemm_desc.SIZE);
    write(s, to, at);
    return Native.sg_call(number, on, s.address(to), order);
  }

  /** Fills in an sg_gemm_desc: with addresses of operands, or of lists of addresses. */
  void write(Scratch s, int to, long[] at) {
    boolean single = as == null;
    s.putLong(to, Structs.sg_gemm_desc.SIZE);
    a.write(s, to + Structs.sg_gemm_desc.a, single ? at[0] : 0);
    b.write(s, to + Structs.sg_gemm_desc.b, single ? at[1] : 0);
    c.write(s, to + Structs.sg_gemm_desc.c, single ? at[2] : 0);
    writeOptions(s, to);
    s.putLong(to + Structs.sg_gemm_desc.a_array, single ? 0 : at[0]);
    s.putLong(to + Structs.sg_gemm_desc.b_array, single ? 0 : at[1]);
    s.putLong(to + Structs.sg_gemm_desc.c_array, single ? 0 : at[2]);
    s.putLong(to + Structs.sg_gemm_desc.bias, at[3]);
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
        throw invalid(name + "[" + i + "] is " + m + " and " + name + "[0] is " + first + "; they must be equal");
    }
  }

  private static long fits(Matrix m, long items, long stride, String name) {
    if (stride < 0) throw invalid("the stride of " + name + " is " + stride + "; it must not be negative");
    if (m.span(items, stride) > m.available)
      throw invalid(items + " items of " + name + " (" + m + "), " + stride + " elements apart, need "
          + m.span(items, stride) + " elements, and " + m.available + " are there");
    return stride;
  }

  private static StreamGemmException.InvalidArgument invalid(String message) {
    return new StreamGemmException.InvalidArgument(message);
  }
}
