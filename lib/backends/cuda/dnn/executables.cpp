// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/dnn/executables.hpp"

#include <unistd.h>

#include <cstdio>
#include <new>
#include <utility>

#include "backends/cuda/driver/failure.hpp"
#include "backends/cuda/driver/log.hpp"
#include "backends/cuda/driver/process_end.hpp"
#include "backends/cuda/gpu/gpu.hpp"

namespace sg::cuda::dnn {
namespace {

constexpr std::size_t most_shapes = 4096;

// Resident bytes of the process; 0: unknown.
double resident_bytes() noexcept {
  long pages = 0, resident = 0;
  std::FILE *const file = std::fopen("/proc/self/statm", "re");
  if (file == nullptr) return 0;
  const bool is_read = std::fscanf(file, "%ld %ld", &pages, &resident) == 2;
  std::fclose(file);
  return is_read ? double(resident) * double(sysconf(_SC_PAGESIZE)) : 0;
}

// What the start of cuDNN on a device costs: it loads its libraries then.
class loading_cost {
 public:
  loading_cost() noexcept : began_(now_ns()), host_(resident_bytes()), device_(free_bytes()) {}
  void log(int ordinal) const noexcept {
    constexpr double mib = 1 << 20;
    log_loading("cuDNN %zu started on cuda:%d in %.0f ms, with %.0f MiB of host and %.0f MiB of device memory",
                library().version(), ordinal, double(now_ns() - began_) * 1e-6, (resident_bytes() - host_) / mib,
                (device_ - free_bytes()) / mib);
  }

 private:
  static double free_bytes() noexcept {
    std::size_t free = 0, total = 0;
    return cudaMemGetInfo(&free, &total) == cudaSuccess ? double(free) : 0;
  }
  std::int64_t began_;
  double host_, device_;
};

}  // namespace

sg_status failure(status of, const char *what) noexcept {
  return fail(is_out_of_memory(of) ? SG_STATUS_OUT_OF_MEMORY : SG_STATUS_BACKEND_FAILURE, "%s: %s", what,
              library().text(of));
}

const executable *executable_cache::find(gpu &owner, const shape &wanted, const maker &make) noexcept {
  try {
    const std::lock_guard lock(lock_);
    const auto known = known_.find(wanted);
    if (known != known_.end()) return known->second.get();
    if (known_.size() == most_shapes) return nullptr;
    if (handle_ == nullptr) {
      const loading_cost before;
      const status outcome = library().create(&handle_);
      if (outcome != 0) {
        handle_ = nullptr;
        log_fallback("cuDNN does not start on cuda:%d, other kernels are used: %s", owner.ordinal(),
                     library().text(outcome));
        return nullptr;
      }
      process_end::watch_again();
      before.log(owner.ordinal());
    }
    const executable *const made = known_.emplace(wanted, make(handle_)).first->second.get();
    if (made != nullptr) process_end::watch_again();  // cuDNN has loaded the libraries of its kernels
    return made;
  } catch (const std::bad_alloc &) {
    return nullptr;
  }
}

void executable_cache::release() noexcept {
  known_.clear();
  if (handle_ != nullptr) library().destroy(handle_);
  handle_ = nullptr;
}

// They stay reachable, and are never destroyed. The caller serializes process exit.
void executable_cache::abandon() noexcept {
  using kept_map = std::multimap<shape, std::unique_ptr<const executable>>;
  alignas(kept_map) static unsigned char place[sizeof(kept_map)];
  static kept_map *const kept = new (place) kept_map;
  kept->merge(known_);
}

sg_status stream_resources::handle_of(cudaStream_t native, handle &out) noexcept {
  if (handle_ == nullptr) {
    handle fresh = nullptr;
    if (const status outcome = library().create(&fresh)) return failure(outcome, "cuDNN does not start");
    if (const status outcome = library().set_stream(fresh, native)) {
      library().destroy(fresh);
      return failure(outcome, "cuDNN does not start");
    }
    handle_ = fresh;
  }
  out = handle_;
  return SG_STATUS_OK;
}

void stream_resources::free() noexcept {
  if (handle_ != nullptr) library().destroy(handle_);
}

}  // namespace sg::cuda::dnn
