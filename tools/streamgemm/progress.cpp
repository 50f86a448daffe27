// SPDX-License-Identifier: Apache-2.0
#include "progress.hpp"

#include <unistd.h>

#include <cstdio>

#include "format.hpp"

namespace sg::cli {

progress::progress(std::string label) : label_(std::move(label)), terminal_(isatty(STDERR_FILENO)) {}

progress::~progress() { clear(); }

void progress::clear() {
  if (shown_) std::fputs("\r\033[K", stderr);
  shown_ = false;
}

double progress::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

void progress::show(const std::string &text) {
  if (!terminal_ || seconds() < 0.5) return;
  std::fprintf(stderr, "\r\033[K%s %s", label_.c_str(), text.c_str());
  std::fflush(stderr);
  shown_ = true;
}

void progress::fraction(double done) { show(format_fixed(done * 100, 0) + "%"); }

void progress::doing(const std::string &what) { show(what); }

void progress::elapsed() { show(format_fixed(seconds(), 1) + " s"); }

}  // namespace sg::cli
