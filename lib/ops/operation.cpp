// SPDX-License-Identifier: Apache-2.0
#include "ops/operation.hpp"

#include <utility>

namespace sg {

namespace {

template <std::size_t... Index>
constexpr std::array<const operation *, operation_count> table_of(std::index_sequence<Index...>) noexcept {
  return {&std::variant_alternative_t<Index, payload>::entry...};
}

constexpr auto table = table_of(std::make_index_sequence<operation_count>());

}  // namespace

std::span<const operation *const, operation_count> operations() noexcept { return table; }

void set_access_modes(command &c) noexcept {
  for (std::size_t i = 0; i < c.views.size(); ++i)
    c.views[i].mode = c.views[i].exists() ? operation_of(c).access(c, i) : access_mode::none;
}

}  // namespace sg
