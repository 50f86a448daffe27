// SPDX-License-Identifier: Apache-2.0
// Tables of backends that were built against an earlier backend.h.
#include <gtest/gtest.h>

#include <cstddef>

#include "backend/plugin.hpp"
#include "backends/sim/sim_backend.hpp"

namespace sg::test {
namespace {

TEST(OlderTables, TodaysIsTakenWhole) {
  const sg_backend_ops today = sound_table(sg_sim_backend());
  EXPECT_TRUE(today.has_epilogues && today.gemm_group);
  EXPECT_EQ(today.has_epilogues, sg_sim_backend()->has_epilogues);
}

// It knows a shorter sg_backend_gemm: one at a time it reads what it knows, an array it would step through wrongly.
TEST(OlderTables, OneFromBeforeEpiloguesIsGivenNoArraysOfProducts) {
  sg_backend_ops older = *sg_sim_backend();
  older.graph_create = [](sg_backend_device *, const sg_backend_node *, int32_t, sg_backend_graph **) {
    return SG_STATUS_OK;
  };
  older.struct_size = offsetof(sg_backend_ops, has_epilogues);
  const sg_backend_ops own = sound_table(&older);
  EXPECT_EQ(own.has_epilogues, nullptr);
  EXPECT_EQ(own.gemm_group, nullptr);
  EXPECT_EQ(own.graph_create, nullptr);
  EXPECT_EQ(own.gemm, sg_sim_backend()->gemm);
  EXPECT_EQ(own.compute_units, sg_sim_backend()->compute_units);
}

}  // namespace
}  // namespace sg::test
