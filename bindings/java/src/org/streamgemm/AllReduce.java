// SPDX-License-Identifier: Apache-2.0
package org.streamgemm;

import java.util.List;
import org.streamgemm.internal.RawConstants;

/** The call of {@link Context#allReduce}. */
final class AllReduce {
  private AllReduce() {}

  static LayerCall<Void> call(List<Matrix> operands) {
    List<Matrix> all = List.copyOf(operands);
    int count = all.size();
    if (count < 1 || count > RawConstants.SG_MAX_ALL_REDUCE_OPERANDS)
      throw new StreamGemmException.InvalidArgument(
          "there are " + count + " operands; an all-reduce has from 1 to " + RawConstants.SG_MAX_ALL_REDUCE_OPERANDS);
    Matrix first = all.get(0);
    for (int i = 0; i < count; ++i) {
      Matrix m = all.get(i);
      String name = "operands[" + i + "]";
      if (m.readOnly) throw new StreamGemmException.InvalidArgument(name + " is in a read-only buffer");
      if (m.outer() > 1 && m.ld != m.inner())
        throw new StreamGemmException.InvalidArgument(name + " is " + m + ", which has gaps");
      if (m.dtype != first.dtype || m.layout != first.layout || m.rows != first.rows || m.cols != first.cols)
        throw new StreamGemmException.InvalidArgument(
            name + " is " + m + " and operands[0] is " + first + "; shapes, types and layouts must be equal");
    }
    return new LayerCall<Void>(null)
        .writes("operands", all, true)
        .calls(Structs.CALL_ALL_REDUCE, Structs.sg_all_reduce_desc.SIZE, (d, to, at) -> {
          d.putLong(to, Structs.sg_all_reduce_desc.SIZE);
          d.putLong(to + Structs.sg_all_reduce_desc.operands, at[0]);
          d.putLong(to + Structs.sg_all_reduce_desc.elements, first.rows * first.cols);
          d.putInt(to + Structs.sg_all_reduce_desc.operand_count, count);
          d.putInt(to + Structs.sg_all_reduce_desc.dtype, first.dtype.value);
        });
  }
}
