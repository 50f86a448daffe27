// SPDX-License-Identifier: Apache-2.0
// The state of the emulated GPU: memory, events, graphs, streams, and injected faults.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <set>
#include <shared_mutex>
#include <thread>
#include <utility>
#include <vector>

#include "faults.h"

namespace emulated {

constexpr std::size_t memory_bytes = std::size_t{8} << 30;
constexpr std::align_val_t alignment{256};

inline std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// One recording of an event.
class moment {
 public:
  void happen() {
    {
      const std::lock_guard lock(mutex_);
      ns_ = now_ns();
    }
    changed_.notify_all();
  }
  std::int64_t ns() {  // 0: not completed
    const std::lock_guard lock(mutex_);
    return ns_;
  }
  // False: it is to wait no longer.
  bool wait(const std::function<bool()> &waits) {
    std::unique_lock lock(mutex_);
    while (ns_ == 0 && waits()) changed_.wait_for(lock, std::chrono::milliseconds(2));
    return ns_ != 0;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::int64_t ns_ = 0;
};

struct freeing {
  void operator()(void *memory) const { ::operator delete(memory, alignment); }
};
using block = std::unique_ptr<void, freeing>;

inline block new_block(std::size_t bytes) {
  block made(::operator new(bytes, alignment, std::nothrow));
  if (made) std::memset(made.get(), 0xa5, std::min<std::size_t>(bytes, 4096));  // new memory must not read as zeros
  return made;
}

// Nodes of a graph and their predecessors. They run in another order than they were captured in, where their
// dependencies allow it.
struct node_list {
  struct node {
    std::function<void()> work;
    std::set<std::size_t> after;
  };
  std::vector<node> nodes;
  unsigned devices = 0;  // bit i: device i has nodes

  bool leads_to(std::size_t from, const std::set<std::size_t> &ends) const {
    std::set<std::size_t> reached = ends;
    for (std::size_t i = nodes.size(); i-- > 0;)
      if (reached.count(i)) reached.insert(nodes[i].after.begin(), nodes[i].after.end());
    return reached.count(from) != 0;
  }
  // A different root first each time, then always the latest node that is ready.
  void run(unsigned turn) const {
    std::vector<std::size_t> sources;
    for (std::size_t i = 0; i < nodes.size(); ++i)
      if (nodes[i].after.empty()) sources.push_back(i);
    std::vector<bool> over(nodes.size());
    const auto may_run = [&](std::size_t i) {
      const auto &after = nodes[i].after;
      return !over[i] && std::all_of(after.begin(), after.end(), [&](std::size_t x) { return over[x]; });
    };
    for (std::size_t left = nodes.size(); left > 0; --left) {
      std::size_t next = left == nodes.size() ? sources[turn % sources.size()] : nodes.size() - 1;
      while (!may_run(next)) --next;
      nodes[next].work();
      over[next] = true;
    }
  }
};

// A capture in progress: its graph, and the streams that have joined it.
struct capture {
  bool over = false;
  std::shared_ptr<node_list> into = std::make_shared<node_list>();
  std::vector<CUstream_st *> streams;
};

// Injected faults. Counting orders nothing, so that the sanitizers see the plugin's own ordering.
struct breakage {
  std::atomic<emulated_fault> how{EMULATED_NONE};
  std::atomic<long> left{0}, more{0};
  std::atomic<bool> happened{false};
  std::atomic<bool> leaves_stuck{false};  // events of a lost device never happen
  std::atomic<unsigned> lost{0};          // bit i: device i is
  std::atomic<cudaError_t> how_lost{cudaErrorIllegalAddress}, error{cudaSuccess};  // of faults; of the lost device
  std::atomic<int> device{0};  // generation of the device: commands enqueued to a lost one never run
  std::shared_mutex running;   // shared by running commands; exclusive to lose the device

  void lose(int which, cudaError_t by) {
    const std::unique_lock none_runs(running);
    lose_within_command(which, by);
  }
  void lose_within_command(int which, cudaError_t by) {
    error.store(by);
    lost.fetch_or(1u << which);
  }
  // Whether what happens on the device happens for others too.
  bool is_mute(int which) const { return leaves_stuck.load() && is_lost(which); }
  bool is_lost(int which) const { return (lost.load() >> which & 1) != 0; }

