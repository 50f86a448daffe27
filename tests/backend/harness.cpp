// SPDX-License-Identifier: Apache-2.0
#include "harness.hpp"

#include <cctype>
#include <cstdlib>
#include <sstream>

namespace sg::test {

std::vector<std::string> devices_under_test() {
  const char *chosen = std::getenv("SG_TEST_DEVICES");
  std::istringstream list(chosen == nullptr ? "cpu,sim:h200" : chosen);
  std::vector<std::string> names;
  for (std::string name; std::getline(list, name, ',');) names.push_back(name);
  return names;
}

std::string printable(const testing::TestParamInfo<std::string> &info) {
  std::string name = info.param;
  for (char &letter : name)
    if (!std::isalnum(static_cast<unsigned char>(letter))) letter = '_';
  return name;
}

}  // namespace sg::test
