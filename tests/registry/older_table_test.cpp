// SPDX-License-Identifier: Apache-2.0
// Backend tables that were built against an earlier backend.h of the same version.
#include <gtest/gtest.h>

#include <cstddef>

#include "backends/sim/sim_backend.hpp"
#include "devices/plugin.hpp"

namespace sg::test {
namespace {

TEST(OlderTables, ACurrentTableIsUsedUnchanged) {
  const sg_backend_ops today = sound_table(sg_sim_backend());
  EXPECT_TRUE(today.enqueue && today.takes_batches && today.compute_units);
  EXPECT_EQ(today.takes_batches, sg_sim_backend()->takes_batches);
}

TEST(OlderTables, SlotsMissingFromAnOlderTableAreNull) {
  sg_backend_ops older = *sg_sim_backend();
  older.struct_size = offsetof(sg_backend_ops, takes_batches);
  const sg_backend_ops own = sound_table(&older);
  EXPECT_EQ(own.takes_batches, nullptr);
  EXPECT_EQ(own.compute_units, nullptr);
  EXPECT_EQ(own.enqueue, sg_sim_backend()->enqueue);
}

}  // namespace
}  // namespace sg::test
