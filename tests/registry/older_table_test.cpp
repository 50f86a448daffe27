// SPDX-License-Identifier: Apache-2.0
// Tables of backends that were built against an earlier backend.h of the same version.
#include <gtest/gtest.h>

#include <cstddef>

#include "backend/plugin.hpp"
#include "backends/sim/sim_backend.hpp"

namespace sg::test {
namespace {

TEST(OlderTables, TodaysIsTakenWhole) {
  const sg_backend_ops today = sound_table(sg_sim_backend());
  EXPECT_TRUE(today.enqueue && today.most_in_batch && today.compute_units);
  EXPECT_EQ(today.most_in_batch, sg_sim_backend()->most_in_batch);
}

TEST(OlderTables, SlotsThatAnOlderOneDoesNotKnowAreNull) {
  sg_backend_ops older = *sg_sim_backend();
  older.struct_size = offsetof(sg_backend_ops, most_in_batch);
  const sg_backend_ops own = sound_table(&older);
  EXPECT_EQ(own.most_in_batch, nullptr);
  EXPECT_EQ(own.compute_units, nullptr);
  EXPECT_EQ(own.enqueue, sg_sim_backend()->enqueue);
}

}  // namespace
}  // namespace sg::test
