// SPDX-License-Identifier: Apache-2.0
// The addresses of a schedule's buffers and the scalars in one run.
#pragma once

#include <streamgemm/types.h>

#include <cstddef>
#include <vector>

#include "ops/view.hpp"

namespace sg {

// The address of a parameter's first element, or one pointer for each item of the batch (`items` is owned by the
// binding's owner).
struct parameter_address {
  char *base = nullptr;
  char *const *items = nullptr;
};

// The scalars of a group of commands.
struct scalar_pair {
  sg_scalar alpha{1, 0}, beta{0, 0};
};

struct binding {
  static constexpr std::size_t few = 4;
  // The first parameters, and the scalars of group 0: all of most operations.
  struct head {
    parameter_address parameters[few];
    scalar_pair scalars;
  };

  head first;
  std::vector<parameter_address> more_parameters;  // few, few + 1, ...
  std::vector<scalar_pair> more_scalars;           // of groups 1, 2, ...
  std::vector<std::vector<char *>> pointers;       // storage of `items`
  char *device_arena = nullptr;
  char *staging_arena = nullptr;
  // Of a run on several devices, by device, instead of the two above.
  struct arenas {
    char *device = nullptr, *staging = nullptr;
  };
  std::vector<arenas> by_device;

  char *device_arena_of(device_index device) const noexcept {
    return by_device.empty() ? device_arena : by_device[number_of(device)].device;
  }
  char *staging_arena_of(device_index device) const noexcept {
    return by_device.empty() ? staging_arena : by_device[number_of(device)].staging;
  }
  const parameter_address &parameter(std::size_t index) const noexcept {
    return index < few ? first.parameters[index] : more_parameters[index - few];
  }
  // NULL for one that is not bound.
  const char *base_of(std::size_t index) const noexcept {
    return index < few + more_parameters.size() ? parameter(index).base : nullptr;
  }
  // Makes room for it.
  parameter_address &set_parameter(std::size_t index) {
    if (index < few) return first.parameters[index];
    if (more_parameters.size() <= index - few) more_parameters.resize(index - few + 1);
    return more_parameters[index - few];
  }
  const scalar_pair &scalars(std::int32_t group) const noexcept {
    return group == 0 ? first.scalars : more_scalars[static_cast<std::size_t>(group) - 1];
  }
  // Appends the parameters and the scalars of a further group.
  void add_group(const head &next) {
    more_parameters.insert(more_parameters.end(), std::begin(next.parameters), std::end(next.parameters));
    more_scalars.push_back(next.scalars);
  }
  template <class Each>
  void each_parameter(Each &&each) {
    for (parameter_address &one : first.parameters) each(one);
    for (parameter_address &one : more_parameters) each(one);
  }
  // A copy with its own pointer arrays.
  binding copy() const {
    binding made{first, more_parameters, more_scalars, pointers, nullptr, nullptr, {}};
    made.each_parameter([&](parameter_address &one) {
      for (std::size_t i = 0; one.items && i < pointers.size(); ++i)
        if (one.items == pointers[i].data()) {
          one.items = made.pointers[i].data();
          break;
        }
    });
    return made;
  }
  void clear() noexcept {
    more_parameters.clear();
    more_scalars.clear();
    pointers.clear();
    by_device.clear();
    device_arena = staging_arena = nullptr;
  }
};

// Address of the first element of item `item` of a view.
char *address_of(const buffer_list &buffers, const view &v, const binding &where, std::int64_t item);
inline bool is_zero(const sg_scalar &s) noexcept { return s.re == 0 && s.im == 0; }

// The value of a scalar. `own`: the job's.
sg_scalar value_of(scalar_role role, const sg_scalar &own) noexcept;

}  // namespace sg
