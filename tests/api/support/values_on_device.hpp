// SPDX-License-Identifier: Apache-2.0
// The fixture of tests whose operands are a few values in device memory.
#pragma once

#include <algorithm>
#include <vector>

#include "support/harness.hpp"

namespace sg_test {

class values_on_device : public on_each_device {
 protected:
  // Device memory with elements in it.
  template <class T>
  struct placed {
    buffer memory;
    T *data = nullptr;
    operator T *() const { return data; }
  };
  template <class T>
  placed<T> place(const std::vector<T> &values) {
    placed<T> made;
    EXPECT_OK(sg_buffer_create(context_, std::max<std::size_t>(1, values.size()) * sizeof(T), made.memory.out()));
    void *data = nullptr;
    EXPECT_OK(sg_buffer_data(made.memory, &data));
    made.data = static_cast<T *>(data);
    EXPECT_OK(sg_copy(context_, data, values.data(), values.size() * sizeof(T), nullptr));
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
