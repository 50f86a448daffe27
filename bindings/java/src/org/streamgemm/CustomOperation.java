// SPDX-License-Identifier: Apache-2.0
package org.streamgemm;

import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import org.streamgemm.internal.Native;
import org.streamgemm.internal.RawConstants;

/**
 * A function of the application's as an operation, in order with all others: {@link Context#customAsync}, {@link
 * Graph#recordCustom}. Its operands, four at most, are numbered in the order in which they are named here. Read during the call
 * only.
 */
public final class CustomOperation extends OperationDesc<Void> {
  /** A function of the application's. */
  @FunctionalInterface
  public interface Function {
    /**
     * Does the work, or enqueues it on a CUDA device's native stream, and does not wait there: the stream's device is to be made
     * current first (cudaSetDevice). It runs on daemon threads of this package, of several jobs possibly at once, and calls nothing
     * of this package that submits or waits. When the VM exits it is given up, and later ones fail with {@link
     * StreamGemmException.Shutdown}.
     *
     * @param call the operands; valid until this returns
     * @throws Exception fails the job, with its class and message in the job's message
     */
    void run(CustomCall call) throws Exception;
  }

  private final Function function;
  private final List<Matrix> operands = new ArrayList<>();
  private final List<Access> accesses = new ArrayList<>();
  private double seconds;
  private int computeUnits;

  /**
   * An operation without operands so far.
   *
   * @param function called once for each run
   */
  public CustomOperation(Function function) {
    this.function = Objects.requireNonNull(function, "function");
  }

  /**
   * Names operands that the function only reads.
   *
   * @param matrices in device or pinned memory, or on the cpu in any
   * @return this operation
   */
  public CustomOperation reads(Matrix... matrices) {
    return add(Access.READ, matrices);
  }

  /**
   * Names operands that the function writes, whatever they contain.
   *
   * @param matrices as for {@link #reads}
   * @return this operation
   */
  public CustomOperation writes(Matrix... matrices) {
    return add(Access.WRITE, matrices);
  }

  /**
   * Names operands that the function reads and writes, or writes parts of.
   *
   * @param matrices as for {@link #reads}
   * @return this operation
   */
  public CustomOperation updates(Matrix... matrices) {
    return add(Access.READ_WRITE, matrices);
  }

  private CustomOperation add(Access access, Matrix... matrices) {
    for (Matrix m : matrices) {
      operands.add(Objects.requireNonNull(m, "matrices"));
      accesses.add(access);
    }
    return this;
  }

  /**
   * Sets the expected time, for predictions and simulated devices.
   *
   * @param seconds 0: by the bytes of the operands
   * @return this operation
   */
  public CustomOperation seconds(double seconds) {
    this.seconds = seconds;
    return this;
  }

  /**
   * Sets the multiprocessors that it occupies, for predictions.
   *
   * @param computeUnits 0: all; -1: none, as of a transfer between devices
   * @return this operation
   */
  public CustomOperation computeUnits(int computeUnits) {
    this.computeUnits = computeUnits;
    return this;
  }

  @Override
  LayerCall<Void> call() {
    int count = operands.size();
    if (count < 1 || count > RawConstants.SG_MAX_CUSTOM_OPERANDS)
      throw new StreamGemmException.InvalidArgument(
          "there are " + count + " operands; a custom operation has from 1 to " + RawConstants.SG_MAX_CUSTOM_OPERANDS);
    LayerCall<Void> made = new LayerCall<>(null);
    long[] sizes = new long[count];
    int readOnly = 0;
    for (int i = 0; i < count; ++i) {
      Matrix m = operands.get(i);
      String name = "operands[" + i + "]";
      if (m.rows == 0 || m.cols == 0) throw new StreamGemmException.InvalidArgument(name + " is " + m + ", which is empty");
      sizes[i] = m.span(1, 0) * Native.sg_dtype_size(m.dtype.value);
      if (accesses.get(i) == Access.READ) {
        made.reads(name, m);
        readOnly |= 1 << i;
      } else {
        made.writes(name, m, accesses.get(i) == Access.READ_WRITE);
      }
    }
    CustomCalls.Bound bound = new CustomCalls.Bound(function, sizes, readOnly);
    List<Access> how = List.copyOf(accesses);
    double expected = seconds;
    int units = computeUnits;
    return made.keeps(bound).calls(Structs.CALL_CUSTOM, Structs.sg_custom_desc.SIZE, (d, to, at) -> {
      int given = d.push(count * Structs.sg_custom_operand.SIZE);
      for (int i = 0; i < count; ++i) {
        int each = given + i * Structs.sg_custom_operand.SIZE;
        d.putLong(each + Structs.sg_custom_operand.data, at[i]);
        d.putLong(each + Structs.sg_custom_operand.bytes, sizes[i]);
        d.putInt(each + Structs.sg_custom_operand.access, how.get(i).value);
      }
      d.putLong(to, Structs.sg_custom_desc.SIZE);
      d.putLong(to + Structs.sg_custom_desc.function, CustomCalls.FUNCTION);
      d.putLong(to + Structs.sg_custom_desc.user, ((CustomCalls.Bound) made.kept()).operation);
      d.putLong(to + Structs.sg_custom_desc.operands, d.address(given));
      d.putInt(to + Structs.sg_custom_desc.operand_count, count);
      d.putInt(to + Structs.sg_custom_desc.compute_units, units);
      d.putDouble(to + Structs.sg_custom_desc.seconds, expected);
    });
  }
}
