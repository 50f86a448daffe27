// SPDX-License-Identifier: Apache-2.0
// streamgemm: the library on the command line. docs/cli.md describes it.
#include <cstdio>
#include <exception>
#include <filesystem>
#include <iostream>
#include <new>

#include "library.hpp"
#include "outcome.hpp"
#include "style.hpp"
#include "usage.hpp"
#include "verbs.hpp"

namespace sg::cli {

void print_json(const json &value) {
  const std::string text = value.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
  std::fwrite(text.data(), 1, text.size(), stdout);
}

// What runs is recorded from the option on.
static trace_handle start_trace() {
  sg_trace *made = nullptr;
  check(sg_trace_start(nullptr, &made), "tracing");
  return trace_handle(made);
}

// The command line as one would type it again. Of an absolute path the last part remains: the rest says nothing
// elsewhere.
static std::string command_of(int argc, char **argv) {
  std::string all = "streamgemm";
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i];
    if (word.starts_with('/')) word = std::filesystem::path(word).filename();
    const bool plain = !word.empty() && word.find_first_of(" \t\n'\"\\$`&|;<>()*?[]#~!{}") == std::string::npos;
    all += plain ? " " + word : " '" + word + "'";
  }
  return all;
}

static exit_code run(int argc, char **argv) {
  CLI::App app{"Asynchronous matrix multiplication on the CPU and on GPUs, real and simulated."};
  app.name("streamgemm");
  app.set_version_flag("--version", sg_version_string());
  app.require_subcommand(1);
  app.fallthrough();  // so that --trace may follow the verb
  std::string trace_file;
  trace_handle trace;
  app.add_option("--trace", trace_file,
                 "Record what runs, and write it here: .json, .pftrace, .html, .svg or .txt (docs/tracing.md)")
      ->check([](const std::string &name) {
        const bool is_fit = sg_trace_check_path(name.c_str(), SG_TRACE_FORMAT_AUTO) == SG_STATUS_OK;
        return is_fit ? std::string() : std::string(sg_last_error_message());
      })
      ->each([&](const std::string &) { trace = start_trace(); });
  app.footer(
      "Exit codes: 0 done; 1 the work failed; 2 wrong usage or input; 3 no such device; 4 a result is wrong;\nrun: "
      "that of its command.\n"
      "SG_LOG=info shows what the library chooses and why: docs/logging.md.");
  add_info(app);
  add_gemm(app);
  add_plan(app);
  add_bench(app, command_of(argc, argv));
  add_report(app);
  add_explain(app);
  add_calibrate(app);
  add_demo(app);
  add_run(app);
  add_manual(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &stop) {
    if (stop.get_exit_code() != 0) throw failure(exit_code::usage, complaint_of(app, stop));
    app.exit(stop);  // prints what --help and --version ask for
  }
  if (trace) check(sg_trace_write(trace.get(), trace_file.c_str(), SG_TRACE_FORMAT_AUTO), "writing the trace");
  return exit_code::ok;
}

static void complain(const char *what) { std::fprintf(stderr, "%s %s\n", alarm("streamgemm:").c_str(), what); }

// All output, by C's or C++'s streams, has been written: checked last before exiting with success.
static void require_written() {
  std::cout.flush();
  const bool refused = std::fflush(stdout) != 0;
  if (refused || std::ferror(stdout) || !std::cout) throw failure(exit_code::failed, "cannot write to stdout");
}

}  // namespace sg::cli

int main(int argc, char **argv) {
  using namespace sg::cli;
  try {
    const exit_code code = run(argc, argv);
    if (code == exit_code::ok) require_written();
    return static_cast<int>(code);
  } catch (const command_exit &stop) {
    return stop.code;
  } catch (const failure &stop) {
    complain(stop.what());
    return static_cast<int>(stop.code());
  } catch (const std::bad_alloc &) {
    complain("out of memory");
  } catch (const std::exception &stop) {
    complain(stop.what());
  }
  return static_cast<int>(exit_code::failed);
}
