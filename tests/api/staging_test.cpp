// SPDX-License-Identifier: Apache-2.0
// Pageable memory whose pages arrive late: a host worker that waits for a page delays neither the link nor the other
// workers.
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "support/harness.hpp"

#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif

namespace sg_test {
namespace {

const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
constexpr int patience_ms = 20000;

// A gate (support/gate.h) is memory of its own; here only some parts of the memory have no pages until the test
// supplies them: a reader of those parts blocks.
class late_memory {
 public:
  late_memory(std::size_t bytes, double value)
      : bytes_(bytes),
        values_(bytes / sizeof(double), value),
        fd_(static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY))),
        data_(static_cast<char *>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    uffdio_api api{};
    api.api = UFFD_API;
    usable_ = fd_ >= 0 && data_ != MAP_FAILED && madvise(data_, bytes, MADV_NOHUGEPAGE) == 0 &&
              ioctl(fd_, UFFDIO_API, &api) == 0;
  }
  ~late_memory() {
    munmap(data_, bytes_);
    if (fd_ >= 0) close(fd_);
  }
  bool usable() const { return usable_; }
  const double *data() const { return reinterpret_cast<const double *>(data_); }
  std::size_t address_of(std::size_t offset) const { return reinterpret_cast<std::size_t>(data_) + offset; }

  bool make_late(std::size_t offset, std::size_t bytes) {
    uffdio_register range{};
    range.range = {address_of(offset), bytes};
    range.mode = UFFDIO_REGISTER_MODE_MISSING;
    return ioctl(fd_, UFFDIO_REGISTER, &range) == 0;
  }
  void fill(std::size_t offset, std::size_t bytes) { std::memcpy(data_ + offset, values_.data(), bytes); }
  // The offset that a reader is waiting for; none after a while: SIZE_MAX.
  std::size_t awaited() const {
    pollfd ready{fd_, POLLIN, 0};
    uffd_msg message{};
    if (poll(&ready, 1, patience_ms) != 1 || read(fd_, &message, sizeof message) != sizeof message) return SIZE_MAX;
    return static_cast<std::size_t>(message.arg.pagefault.address) / page * page - address_of(0);
  }
  bool give(std::size_t offset, std::size_t bytes) {
    for (std::size_t given = 0; given < bytes;) {
      uffdio_copy pages{};
      pages.dst = address_of(offset + given);
      pages.src = reinterpret_cast<std::size_t>(values_.data());
      pages.len = bytes - given;
      if (ioctl(fd_, UFFDIO_COPY, &pages) != 0 && errno != EAGAIN) return false;
      if (pages.copy > 0) given += static_cast<std::size_t>(pages.copy);
    }
    return true;
  }
  // Unblocks the reader, with zeros.
  void give_up() { close(std::exchange(fd_, -1)); }

 private:
  const std::size_t bytes_;
  const std::vector<double> values_;
  int fd_;
  char *const data_;
  bool usable_ = false;
};

// Two workers have six slots. One waits for A's first page all the while; the other reaches the last fifth of A only if
// the chunks between them release their slots before the first one does.
TEST(staging, a_blocked_worker_does_not_block_the_link) {
  constexpr std::int64_t m = 2048, n = 16, k = 1536;
  const std::size_t bytes = m * k * sizeof(double), last_fifth = bytes / 5 * 4 / page * page;
  late_memory a(bytes, 1);
  if (!a.usable()) GTEST_SKIP() << "userfaultfd is not available here";
  a.fill(page, last_fifth - page);
  ASSERT_TRUE(a.make_late(0, page));
  ASSERT_TRUE(a.make_late(last_fifth, bytes - last_fifth));

  sg_context_options options = SG_CONTEXT_OPTIONS_INIT;
  options.device = "sim:h200";
  options.staging_threads = 2;
  options.flags = SG_CONTEXT_CHECK_HAZARDS;
  context on;
  ASSERT_OK(sg_context_create(&options, on.out()));
  const std::vector<double> b(k * n, 2);
  std::vector<double> c(m * n, -1);
  const sg_gemm_desc wanted = make_gemm(a.data(), b.data(), c.data(), m, n, k);
  job done;
  ASSERT_OK(sg_gemm_async(on, &wanted, nullptr, done.out()));

  EXPECT_EQ(0u, a.awaited());
  const std::size_t later = a.awaited();
  EXPECT_NE(SIZE_MAX, later) << "the other worker waits for the first one";
  EXPECT_GE(later, last_fifth);
  const bool given = a.give(0, page) && a.give(last_fifth, bytes - last_fifth);
  EXPECT_TRUE(given);
  if (!given) a.give_up();
  ASSERT_OK(sg_job_wait(done, SG_FOREVER, nullptr));
  EXPECT_EQ(std::vector<double>(m * n, 2.0 * k), c);
}

}  // namespace
}  // namespace sg_test
