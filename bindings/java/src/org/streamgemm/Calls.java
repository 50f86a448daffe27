// SPDX-License-Identifier: Apache-2.0
package org.streamgemm;

import static java.lang.ref.Reference.reachabilityFence;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.List;
import org.streamgemm.internal.Native;

/** The flat calls that take a GEMM: the one place that lists their arguments. */
final class Calls {
  private Calls() {}

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

  /** Submits a GEMM. */
  static long gemmAsync(long context, Gemm g, Places p, long stream, long after, int afterCount, int priority,
      int flags, long queue, long tag, long options, long deadline,
      long label) {
    Matrix a = g.a;
    Matrix b = g.b;
    Matrix c = g.c;
    try {
      return Native.sg_flat_gemm_async(context, p.a, a.rows, a.cols, a.ld, a.dtype.value, a.layout.value, p.b, b.rows,
          b.cols, b.ld, b.dtype.value, b.layout.value, p.c, c.rows, c.cols, c.ld, c.dtype.value, c.layout.value,
          g.opA.value, g.opB.value, g.compute.value, g.alpha, g.alphaIm, g.beta, g.betaIm, g.batch, g.strideA,
          g.strideB, g.strideC, at(p.as), at(p.bs), at(p.cs), p.bias, g.strideBias, g.biasShape.value, g.activation.value, stream, after, afterCount, priority, flags, queue, tag,
          options, deadline, label);
    } finally {
      reachabilityFence(p);
    }
  }

  /** Submits a GEMM and waits for it. */
  static long gemm(long context, Gemm g, Places p, long stream, long after, int afterCount, int priority, int flags,
      long queue, long tag, long options, long deadline,
      long label) {
    Matrix a = g.a;
    Matrix b = g.b;
    Matrix c = g.c;
    try {
      return Native.sg_flat_gemm(context, p.a, a.rows, a.cols, a.ld, a.dtype.value, a.layout.value, p.b, b.rows, b.cols,
          b.ld, b.dtype.value, b.layout.value, p.c, c.rows, c.cols, c.ld, c.dtype.value, c.layout.value, g.opA.value,
          g.opB.value, g.compute.value, g.alpha, g.alphaIm, g.beta, g.betaIm, g.batch, g.strideA, g.strideB, g.strideC,
          at(p.as), at(p.bs), at(p.cs), p.bias, g.strideBias, g.biasShape.value, g.activation.value, stream, after, afterCount, priority, flags, queue, tag, options, deadline, label);
    } finally {
      reachabilityFence(p);
    }
  }

  /** Writes a GEMM into a group. The lists of addresses must be kept until the group was submitted. */
  static void groupSet(long group, int index, Gemm g, Places p) {
    Matrix a = g.a;
    Matrix b = g.b;
    Matrix c = g.c;
    Native.sg_flat_group_set(group, index, p.a, a.rows, a.cols, a.ld, a.dtype.value, a.layout.value, p.b, b.rows,
        b.cols, b.ld, b.dtype.value, b.layout.value, p.c, c.rows, c.cols, c.ld, c.dtype.value, c.layout.value,
        g.opA.value, g.opB.value, g.compute.value, g.alpha, g.alphaIm, g.beta, g.betaIm, g.batch, g.strideA, g.strideB,
        g.strideC, at(p.as), at(p.bs), at(p.cs), p.bias, g.strideBias, g.biasShape.value, g.activation.value);
  }

  /** Makes a plan. */
  static long planCreate(long context, Gemm g, Places p, long options) {
    if (g.bias != null && p.bias == 0)
      throw new StreamGemmException.InvalidArgument("bias is " + g.bias + "; a plan needs one in a direct buffer or on the device");
    Matrix a = g.a;
    Matrix b = g.b;
    Matrix c = g.c;
    try {
      return Native.sg_flat_plan_create(context, p.a, a.rows, a.cols, a.ld, a.dtype.value, a.layout.value, p.b, b.rows,
          b.cols, b.ld, b.dtype.value, b.layout.value, p.c, c.rows, c.cols, c.ld, c.dtype.value, c.layout.value,
          g.opA.value, g.opB.value, g.compute.value, g.alpha, g.alphaIm, g.beta, g.betaIm, g.batch, g.strideA,
          g.strideB, g.strideC, at(p.as), at(p.bs), at(p.cs), p.bias, g.strideBias, g.biasShape.value, g.activation.value, options);
    } finally {
      reachabilityFence(p);
    }
  }

  /** Runs a plan. */
  static long planRunAsync(long plan, Gemm g, Places p, long stream, long after, int afterCount, int priority,
      int flags, long queue, long tag, long options, long deadline,
      long label) {
    Matrix a = g.a;
    Matrix b = g.b;
    Matrix c = g.c;
    try {
      return Native.sg_flat_plan_run_async(plan, p.a, a.rows, a.cols, a.ld, a.dtype.value, a.layout.value, p.b, b.rows,
          b.cols, b.ld, b.dtype.value, b.layout.value, p.c, c.rows, c.cols, c.ld, c.dtype.value, c.layout.value,
          g.opA.value, g.opB.value, g.compute.value, g.alpha, g.alphaIm, g.beta, g.betaIm, g.batch, g.strideA,
          g.strideB, g.strideC, at(p.as), at(p.bs), at(p.cs), p.bias, g.strideBias, g.biasShape.value, g.activation.value, stream, after, afterCount, priority, flags, queue, tag,
          options, deadline, label);
    } finally {
      reachabilityFence(p);
    }
  }

  /** Records a GEMM. */
  static long recordGemm(long context, long graph, Gemm g, Places p, long stream, long after, int afterCount,
      int priority, int flags, long queue, long tag, long options, long deadline,
      long label) {
    Matrix a = g.a;
    Matrix b = g.b;
    Matrix c = g.c;
    try {
      return Native.sg_flat_record_gemm(context, graph, p.a, a.rows, a.cols, a.ld, a.dtype.value, a.layout.value, p.b,
          b.rows, b.cols, b.ld, b.dtype.value, b.layout.value, p.c, c.rows, c.cols, c.ld, c.dtype.value, c.layout.value,
          g.opA.value, g.opB.value, g.compute.value, g.alpha, g.alphaIm, g.beta, g.betaIm, g.batch, g.strideA,
          g.strideB, g.strideC, at(p.as), at(p.bs), at(p.cs), p.bias, g.strideBias, g.biasShape.value, g.activation.value, stream, after, afterCount, priority, flags, queue, tag,
          options, deadline, label);
    } finally {
      reachabilityFence(p);
    }
  }

  /** Sets other operands of a recorded GEMM. */
  static void graphSetGemm(long graph, int index, Gemm g, Places p) {
    Matrix a = g.a;
    Matrix b = g.b;
    Matrix c = g.c;
    try {
      Native.sg_flat_graph_set_gemm(graph, index, p.a, a.rows, a.cols, a.ld, a.dtype.value, a.layout.value, p.b, b.rows,
          b.cols, b.ld, b.dtype.value, b.layout.value, p.c, c.rows, c.cols, c.ld, c.dtype.value, c.layout.value,
          g.opA.value, g.opB.value, g.compute.value, g.alpha, g.alphaIm, g.beta, g.betaIm, g.batch, g.strideA,
          g.strideB, g.strideC, at(p.as), at(p.bs), at(p.cs), p.bias, g.strideBias, g.biasShape.value, g.activation.value);
    } finally {
      reachabilityFence(p);
    }
  }

  private static long at(ByteBuffer list) {
    return list == null ? 0 : Native.address(list);
  }
}
