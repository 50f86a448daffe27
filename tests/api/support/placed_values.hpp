// SPDX-License-Identifier: Apache-2.0
// The fixture of tests whose operands are a few values.
#pragma once

#include <algorithm>
#include <vector>

#include "support/operand_memory.hpp"

namespace sg_test {

class placed_values : public on_each_device {
 protected:
  // Memory with elements in it.
  template <class T>
  struct placed {
    operand_memory memory;
    T *data = nullptr;
    operator T *() const { return data; }
  };
  template <class T>
  placed<T> place(const std::vector<T> &values) {
    placed<T> made;
    made.memory = operand_memory(context_, values.size() * sizeof(T));
    made.data = static_cast<T *>(made.memory.data());
    EXPECT_OK(sg_copy(context_, made.data, values.data(), values.size() * sizeof(T), nullptr));
    return made;
  }
  template <class T>
  std::vector<T> fetch(const placed<T> &from, std::size_t count) {
    std::vector<T> values(count);
    EXPECT_OK(sg_copy(context_, values.data(), from.data, count * sizeof(T), nullptr));
    return values;
  }
};

}  // namespace sg_test