  bool strikes(emulated_fault kind) {
    if (how.load(std::memory_order_relaxed) != kind) return false;
    const long at = left.fetch_sub(1, std::memory_order_relaxed);
    if (at > 1 || at < 1 - more.load(std::memory_order_relaxed)) return false;
    happened.store(true, std::memory_order_relaxed);
    return true;
  }
};
inline breakage g_breakage;

// Never destroyed, like all that is shared here: threads outlive exit().
struct object_list {
  std::mutex mutex;
  std::set<void *> all;
  std::set<CUstream_st *> streams;  // streams of the current device

  static object_list &only() {
    static object_list *const made = new object_list;
    return *made;
  }
};

// Allocations of the device and pinned ranges of the host, by their addresses.
struct ranges {
  struct range {
    std::size_t bytes;
    cudaMemoryType type;
    int device = 0;
    bool of_pool = false;
  };
  std::mutex mutex;
  std::map<std::uintptr_t, range> all;
  std::size_t device_bytes = 0;

  static ranges &only() {
    static ranges *const made = new ranges;
    return *made;
  }
  // With the lock held: the range that contains the address, or end().
  std::map<std::uintptr_t, range>::iterator at(const void *address) {
    const auto wanted = reinterpret_cast<std::uintptr_t>(address);
    auto found = all.upper_bound(wanted);
    if (found == all.begin()) return all.end();
    --found;
    return wanted - found->first < found->second.bytes ? found : all.end();
  }
  bool add(const void *first, std::size_t bytes, cudaMemoryType type, int device = 0, bool of_pool = false) {
    const std::lock_guard lock(mutex);
    const auto begin = reinterpret_cast<std::uintptr_t>(first);
    if (begin + bytes < begin) return false;
    const auto next = all.lower_bound(begin);
    if (at(first) != all.end() || (next != all.end() && next->first < begin + bytes)) return false;
    if (type == cudaMemoryTypeDevice) {
      if (device_bytes + bytes > memory_bytes) return false;
      device_bytes += bytes;
    }
    all.emplace(begin, range{bytes, type, device, of_pool});
    return true;
  }
  // The state of a lost device is discarded.
  void replace_device() {
    const std::lock_guard lock(mutex);
    for (const auto &[address, x] : all)
      if (x.type == cudaMemoryTypeDevice) freeing()(reinterpret_cast<void *>(address));
    all.clear();
    device_bytes = 0;
  }
  bool remove(const void *first, cudaMemoryType type) {
    const std::lock_guard lock(mutex);
    const auto found = all.find(reinterpret_cast<std::uintptr_t>(first));
    if (found == all.end() || found->second.type != type) return false;
    if (type == cudaMemoryTypeDevice) device_bytes -= found->second.bytes;
    all.erase(found);
    return true;
  }
};

}  // namespace emulated

struct CUmemPoolHandle_st {
  int device = 0;
};

struct CUgraph_st {
  std::shared_ptr<const emulated::node_list> nodes;
};
struct CUgraphExec_st {
  std::shared_ptr<const emulated::node_list> nodes;
  unsigned launches = 0;  // by one thread at a time
};

struct CUevent_st {
  bool timed;
  int device;
  std::mutex mutex;
  std::shared_ptr<emulated::moment> latest;  // nullptr: never recorded
  std::shared_ptr<emulated::capture> captured_in;
  std::set<std::size_t> captured_after;
};

struct CUstream_st {
  std::shared_ptr<emulated::capture> captured_in;
  std::set<std::size_t> tails;  // in the capture: predecessors of the next command
  bool is_origin = false;
  CUgreenCtx within = nullptr;
  int device = 0;

  CUstream_st() : thread_([this] { work(); }) {}
  ~CUstream_st() { stop(); }

  void stop() {
    {
      const std::lock_guard lock(mutex_);
      closing_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
  }

  void put(std::function<void()> command) {
    {
      std::unique_lock lock(mutex_);
      if (closing_) {  // its device was lost
        lock.unlock();
        return command();
      }
      commands_.push_back(std::move(command));
      ++put_;
    }
    changed_.notify_all();
  }
  void synchronize() {
    std::unique_lock lock(mutex_);
    const auto all = put_;
    changed_.wait(lock, [&] { return done_ >= all; });
  }
  bool is_done() {
    const std::lock_guard lock(mutex_);
    return done_ >= put_;
  }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return closing_ || !commands_.empty(); });
      if (commands_.empty()) return;
      const std::function<void()> next = std::move(commands_.front());
      commands_.pop_front();
      lock.unlock();
      next();
      lock.lock();
      ++done_;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> commands_;
  std::uint64_t put_ = 0, done_ = 0;
  bool closing_ = false;
  std::thread thread_;
};
