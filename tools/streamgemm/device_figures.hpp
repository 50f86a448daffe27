// SPDX-License-Identifier: Apache-2.0
// The model of a device with measured figures.
#pragma once

#include <functional>
#include <string>

#include "format.hpp"

namespace sg::cli {

// Receives the name of each measurement.
using telling = std::function<void(const std::string &)>;

struct device_figures {
  std::string device;
  json model;   // with the measured figures
  json copies;  // measured and predicted times by size
  json gemms;
};

// Measures a device, which is named as contexts name it. `quick`: copies, but no GEMMs.
device_figures figures_of(const std::string &device, bool quick, const telling &tell);
void print_figures(const device_figures &figures);

std::string without_options(const std::string &device);
// A simulated device's arithmetic would be this machine's, and is not needed.
std::string timing_only(const std::string &device);
// Throws failure unless the figure is positive and finite.
double positive(double figure, const std::string &what);

// Sets the rates of a row of staging. `measure.staging(packing, unpacking)`: bytes per second of so many threads.
template <class Probe>
void measure_staging_row(json &row, Probe &measure) {
  const int workers = row["workers"];
  row["bytes_per_second"] = positive(measure.staging(workers, 0), "staging");
  row["unpack_bytes_per_second"] = positive(measure.staging(0, workers), "staging of results");
  if (workers > 1)
    row["both_ways_bytes_per_second"] =
        positive(measure.staging(workers - workers / 2, workers / 2), "staging both ways");
}
std::string staging_text(const json &row);

}  // namespace sg::cli
