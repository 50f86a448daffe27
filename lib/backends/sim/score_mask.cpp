// SPDX-License-Identifier: Apache-2.0
#include "score_mask.hpp"

#include "operations.hpp"

namespace sg::sim {

std::function<void()> work_of(const address_space &memory, const sg_backend_score_mask &what) {
  const std::int64_t batches = (what.first_item + (what.rows - 1) / what.item_rows) / what.kv_heads + 1;
  const auto elements = [&](const sg_backend_heads &x) {
    return (batches - 1) * x.batch + (what.heads - 1) * x.head + (what.queries - 1) * x.token + what.keys;
  };
  const auto lengths = [&](const std::int32_t *given, const char *name) -> const std::int32_t * {
    if (!given) return nullptr;
    return reinterpret_cast<const std::int32_t *>(
        memory.device_bytes(given, static_cast<std::uint64_t>(batches) * sizeof(std::int32_t), name));
  };
  score_mask_operands x{};
  x.scores = memory.device_bytes(what.scores, strided_extent(what.rows, what.scores_row, what.cols, 1, what.type),
                                 "the scores of a mask");
  if (what.bias.data)
    x.bias = memory.device_bytes(what.bias.data, strided_extent(1, 0, elements(what.bias), 1, what.bias_type),
                                 "the bias of scores");
  if (what.visible.data)
    x.visible = memory.device_bytes(what.visible.data, static_cast<std::uint64_t>(elements(what.visible)),
                                    "the visible keys of scores");
  x.query_lengths = lengths(what.query_lengths, "the lengths of queries");
  x.key_lengths = lengths(what.key_lengths, "the lengths of keys");
  return [what, x] { run_score_mask(what, x); };
}

}  // namespace sg::sim
