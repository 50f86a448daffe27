// SPDX-License-Identifier: Apache-2.0
#include "harness.hpp"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <sstream>

#include "base/error.hpp"

namespace sg::test {

namespace {

// Tells Meson that the tests were skipped if one of the devices is absent.
void skip_unless_all_open(const std::vector<std::string> &names) {
  for (const std::string &name : names) try {
      open_device(name.c_str());
    } catch (const error &e) {
      std::printf("skipped, %s: %s\n", name.c_str(), e.what());
      std::exit(77);
    }
}

}  // namespace

std::vector<std::string> devices_under_test() {
  const char *chosen = std::getenv("SG_TEST_DEVICES");
  std::istringstream list(chosen == nullptr ? "cpu,sim:h200" : chosen);
  std::vector<std::string> names;
  for (std::string name; std::getline(list, name, ',');) names.push_back(name);
  if (std::getenv("SG_TEST_SKIP_ABSENT") != nullptr) skip_unless_all_open(names);
  return names;
}

std::string printable(const testing::TestParamInfo<std::string> &info) {
  std::string name = info.param;
  for (char &letter : name)
    if (!std::isalnum(static_cast<unsigned char>(letter))) letter = '_';
  return name;
}

}  // namespace sg::test
