// SPDX-License-Identifier: Apache-2.0
// What is expected of a device, as jobs come and complete sooner or later than predicted.
#include "run/job/device_load.hpp"

#include <gtest/gtest.h>

namespace {

TEST(device_load, predictions_of_jobs_are_added) {
  sg::device_load load;
  EXPECT_EQ(load.end_ns(100), 100);
  load.add(100, 30);
  load.add(110, 20);
  EXPECT_EQ(load.end_ns(120), 150);
  EXPECT_EQ(load.end_ns(170), 170);  // they take longer
}

TEST(device_load, an_idle_device_owes_nothing) {
  sg::device_load load;
  load.add(100, 1000);
  load.add(100, 1000);
  load.remove();
  EXPECT_EQ(load.end_ns(200), 2100);
  load.remove();
  EXPECT_EQ(load.end_ns(200), 200);  // both were done sooner than predicted
  load.add(300, 5);
  EXPECT_EQ(load.end_ns(300), 305);
}

}  // namespace
