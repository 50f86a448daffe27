// SPDX-License-Identifier: Apache-2.0
// Shared ownership inside the library: an intrusive count and the pointer that keeps it.
#pragma once

#include <atomic>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace sg {

enum class object_type : std::uint8_t { context = 1, stream, event, buffer, job, queue, plan, graph, trace };

// Whatever a handle can stand for. Born with one reference.
class object {
 public:
  explicit object(object_type type) noexcept : type_(type) {}
  object(const object &) = delete;
  object &operator=(const object &) = delete;

  object_type type() const noexcept { return type_; }
  void add_ref() noexcept { refs_.fetch_add(1, std::memory_order_relaxed); }
  // The same while no other thread knows the object: no atomic addition is needed.
  void add_ref_unshared() noexcept {
    refs_.store(refs_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  // The last one needs no subtraction: no other thread has a reference or can get one.
  void drop_ref() noexcept {
    if (has_one_ref() || refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) last_ref_dropped();
  }
  // Of an object whose one reference is the caller's: it has no other owner, and will have none but by the caller.
  bool has_one_ref() const noexcept { return refs_.load(std::memory_order_acquire) == 1; }
  // Drops several that are not the last.
  void drop_refs(std::int64_t count) noexcept { refs_.fetch_sub(count, std::memory_order_release); }

 protected:
  virtual ~object() = default;
  virtual void last_ref_dropped() noexcept { delete this; }
  void revive() noexcept { refs_.store(1, std::memory_order_relaxed); }  // of pooled objects

 private:
  std::atomic<std::int64_t> refs_{1};
  const object_type type_;
};

// Keeps one reference.
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

  static ref adopt(T *object) noexcept {  // takes over a reference that exists
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
