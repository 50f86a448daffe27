# SPDX-License-Identifier: Apache-2.0
"""Other devices in a DeviceInfo. On the emulated GPU with SG_EMULATED_GPUS=4 and fake_nvml.c."""

import unittest

import streamgemm as sg


class Peers(unittest.TestCase):
    def test_values(self):
        with sg.Context("cuda:0") as context:
            peers = context.device.peers
            self.assertEqual(context.device.uuid, "GPU-00102030-4050-6070-8090-a0b0c0d0e0f0")
            with sg.Context("cuda:" + context.device.uuid) as same:
                self.assertEqual(same.device.uuid, context.device.uuid)
        self.assertEqual([peer.name for peer in peers], ["cuda:1", "cuda:2", "cuda:3"])
        self.assertEqual([peer.link_class for peer in peers], [sg.LinkClass.NVLINK, sg.LinkClass.PCIE, sg.LinkClass.HOST])
        self.assertIsInstance(peers[0].link_class, sg.LinkClass)
        self.assertEqual([peer.links for peer in peers], [18, 1, 0])
        self.assertEqual([peer.bytes_per_second for peer in peers], [18 * 26562e6, 0, 0])
        self.assertEqual([peer.index for peer in peers], [peers[0].index + i for i in range(3)])
        self.assertIn("LinkClass.NVLINK", repr(peers[0]))

    def test_none(self):
        with sg.Context("sim:h200") as context:
            self.assertEqual(context.device.peers, ())
            self.assertEqual(context.device.uuid, "")


if __name__ == "__main__":
    unittest.main()
