// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/streams/partition.hpp"

#include <array>
#include <mutex>
#include <new>

#include "backends/cuda/driver/current.hpp"
#include "backends/cuda/driver/failure.hpp"
#include "backends/cuda/gpu/gpu.hpp"

namespace sg::cuda {
namespace {

// The groups held by partitions of the process, for each device. The driver's split of a device is always the same.
class group_table {
 public:
  // Acquires free groups, at most `most`.
  std::uint64_t acquire(int ordinal, unsigned groups, unsigned most) noexcept {
    const std::lock_guard lock(lock_);
    std::uint64_t *const held = held_by(ordinal);
    std::uint64_t taken = 0;
    for (unsigned i = 0; held != nullptr && i < groups && most > 0; ++i) {
      const std::uint64_t group = std::uint64_t{1} << i;
      if ((*held & group) != 0) continue;
      taken |= group;
      --most;
    }
    if (held != nullptr) *held |= taken;
    return taken;
  }
  void release(int ordinal, std::uint64_t groups) noexcept {
    if (groups == 0) return;
    const std::lock_guard lock(lock_);
    *held_by(ordinal) &= ~groups;
  }

 private:
  std::uint64_t *held_by(int ordinal) noexcept {
    return static_cast<std::size_t>(ordinal) < held_.size() ? &held_[static_cast<std::size_t>(ordinal)] : nullptr;
  }

  std::mutex lock_;
  std::array<std::uint64_t, 64> held_{};
};
group_table g_groups;

sg_status fail_as(CUresult error, const char *what) noexcept {
  if (error == CUDA_SUCCESS) return SG_STATUS_OK;
  const sg_status status = error == CUDA_ERROR_OUT_OF_MEMORY ? SG_STATUS_OUT_OF_MEMORY : SG_STATUS_UNSUPPORTED;
  return fail(status, "%s: error %d of the NVIDIA driver", what, static_cast<int>(error));
}

}  // namespace

sg_status partition::create(gpu &owner, std::int32_t most, partition **out) noexcept {
  *out = nullptr;
  auto *fresh = new (std::nothrow) partition(owner);
  if (fresh == nullptr) return fail(SG_STATUS_OUT_OF_MEMORY, "no memory for a partition");
  const sg_status status = fresh->start(most);
  if (status == SG_STATUS_OK)
    *out = fresh;
  else
    delete fresh;
  return status;
}

sg_status partition::start(std::int32_t most) noexcept {
  const partition_functions *const call = partitions();
  if (call == nullptr) return fail(SG_STATUS_UNSUPPORTED, "the NVIDIA driver has no green contexts");
  CUdevResource all{}, rest{};
  if (const sg_status status =
          fail_as(call->resource(owner_.driver_device(), &all, CU_DEV_RESOURCE_TYPE_SM), "asking for multiprocessors"))
    return status;
  // The smallest groups in which the blocks of a cluster fit; the remainder does not guarantee that and is not used.
  constexpr unsigned most_groups = 64;
  std::array<CUdevResource, most_groups> groups;
  unsigned count = most_groups;
  if (const sg_status status = fail_as(call->split(groups.data(), &count, &all, &rest, 0, all.sm.minSmPartitionSize),
                                       "splitting multiprocessors"))
    return status;
  const unsigned size = count > 0 ? groups[0].sm.smCount : 0;
  if (size == 0 || static_cast<unsigned>(most) < size)
    return fail(SG_STATUS_UNSUPPORTED, "the GPU sets %u multiprocessors aside at least", size);
  groups_ = g_groups.acquire(owner_.ordinal(), count, static_cast<unsigned>(most) / size);
  std::array<CUdevResource, most_groups> held;
  unsigned held_count = 0;
  for (unsigned i = 0; i < count; ++i)
    if ((groups_ >> i & 1) != 0) held[held_count++] = groups[i];
  if (held_count == 0) return fail(SG_STATUS_UNSUPPORTED, "all groups of multiprocessors are already reserved");
  units_ = static_cast<std::int32_t>(held_count * size);
  CUdevResourceDesc text = nullptr;
  if (const sg_status status = fail_as(call->describe(&text, held.data(), held_count), "choosing multiprocessors"))
    return status;
  return fail_as(call->create(&context_, text, owner_.driver_device(), CU_GREEN_CTX_DEFAULT_STREAM),
                 "setting multiprocessors aside");
}

partition::~partition() {
  if (context_ != nullptr && owner_.usable() == SG_STATUS_OK) partitions()->destroy(context_);
  g_groups.release(owner_.ordinal(), groups_);
}

sg_status partition::create_stream(int priority, cudaStream_t *out) noexcept {
  return fail_as(partitions()->create_stream(out, context_, CU_STREAM_NON_BLOCKING, priority), "creating a stream");
}

}  // namespace sg::cuda
