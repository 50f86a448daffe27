// SPDX-License-Identifier: Apache-2.0
// Memory between two unreadable pages, so that an access outside it stops the program.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <new>

namespace sg_test {

enum class flush { to_end, to_start };  // the unreadable page that the memory touches

class guarded {
 public:
  guarded() = default;
  guarded(std::size_t bytes, flush where = flush::to_end) : bytes_(bytes) {
    const std::size_t page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t inner = (bytes + page - 1) / page * page;
    mapped_ = inner + 2 * page;
    void *base = mmap(nullptr, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED) throw std::bad_alloc();
    base_ = static_cast<std::uint8_t *>(base);
    if (inner && mprotect(base_ + page, inner, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
    data_ = base_ + page + (where == flush::to_end ? inner - bytes : 0);
  }
  guarded(guarded &&other) noexcept { swap(other); }
  guarded &operator=(guarded &&other) noexcept {
    swap(other);
    return *this;
  }
  ~guarded() {
    if (base_) munmap(base_, mapped_);
  }

  std::uint8_t *data() const noexcept { return data_; }
  std::size_t size() const noexcept { return bytes_; }

  // From now on no byte may be read or written.
  void forbid() { mprotect(base_, mapped_, PROT_NONE); }

 private:
  void swap(guarded &other) noexcept {
    std::swap(base_, other.base_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(mapped_, other.mapped_);
  }

  std::uint8_t *base_ = nullptr, *data_ = nullptr;
  std::size_t bytes_ = 0, mapped_ = 0;
};

}  // namespace sg_test
