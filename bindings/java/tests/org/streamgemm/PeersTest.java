// SPDX-License-Identifier: Apache-2.0
package org.streamgemm;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;

import java.util.List;
import java.util.stream.Collectors;
import org.junit.Test;

/** Other devices in a DeviceInfo. On the emulated GPU with SG_EMULATED_GPUS=4 and fake_nvml.c. */
public class PeersTest {
  @Test
  public void values() {
    try (Context context = Context.open("cuda:0")) {
      List<DevicePeer> peers = context.device().peers();
      assertEquals("GPU-00102030-4050-6070-8090-a0b0c0d0e0f0", context.device().uuid());
      assertEquals(List.of("cuda:1", "cuda:2", "cuda:3"), peers.stream().map(DevicePeer::name).collect(Collectors.toList()));
      assertEquals(List.of(LinkClass.NVLINK, LinkClass.PCIE, LinkClass.HOST),
          peers.stream().map(DevicePeer::linkClass).collect(Collectors.toList()));
      assertEquals(List.of(18, 1, 0), peers.stream().map(DevicePeer::links).collect(Collectors.toList()));
      assertEquals(18 * 26562e6, peers.get(0).bytesPerSecond(), 1);
      assertEquals(0, peers.get(1).bytesPerSecond(), 0);
      assertEquals(peers.get(0).index() + 2, peers.get(2).index());
      assertTrue(context.device().toString(), context.device().toString().contains("linkClass=NVLINK"));
    }
  }

  @Test
  public void none() {
    try (Context context = Context.open("sim:h200")) {
      assertEquals(List.of(), context.device().peers());
      assertEquals("", context.device().uuid());
    }
  }
}
