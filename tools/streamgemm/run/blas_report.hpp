// SPDX-License-Identifier: Apache-2.0
// Reports of the drop-in BLAS, one of each process, merged and shown.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace sg::cli {

// The reports in a folder; throws failure if one is no report.
std::vector<nlohmann::ordered_json> blas_reports_in(const std::filesystem::path &folder);

// "processes", "cpu_blas", "devices", "rows" (those of the same routine and shape class added), "ranks", "advice".
nlohmann::ordered_json merged_blas_reports(const std::string &command,
                                           const std::vector<nlohmann::ordered_json> &reports);

// The merged report as lines of text.
std::string text_of_blas_report(const nlohmann::ordered_json &merged);

}  // namespace sg::cli
