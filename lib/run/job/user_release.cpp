// SPDX-License-Identifier: Apache-2.0
#include "run/job/user_release.hpp"

#include "run/job/job_home.hpp"

namespace sg {

std::shared_ptr<user_release> user_release::make(job_home &home, void (*function)(void *user), void *user) {
  if (!function) return nullptr;
  auto request = std::make_unique<callback_request>();
  request->run = [](handle_bits, sg_status, void *what, void *fn) { reinterpret_cast<void (*)(void *)>(fn)(what); };
  request->fn = reinterpret_cast<void *>(function);
  request->user = user;
  request->home = ref<job_home>::share(&home);
  return std::shared_ptr<user_release>(new user_release(std::move(request)));
}

user_release::~user_release() {
  if (!accepted_) return;
  const auto home = request_->home;  // the callback may release the request, and with it the context, meanwhile
  home->post_callback(request_.release());
}

}  // namespace sg
