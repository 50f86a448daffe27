// SPDX-License-Identifier: Apache-2.0
// The C++ header in a program that is compiled without exceptions: what fails returns its status and its text.
#define STREAMGEMM_NO_EXCEPTIONS
#include <cstdio>
#include <streamgemm/streamgemm.hpp>

namespace sg = streamgemm;

#define REQUIRE(what)                                                              \
  do {                                                                             \
    if (!(what)) return std::fprintf(stderr, "line %d: %s\n", __LINE__, #what), 1; \
  } while (false)

int main(int argc, char **argv) {
  sg::result<sg::context> opened = sg::context::create("no such device");
  REQUIRE(!opened && opened.status() != SG_STATUS_OK && !opened.message().empty());
  opened = sg::context::create(argc > 1 ? argv[1] : "cpu");
  REQUIRE(opened);
  const sg::context context = std::move(opened).value();
  std::vector<float> a(6, 2), b(6, 3), c(4);
  sg::result<sg::job> job = context.gemm_async(sg::matrix(a, 2, 3), sg::matrix(b, 3, 2), sg::matrix(c, 2, 2));
  REQUIRE(job);
  REQUIRE(job.value().wait());
  REQUIRE(c[3] == 18);
  REQUIRE(job.value().wait_for(sg::forever).value());
  const sg::result<void> refused = context.gemm(sg::matrix(a, 3, 2), sg::matrix(b, 3, 2), sg::matrix(c, 2, 2));
  REQUIRE(!refused && refused.status() == SG_STATUS_INVALID_ARGUMENT &&
          refused.message().find("desc->") != std::string::npos);
  REQUIRE(context.device_count().value() == 1);
  return 0;
}
