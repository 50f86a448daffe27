// SPDX-License-Identifier: Apache-2.0
// main() of a program that contains the tests of several source files.
// usage: PROGRAM [TOPIC...] [GoogleTest's options]     the topic "graph" is every test in graph_test.cpp; none: all
// tests. With SG_TEST_IN_SOAK=1 the program is skipped (77) unless SG_SOAK=1.
#include <fnmatch.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

std::string topic_of(const testing::TestInfo &test) {
  std::string name = test.file();
  name = name.substr(name.rfind('/') + 1);
  return name.substr(0, name.rfind("_test.cpp"));
}

// GoogleTest's filter: patterns separated by colons; those behind the first '-' exclude.
class filter {
 public:
  explicit filter(const std::string &text) {
    const std::size_t minus = text.find('-');
    included_ = patterns(text.substr(0, minus));
    if (minus != std::string::npos) excluded_ = patterns(text.substr(minus + 1));
    if (included_.empty()) included_.push_back("*");
  }
  bool matches(const std::string &name) const { return any(included_, name) && !any(excluded_, name); }

 private:
  static std::vector<std::string> patterns(const std::string &text) {
    std::vector<std::string> result;
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end = std::min(text.find(':', begin), text.size());
      if (end > begin) result.push_back(text.substr(begin, end - begin));
      begin = end + 1;
    }
    return result;
  }
  static bool any(const std::vector<std::string> &patterns, const std::string &name) {
    return std::any_of(patterns.begin(), patterns.end(),
                       [&](const std::string &x) { return fnmatch(x.c_str(), name.c_str(), 0) == 0; });
  }

  std::vector<std::string> included_, excluded_;
};

// Restricts the filter to the tests of these topics; false, with a message, for a topic without tests.
bool select(const std::vector<std::string> &topics) {
  const filter given(testing::GTEST_FLAG(filter));
  const testing::UnitTest &all = *testing::UnitTest::GetInstance();
  std::vector<std::string> known;
  std::string selected;
  for (int i = 0; i < all.total_test_suite_count(); ++i) {
    const testing::TestSuite &suite = *all.GetTestSuite(i);
    for (int j = 0; j < suite.total_test_count(); ++j) {
      const testing::TestInfo &test = *suite.GetTestInfo(j);
      known.push_back(topic_of(test));
      if (std::find(topics.begin(), topics.end(), known.back()) == topics.end()) continue;
      const std::string name = std::string(test.test_suite_name()) + '.' + test.name();
      if (given.matches(name)) selected += name + ':';
    }
  }
  for (const std::string &topic : topics)
    if (std::find(known.begin(), known.end(), topic) == known.end()) {
      std::fprintf(stderr, "no tests of the topic '%s' are in this program\n", topic.c_str());
      return false;
    }
  if (selected.empty()) {
    std::fprintf(stderr, "no test of these topics matches the filter '%s'\n", testing::GTEST_FLAG(filter).c_str());
    return false;
  }
  testing::GTEST_FLAG(filter) = selected;
  return true;
}

bool is_set(const char *name) {
  const char *const given = std::getenv(name);
  return given && *given == '1';
}

}  // namespace

int main(int argc, char **argv) {
  if (is_set("SG_TEST_IN_SOAK") && !is_set("SG_SOAK")) return 77;
  testing::InitGoogleTest(&argc, argv);
  const std::vector<std::string> topics(argv + 1, argv + argc);
  if (!topics.empty() && !select(topics)) return 2;
  return RUN_ALL_TESTS();
}
