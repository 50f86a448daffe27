// SPDX-License-Identifier: Apache-2.0
package org.streamgemm;

import java.util.ArrayList;
import java.util.IdentityHashMap;
import java.util.List;

/**
 * The array ranges that jobs in flight will be copied back to. The library orders jobs by the memory they share, and
 * does not know of arrays. Safe for use by several threads.
 */
final class PendingResults {
  private final IdentityHashMap<Object, List<long[]>> ranges = new IdentityHashMap<>();

  synchronized void add(Object array, long from, long to) {
    ranges.computeIfAbsent(array, first -> new ArrayList<>(1)).add(new long[] {from, to});
  }

  synchronized void remove(Object array, long from, long to) {
    List<long[]> pending = ranges.get(array);
    pending.remove(find(pending, from, to));
    if (pending.isEmpty()) ranges.remove(array);
  }

  private static int find(List<long[]> pending, long from, long to) {
    int at = 0;
    while (pending.get(at)[0] != from || pending.get(at)[1] != to) ++at;
    return at;
  }

  /** Elements with a pending result can neither be read nor written. */
  synchronized void refuse(Object array, long from, long to, String name) {
    for (long[] pending : ranges.getOrDefault(array, List.of()))
      if (from < pending[1] && pending[0] < to)
        throw new StreamGemmException.InvalidArgument(name
            + " is in an array that a job in flight will write;"
            + " wait for that job, or use direct buffers, whose order is kept");
  }
}
