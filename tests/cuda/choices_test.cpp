// SPDX-License-Identifier: Apache-2.0
// The file that stores choices of kernels for later processes. It needs no GPU.
#include "backends/cuda/gemm/choices.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <thread>
#include <vector>

namespace sg::cuda {
namespace {

constexpr matmul_key key{.m = 4096,
                         .n = 16,
                         .k = 4096,
                         .lda = 4096,
                         .ldb = 4096,
                         .ldc = 4096,
                         .op_a = 0,
                         .op_b = 1,
                         .in_type = 1,
                         .out_type = 1,
                         .compute = 2,
                         .units = 0,
                         .align_a = 256,
                         .align_b = 256,
                         .align_c = 16,
                         .epilogue = 2};
constexpr kernel_choice choice{1, 2, 0xFFFFFFFFFFFFFFFFu, 4, 5, 6, 7, 0x123456789ABCDEFu};
constexpr char chip[] = "NVIDIA H200, cublasLt 130100";

class choices_file : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/sg-choices-XXXXXX";
    ASSERT_NE(nullptr, mkdtemp(name));
    folder_ = name;
    path_ = folder_ + "/cache/streamgemm/cublaslt-choices";
  }
  void TearDown() override {
    for (const char *name : {"/cache/streamgemm/cublaslt-choices", "/cache/streamgemm", "/cache", ""})
      remove((folder_ + name).c_str());
  }
  std::string text() const {
    std::ostringstream all;
    all << std::ifstream(path_).rdbuf();
    return all.str();
  }
  void rewrite(const std::string &text) const { std::ofstream(path_) << text; }
  bool known(const char *where = chip) const { return choices(path_, where).find(key) == choice; }

  std::string folder_, path_;
};

TEST_F(choices_file, outlives_its_process) {
  choices(path_, chip).keep(key, choice);
  EXPECT_TRUE(known());
  struct stat status;
  ASSERT_EQ(0, stat(path_.c_str(), &status));
  EXPECT_EQ(0600u, status.st_mode & 0777);
}

TEST_F(choices_file, is_of_one_chip_and_version) {
  choices(path_, chip).keep(key, choice);
  EXPECT_FALSE(known("NVIDIA H200, cublasLt 130101"));
  EXPECT_FALSE(known("NVIDIA A100, cublasLt 130100"));
  choices(path_, "another").keep(key, {9});
  EXPECT_TRUE(known());
}

TEST_F(choices_file, another_shape_is_another_choice) {
  choices(path_, chip).keep(key, choice);
  for (std::size_t i = 0; i < matmul_key::fields; ++i) {
    auto fields = key.all();
    ++fields[i];
    EXPECT_FALSE(choices(path_, chip).find(matmul_key::of(fields))) << "field " << i;
  }
}

TEST_F(choices_file, the_latest_choice_counts) {
  choices all(path_, chip);
  all.keep(key, {1});
  all.keep(key, choice);
  EXPECT_EQ(choice, all.find(key));
  EXPECT_TRUE(known());
}

TEST_F(choices_file, unreadable_lines_are_skipped) {
  choices(path_, chip).keep(key, choice);
  const std::string whole = text(), first = whole.substr(0, whole.find('\n') + 1), line = whole.substr(first.size());
  rewrite(first + "\n\t\nnonsense\n" + chip + "\t1 2 3\n" + line + std::string(3, '\0') + "\n");
  EXPECT_TRUE(known());
  rewrite(first + line.substr(0, line.size() - 1));  // truncated: its last number may be truncated too
  EXPECT_FALSE(known());
  rewrite(first + line.substr(0, line.size() - 1) + " 9\n");
  EXPECT_FALSE(known());
  rewrite(line);
  EXPECT_FALSE(known());
  rewrite("");
  EXPECT_FALSE(known());
}

TEST_F(choices_file, writable_by_others_is_not_read) {
  choices(path_, chip).keep(key, choice);
  ASSERT_EQ(0, chmod(path_.c_str(), 0620));
  EXPECT_FALSE(known());
  const std::string before = text();
  choices(path_, chip).keep(key, {1});
  EXPECT_EQ(before, text());
}

TEST_F(choices_file, symbolic_link_is_not_followed) {
  choices(path_, chip).keep(key, choice);
  const std::string elsewhere = folder_ + "/elsewhere";
  ASSERT_EQ(0, rename(path_.c_str(), elsewhere.c_str()));
  ASSERT_EQ(0, symlink(elsewhere.c_str(), path_.c_str()));
  EXPECT_FALSE(known());
  remove(elsewhere.c_str());
}

TEST_F(choices_file, without_a_file_choices_stay_in_memory) {
  for (const std::string &path : {std::string(), std::string("/proc/none/streamgemm/choices")}) {
    choices all(path, chip);
    all.keep(key, choice);
    EXPECT_EQ(choice, all.find(key));
  }
}

TEST_F(choices_file, many_at_once) {
  constexpr int threads = 4, each = 50;
  std::vector<std::thread> writers;
  for (int t = 0; t < threads; ++t)
    writers.emplace_back([&, t] {
      choices own(path_, chip);
      for (int i = 0; i < each; ++i) {
        matmul_key its = key;
        its.m = t;
        its.n = i;
        own.keep(its, choice);
      }
    });
  for (std::thread &x : writers) x.join();
  const choices all(path_, chip);
  for (int t = 0; t < threads; ++t)
    for (int i = 0; i < each; ++i) {
      matmul_key its = key;
      its.m = t;
      its.n = i;
      EXPECT_EQ(choice, all.find(its)) << t << ", " << i;
    }
}

TEST(choices_place, is_in_the_users_cache) {
  setenv("XDG_CACHE_HOME", "/somewhere", 1);
  EXPECT_EQ("/somewhere/streamgemm/cublaslt-choices", choices_path());
  setenv("XDG_CACHE_HOME", "relative", 1);
  setenv("HOME", "/home/someone", 1);
  EXPECT_EQ("/home/someone/.cache/streamgemm/cublaslt-choices", choices_path());
  unsetenv("XDG_CACHE_HOME");
  unsetenv("HOME");
  EXPECT_EQ("", choices_path());
}

}  // namespace
}  // namespace sg::cuda
