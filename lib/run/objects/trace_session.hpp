// SPDX-License-Identifier: Apache-2.0
// What an sg_trace stands for: a recording, on or ended, and its history.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>

#include "base/object.hpp"
#include "trace/history.hpp"
#include "trace/recording.hpp"

namespace sg {

// Any thread.
class trace_session final : public object {
 public:
  trace_session(std::uint64_t max_events, bool device_times);  // begins the recording. Throws sg::error.
  ~trace_session() override;

  void stop() noexcept;  // once
  // Of the recording, which is stopped. In the child of a fork it is empty.
  const trace::recording &recorded();
  const trace::history &seen();

 private:
  std::mutex lock_;
  bool stopped_ = false;
  std::shared_ptr<trace::recording> recording_;
  std::unique_ptr<const trace::history> history_;
};

}  // namespace sg
