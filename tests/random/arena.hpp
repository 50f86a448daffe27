// SPDX-License-Identifier: Apache-2.0
// Memory for the operands of a test: ordinary memory between unreadable pages, and blocks of one pinned allocation and
// one of each device, whose neighbouring bytes are checked. Device memory has an image on the host.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "case.hpp"
#include "support/guarded.hpp"
#include "support/owned.hpp"

namespace sg_test::random_tests {

// Filler of memory outside the operands: NaN in every floating type.
constexpr std::uint8_t untouched = 0xff;

struct block {
  std::uint8_t *image = nullptr;  // on the host
  void *address = nullptr;        // the address passed to the library
  std::size_t size = 0;
};

// The operands of a test do not fit.
struct too_little_memory {};

class arena {
 public:
  explicit arena(sg_context *context);
  ~arena();
  arena(const arena &) = delete;

  // Starts a test: frees all blocks.
  void reset();
  // All bytes are `untouched`. Only the operand's own elements are read. Throws too_little_memory.
  block take(const operand_case &x, std::size_t bytes);
  // From the images to the devices, and back.
  void upload();
  void download();
  // "" unless a byte outside the blocks has changed.
  std::string neighbours() const;

 private:
  struct shared_part {
    std::uint8_t *image = nullptr;
    char *address = nullptr;
    std::size_t size = 0, used = 0, dirty = 0;
    std::vector<std::pair<std::size_t, std::size_t>> gaps;
    block take(std::size_t bytes);
    bool gaps_untouched() const;
    void clear();
  };

  sg_context *context_;
  bool unified_ = false;
  void *pinned_memory_ = nullptr;
  shared_part pinned_;
  struct device_part {
    buffer memory;
    std::unique_ptr<std::uint8_t[]> image;
    shared_part part;
  };
  std::vector<device_part> devices_;
  struct ordinary_block {
    guarded memory;
    bool registered;
  };
  std::vector<ordinary_block> ordinary_;
};

// Throws std::runtime_error unless a call of the test itself has succeeded.
void require_ok(sg_status status, const char *what);

}  // namespace sg_test::random_tests
