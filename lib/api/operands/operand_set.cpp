// SPDX-License-Identifier: Apache-2.0
#include "api/operands/operand_set.hpp"

#include <algorithm>

#include "api/operands/operand_bytes.hpp"
#include "base/error.hpp"

namespace sg {

void operand_set::add(std::size_t parameter, const given_operand &x, operand &stored, const rules &how) {
  parameter_address &at = where_.set_parameter(parameter);
  const bool is_absent = absent_ && !has_address(x.view.data);
  if (is_absent) {
    stored.space = space_without_address(on_.memory(), *absent_);
  } else {
    std::vector<std::vector<char *>> no_arrays;
    bind_operand(x, stored, 1, true, at, no_arrays);
    stored.space = space_of(on_.memory(), x, stored, 1, at, SG_MEMORY_AUTO, true);
  }
  bound one;
  one.desc = x.desc, one.name = x.name;
  one.parameter = parameter;
  one.given = x.view.data, one.field = x.field;
  one.bytes = total_bytes(stored, 1, x.name);
  one.alignment = std::max(how.alignment, is_complex(stored.type) ? size_of(stored.type) / 2 : size_of(stored.type));
  one.space = stored.space;
  one.may_become = how.may_become;
  if (is_absent) {
    writes_ |= sg::writes(how.mode);
    return operands_.push_back(one);
  }
  add_bytes(one, how.set.run > 0 ? how.set : bytes_of(stored, 1, at.base), how.mode, how.exact);
}

bool operand_set::is_same(const bound &one, const bound &other) const noexcept {
  return one.count == other.count &&
         std::equal(accesses_.begin() + one.first, accesses_.begin() + one.first + one.count,
                    accesses_.begin() + other.first,
                    [](const access &x, const access &y) { return x.bytes == y.bytes; });
}

void operand_set::add_bytes(const bound &given, const strided_bytes &set, access_mode mode, bool all) {
  if (operands_.empty()) operands_.reserve(8), accesses_.reserve(8);
  bound one = given;
  writes_ |= sg::writes(mode);
  one.first = static_cast<std::uint32_t>(accesses_.size());
  each_footprint(set, [&](const footprint &bytes, bool without_gaps) {
    const bool exact = all && without_gaps;
    accesses_.push_back({bytes, sg::writes(mode), sg::reads(mode), exact});
  });
  one.count = static_cast<std::uint32_t>(accesses_.size()) - one.first;
  const auto meets = [&](const bound &other) {
    for (std::uint32_t i = 0; i < one.count; ++i)
      for (std::uint32_t j = 0; j < other.count; ++j) {
        const access &mine = accesses_[one.first + i], &its = accesses_[other.first + j];
        if ((mine.writes || its.writes) && overlap(mine.bytes, its.bytes)) return true;
      }
    return false;
  };
  for (std::size_t i = 0; i < operands_.size(); ++i) {
    const bound &other = operands_[i];
    if (!meets(other)) continue;
    const bool may = other.may_become == one.parameter;
    if (!may || !is_same(one, other))
      throw error(SG_STATUS_INVALID_ARGUMENT, "@%s->%s (%p) and @%s->%s (%p) overlap%s", other.desc, other.name,
                  other.given, one.desc, one.name, one.given, may ? "; they must be separate, or the same matrix" : "");
    one.is = i;
  }
  if (one.is != none) {  // one access that reads and writes
    const bound &same = operands_[one.is];
    for (std::uint32_t j = 0; j < same.count; ++j)
      accesses_[same.first + j].writes = accesses_[same.first + j].reads = true;
    accesses_.resize(one.first);
    one.first = same.first;
  }
  operands_.push_back(one);
}

void operand_set::add_again(const bound &known, std::size_t parameter) {
  bound one = known;
  one.is = known.is != none ? known.is : static_cast<std::size_t>(&known - operands_.data());
  one.parameter = parameter;
  const parameter_address same = where_.parameter(known.parameter);  // which making room may move
  where_.set_parameter(parameter) = same;
  operands_.push_back(one);
}

}  // namespace sg
