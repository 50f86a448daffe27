// SPDX-License-Identifier: Apache-2.0
using System.Linq;
using StreamGemm;

/// <summary>Other devices in a DeviceInfo. On the emulated GPU with SG_EMULATED_GPUS=4 and fake_nvml.c.</summary>
static class PeersTest {
  public static void Values() {
    using (var context = new GemmContext("cuda:0")) {
      var peers = context.Device.Peers;
      Expect.Equal("GPU-00102030-4050-6070-8090-a0b0c0d0e0f0", context.Device.Uuid, "uuid");
      Expect.Equal("cuda:1 cuda:2 cuda:3", string.Join(" ", peers.Select(p => p.Name)), "names");
      Expect.True(peers.Select(p => p.LinkClass).SequenceEqual(new[] { LinkClass.Nvlink, LinkClass.Pcie, LinkClass.Host }), "classes");
      Expect.True(peers.Select(p => p.Links).SequenceEqual(new[] { 18, 1, 0 }), "links");
      Expect.Equal(18 * 26562e6, peers[0].BytesPerSecond, "bandwidth");
      Expect.Equal(0.0, peers[1].BytesPerSecond, "unknown bandwidth");
      Expect.Equal(peers[0].Index + 2, peers[2].Index, "index");
    }
  }

  public static void None() {
    using (var context = new GemmContext("sim:h200")) Expect.Equal(0, context.Device.Peers.Count, "peers");
  }
}
