// SPDX-License-Identifier: Apache-2.0
// Shared by the planner's searches: the conditions of a choice, and the best schedule so far.
#pragma once

#include <optional>

#include "base/log.hpp"
#include "model/device_model.hpp"
#include "plan/form/plan_request.hpp"
#include "plan/gemm/resident/problem.hpp"
#include "plan/schedule/schedule.hpp"
#include "plan/schedule/simulate.hpp"

namespace sg {

// The caller's name of the dimension to split.
inline const char *name_of_split(const plan_request &request) {
  switch (request.split) {
    case split_kind::m: return request.by_rows ? "n" : "m";
    case split_kind::n: return request.by_rows ? "m" : "n";
    case split_kind::k: return "k";
    case split_kind::batch: return "batch";
    case split_kind::automatic: return "auto";
    case split_kind::none: return "none";
  }
  return "";
}

// Keeps the fastest of the offered schedules; of equally fast ones, the first.
class best_schedule {
 public:
  explicit best_schedule(const device_model &model) : model_(model) {}

  // A later schedule must be faster by this much to be worth its complexity.
  static constexpr double usual_margin = 1e-3;
  void require_margin(double margin) noexcept { margin_ = margin; }

  // Returns the predicted seconds of the offered schedule.
  double offer(schedule &&s) {
    s.predicted_seconds = simulate(s, model_).seconds;
    const double seconds = s.predicted_seconds;
    const bool better = !best_ || seconds < best_->predicted_seconds * (1 - margin_);
    if (logs(log_level::debug, log_area::plan))
      log_message(log_level::debug, log_area::plan, "candidate %s: predicted %.2f us, %zu commands, %s",
                  s.strategy.c_str(), seconds * 1e6, s.commands.size(),
                  !best_   ? "the first of its search"
                  : better ? "faster than those before"
                           : "not faster");
    if (better) best_ = std::move(s);
    return seconds;
  }

  bool empty() const noexcept { return !best_; }
  double seconds() const noexcept { return best_->predicted_seconds; }
  const schedule &shown() const noexcept { return *best_; }
  schedule take() { return std::move(*best_); }

 private:
  const device_model &model_;
  double margin_ = usual_margin;
  std::optional<schedule> best_;
};

}  // namespace sg
