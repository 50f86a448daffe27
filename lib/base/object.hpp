// SPDX-License-Identifier: Apache-2.0
// Shared ownership inside the library: an intrusive count and its smart pointer.
#pragma once

#include <atomic>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace sg {

enum class object_type : std::uint8_t { context = 1, stream, event, buffer, job, queue, plan, graph, trace, pipeline };

// With its article, as in "a context".
constexpr const char *name_of(object_type type) noexcept {
  constexpr const char *names[] = {"a context", "a stream", "an event", "a buffer", "a job",
                                   "a queue",   "a plan",   "a graph",  "a trace",  "a pipeline"};
  return names[static_cast<int>(type) - 1];
}

// Base of all objects that handles refer to. Constructed with one reference.
class object {
 public:
  explicit object(object_type type) noexcept : type_(type) {}
  object(const object &) = delete;
  object &operator=(const object &) = delete;

  object_type type() const noexcept { return type_; }
  void add_ref() noexcept { refs_.fetch_add(1, std::memory_order_relaxed); }
  // Adds a reference while no other thread knows the object: needs no atomic addition.
  void add_ref_unshared() noexcept {
    refs_.store(refs_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  // The last reference needs no atomic subtraction: no other thread has one or can get one.
  void drop_ref() noexcept {
    if (has_one_ref() || refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) last_ref_dropped();
  }
  // The caller's reference is the only one, and only the caller can add others.
  bool has_one_ref() const noexcept { return refs_.load(std::memory_order_acquire) == 1; }
  // Drops several references, not the last one.
  void drop_refs(std::int64_t count) noexcept { refs_.fetch_sub(count, std::memory_order_release); }

 protected:
  virtual ~object() = default;
  virtual void last_ref_dropped() noexcept { delete this; }
  void revive() noexcept { refs_.store(1, std::memory_order_relaxed); }  // for pooled objects

 private:
  std::atomic<std::int64_t> refs_{1};
  const object_type type_;
};

// Holds one reference.
template <class T>
class ref {
 public:
  ref() noexcept = default;
  ref(const ref &other) noexcept : object_(other.object_) {
    if (object_) object_->add_ref();
  }
  ref(ref &&other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  template <class U>
  requires std::is_convertible_v<U *, T *> ref(ref<U> other)
  noexcept : object_(other.release()) {}  // NOLINT: converts as pointers do
  ref &operator=(ref other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~ref() {
    if (object_) object_->drop_ref();
  }

  static ref adopt(T *object) noexcept {  // takes over an existing reference
    ref result;
    result.object_ = object;
    return result;
  }
  static ref share(T *object) noexcept {  // adds one
    if (object) object->add_ref();
    return adopt(object);
  }

  T *get() const noexcept { return object_; }
  T *operator->() const noexcept { return object_; }
  T &operator*() const noexcept { return *object_; }
  explicit operator bool() const noexcept { return object_ != nullptr; }
  T *release() noexcept { return std::exchange(object_, nullptr); }

 private:
  T *object_ = nullptr;
};

}  // namespace sg
