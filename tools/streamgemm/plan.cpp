// SPDX-License-Identifier: Apache-2.0
// streamgemm plan: the predicted cost of a GEMM on a device, without running it and without having the device.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "bench/measure.hpp"
#include "choices.hpp"
#include "library.hpp"
#include "placed.hpp"
#include "prediction.hpp"
#include "progress.hpp"
#include "ranks.hpp"
#include "verbs.hpp"

namespace sg::cli {

namespace {

struct plan_arguments {
  std::int64_t m = 0, n = 0, k = 0, batch = 1;
  sg_dtype dtype = SG_DTYPE_F32;
  sg_dtype output = {};  // 0: the default
  sg_compute compute = SG_COMPUTE_EXACT;
  sg_transpose op_a = SG_TRANSPOSE_N, op_b = SG_TRANSPOSE_N;
  sg_layout layout = SG_LAYOUT_ROW_MAJOR;
  sg_memory_kind from = SG_MEMORY_PINNED;
  context_request where;
  sg_plan_options options = SG_PLAN_OPTIONS_INIT;
  double beta = 0;
  std::string html;  // a file
  bool json = false, schedule = false, run = false;
  std::int64_t ranks = 0;  // 0: this process alone
  int gpus_per_rank = 1;
  double network = 50e9;  // bytes per second that a rank receives
};

// Whether the text is a shape, m x n x k.
bool set_shape(plan_arguments &to, const std::string &text) {
  const std::vector<std::string> sizes = CLI::detail::split(text, 'x');
  if (sizes.size() != 3) return false;
  std::int64_t *const fields[] = {&to.m, &to.n, &to.k};
  for (int i = 0; i < 3; ++i) {
    std::string size = sizes[i];
    if (!whole_number(1)(size).empty()) return false;
    *fields[i] = std::stoll(size);
  }
  return true;
}

sg_matrix matrix_of(std::int64_t rows, std::int64_t cols, sg_dtype dtype, sg_layout layout) {
  return {nullptr, rows, cols, 0, dtype, layout};
}

sg_gemm_desc describe_gemm(const plan_arguments &given) {
  const bool flip_a = given.op_a != SG_TRANSPOSE_N, flip_b = given.op_b != SG_TRANSPOSE_N;
  sg_gemm_desc desc = SG_GEMM_DESC_INIT;
  desc.a = matrix_of(flip_a ? given.k : given.m, flip_a ? given.m : given.k, given.dtype, given.layout);
  desc.b = matrix_of(flip_b ? given.n : given.k, flip_b ? given.k : given.n, given.dtype, given.layout);
  desc.c = matrix_of(given.m, given.n, given.output ? given.output : natural_output(given.dtype), given.layout);
  desc.op_a = given.op_a;
  desc.op_b = given.op_b;
  desc.compute = given.compute;
  desc.beta = {given.beta, 0};
  desc.batch = given.batch;
  if (__builtin_mul_overflow(given.m, given.k, &desc.stride_a) ||
      __builtin_mul_overflow(given.k, given.n, &desc.stride_b) ||
      __builtin_mul_overflow(given.m, given.n, &desc.stride_c))
    throw failure(exit_code::usage, "the matrices are too large to be addressed");
  return desc;
}

plan_handle make_plan(sg_context *context, const plan_arguments &given) {
  const sg_gemm_desc desc = describe_gemm(given);
  sg_plan *plan = nullptr;
  const sg_operation_desc gemm{sizeof gemm, SG_OPERATION_GEMM, 1, &desc};
  check(sg_plan_create(context, &gemm, &given.options, &plan), "plan");
  return plan_handle(plan);
}

void write_text(const std::string &path, const std::string &content) {
  std::ofstream file(path, std::ios::binary);
  if (!(file << content) || !file.flush()) throw failure(exit_code::failed, path + ": cannot be written");
}

// Measured times of a plan: medians of several runs after one for warming up.
struct run_times {
  double device_seconds = 0;  // first command to last, on the device's clock
  double seconds = 0;         // of the caller
};

run_times run_plan(sg_context *context, sg_plan *plan, const plan_arguments &given) {
  constexpr int runs = 5;
  sg_gemm_desc desc = describe_gemm(given);
  const auto bytes = [&](const sg_matrix &x) {
    std::int64_t all = 0;
    if (__builtin_mul_overflow(x.rows * x.cols, given.batch * std::int64_t(sg_dtype_size(x.dtype)), &all))
      throw failure(exit_code::usage, "the matrices are too large to be addressed");
    return std::uint64_t(all);
  };
  const placed_memory a(context, given.from, bytes(desc.a), desc.a.dtype),
      b(context, given.from, bytes(desc.b), desc.b.dtype), c(context, given.from, bytes(desc.c), desc.c.dtype);
  desc.a.data = a.data();
  desc.b.data = b.data();
  desc.c.data = c.data();
  const sg_operation_desc gemm{sizeof gemm, SG_OPERATION_GEMM, 1, &desc};
  std::vector<double> device_seconds, seconds;
  progress line("running");
  for (int i = 0; i <= runs; ++i) {
    sg_job_statistics did;
    const double took = timed([&] {
      sg_job *made = nullptr;
      check(sg_plan_run_async(plan, &gemm, nullptr, &made), "run");
      const job_handle job(made);
      check(sg_job_wait(made, SG_FOREVER, nullptr), "run");
      did = statistics_of(made);
    });
    line.fraction(double(i) / runs);
    if (i == 0) continue;
    device_seconds.push_back(double(did.end_ns - did.start_ns) * 1e-9);
    seconds.push_back(took);
  }
  return {median(device_seconds), median(seconds)};
}

json to_json(sg_context *context, sg_plan *plan, const plan_arguments &given) {
  sg_plan_prediction says = SG_PLAN_PREDICTION_INIT;
  check(sg_plan_get_prediction(plan, &says), "prediction");
  json all = {{"device", device_of(context).name},
              {"m", given.m},
              {"n", given.n},
              {"k", given.k},
              {"batch", given.batch},
              {"dtype", name_of(input_types, given.dtype)},
              {"compute", name_of(computes, given.compute)},
              {"from", name_of(places, given.from)},
              {"strategy", says.strategy},
              {"predicted_seconds", says.predicted_seconds},
              {"bound_seconds", says.bound_seconds},
              {"ratio", says.bound_seconds > 0 ? json(says.predicted_seconds / says.bound_seconds) : json()},
              {"serial_seconds", says.serial_seconds},
              {"flops", says.flops},
              {"bytes_in", says.bytes_in},
              {"bytes_out", says.bytes_out},
              {"device_bytes", says.device_bytes},
              {"staging_bytes", says.staging_bytes},
              {"compute_lanes", says.compute_lanes},
              {"commands", says.commands},
              {"devices", says.devices},
              {"bytes_peer", says.bytes_peer},
              {"timeline", describe(plan, SG_PLAN_FORMAT_TIMELINE)}};
  json schedule = json::parse(describe(plan, SG_PLAN_FORMAT_JSON));
  all["on_more_devices"] = schedule.at("on_more_devices");
  if (given.schedule) all["schedule"] = std::move(schedule);
  if (given.run) {
    const run_times took = run_plan(context, plan, given);
    all["device_seconds"] = took.device_seconds;
    all["seconds"] = took.seconds;
    all["prediction_ratio"] = prediction_ratio(took.device_seconds, says.predicted_seconds);
  }
  return all;
}

// A GEMM over many ranks: the least that its network and the work of a rank take.
struct plan_of_ranks {
  rank_grid grid, flat;  // the best one, and the best without a cut of the depth
  whole_gemm local;
  sg_plan_prediction says = SG_PLAN_PREDICTION_INIT;  // of a rank's block
  std::string limit;                                  // of that
  double received_bytes = 0;                          // at least
  double network_seconds = 0, grid_seconds = 0, flat_seconds = 0;
  double takes_over = 0;  // ranks; 0: none

  bool network_binds() const { return network_seconds > says.predicted_seconds; }
};

plan_of_ranks plan_over_ranks(sg_context *context, plan_arguments given) {
  const whole_gemm whole{given.m, given.n, given.k};
  const sg_dtype output = given.output ? given.output : natural_output(given.dtype);
  const element_bytes size{double(sg_dtype_size(given.dtype)), double(sg_dtype_size(output))};
  const double memory = given.from == SG_MEMORY_DEVICE ? double(device_of(context).memory_bytes) : 0;
  const auto grid = best_grid(whole, size, given.ranks, memory, 0),
             flat = best_grid(whole, size, given.ranks, memory, 1);
  if (!grid)
    throw failure(exit_code::usage,
                  "--ranks is " + std::to_string(given.ranks) + ": no grid of so many has " +
                      (memory > 0 ? "whole blocks that fit the memory of a device" : "a block for each"));
  plan_of_ranks made;
  made.grid = *grid, made.flat = flat.value_or(rank_grid{0, 0, 0});
  made.local = grid->block(whole);
  given.m = made.local.m, given.n = made.local.n, given.k = made.local.k;
  given.options.device_count = given.gpus_per_rank;
  const plan_handle plan = make_plan(context, given);
  check(sg_plan_get_prediction(plan.get(), &made.says), "prediction");
  made.limit = json::parse(describe(plan.get(), SG_PLAN_FORMAT_JSON)).at("bound_limit");
  const double word = std::min(size.in, size.out);
  made.received_bytes = least_received(whole, double(given.ranks)) * word;
  made.network_seconds = made.received_bytes / given.network;
  made.grid_seconds = grid->received(whole, size) / given.network;
  if (flat) made.flat_seconds = flat->received(whole, size) / given.network;
  made.takes_over = network_takes_over(whole, made.says.predicted_seconds * double(given.ranks), word / given.network);
  return made;
}

void print_ranks(sg_context *context, const plan_arguments &given) {
  const plan_of_ranks p = plan_over_ranks(context, given);
  const double seconds = std::max(p.network_seconds, p.says.predicted_seconds);
  const std::string limit = p.network_binds() ? "network" : p.limit;
  if (given.json) {
    const auto list = [](const rank_grid &x) { return json{x.p, x.q, x.r}; };
    print_json({{"device", device_of(context).name},
                {"m", given.m},
                {"n", given.n},
                {"k", given.k},
                {"dtype", name_of(input_types, given.dtype)},
                {"from", name_of(places, given.from)},
                {"ranks", given.ranks},
                {"gpus_per_rank", given.gpus_per_rank},
                {"network_bytes_per_second", given.network},
                {"seconds", seconds},
                {"limit", limit},
                {"grid", list(p.grid)},
                {"local",
                 {{"m", p.local.m},
                  {"n", p.local.n},
                  {"k", p.local.k},
                  {"limit", p.limit},
                  {"predicted_seconds", p.says.predicted_seconds},
                  {"bound_seconds", p.says.bound_seconds}}},
                {"received_bytes", p.received_bytes},
                {"network_seconds", p.network_seconds},
                {"grid_network_seconds", p.grid_seconds},
                {"flat_grid", p.flat.r ? list(p.flat) : json()},
                {"flat_grid_network_seconds", p.flat.r ? json(p.flat_seconds) : json()},
                {"network_binds_from_ranks", p.takes_over > 0 ? json(std::int64_t(p.takes_over)) : json()}});
    return;
  }
  const auto text = [](const rank_grid &x) {
    return std::to_string(x.p) + " x " + std::to_string(x.q) + " x " + std::to_string(x.r);
  };
  std::printf("%lld ranks of %d GPU%s as %s, %lld x %lld x %lld each\n", (long long)given.ranks, given.gpus_per_rank,
              given.gpus_per_rank > 1 ? "s" : "", text(p.grid).c_str(), (long long)p.local.m, (long long)p.local.n,
              (long long)p.local.k);
  std::printf("a rank's work   %-10s predicted; %s binds\n", format_seconds(p.says.predicted_seconds).c_str(),
              p.limit.c_str());
  std::printf("the network     %-10s at least: %s for a rank at %s\n", format_seconds(p.network_seconds).c_str(),
              format_bytes(p.received_bytes).c_str(), format_rate(given.network, "B/s").c_str());
  std::printf("                %-10s by this grid\n", format_seconds(p.grid_seconds).c_str());
  if (p.flat.r)
    std::printf("                %-10s by %s, as SUMMA\n", format_seconds(p.flat_seconds).c_str(),
                text(p.flat).c_str());
  std::printf("together        %-10s if both overlap: %s binds\n", format_seconds(seconds).c_str(), limit.c_str());
  if (p.takes_over > 0) std::printf("the network binds from %.0f ranks on\n", p.takes_over);
}

void run(const plan_arguments &given) {
  const context_handle context = open_context(given.where);
  if (given.ranks > 0) return print_ranks(context.get(), given);
  const plan_handle plan = make_plan(context.get(), given);
  if (!given.html.empty()) write_text(given.html, describe(plan.get(), SG_PLAN_FORMAT_HTML));
  if (given.json) {
    print_json(to_json(context.get(), plan.get(), given));
    return;
  }
  std::printf("%s\n%s", describe(plan.get(), SG_PLAN_FORMAT_TEXT).c_str(),
              describe(plan.get(), SG_PLAN_FORMAT_TIMELINE).c_str());
  if (given.schedule) std::printf("\n%s\n", describe(plan.get(), SG_PLAN_FORMAT_JSON).c_str());
  if (given.run) {
    sg_plan_prediction says = SG_PLAN_PREDICTION_INIT;
    check(sg_plan_get_prediction(plan.get(), &says), "prediction");
    std::printf("\n%s\n",
                compared(says.predicted_seconds, run_plan(context.get(), plan.get(), given).device_seconds).c_str());
  }
}

}  // namespace

void add_plan(CLI::App &app) {
  auto given = std::make_shared<plan_arguments>();
  CLI::App *verb = app.add_subcommand("plan", "Predict a GEMM on a device without running it");
  verb->add_option_function<std::string>(
          "SHAPE", [given](const std::string &text) { set_shape(*given, text); },
          "m x n x k, such as 8192x8192x8192, in place of --m, --n and --k")
      ->check([](const std::string &text) {
        plan_arguments tried;
        return set_shape(tried, text) ? "" : text + " is no shape; shapes are such as 8192x8192x8192";
      });
  verb->add_option("--m", given->m, "Rows of C")->check(whole_number(1));
  verb->add_option("--n", given->n, "Columns of C")->check(whole_number(1));
  verb->add_option("--k", given->k, "Summed dimension")->check(whole_number(1));
  verb->add_option("--batch", given->batch, "Items, one behind the other")->check(whole_number(1));
  add_choice(*verb, "--dtype", given->dtype, input_types, "Type of A and B (default f32)");
  add_choice(*verb, "--out-dtype", given->output, output_types, "Type of C (default: that of A and B; i32 for i8)");
  add_choice(*verb, "--compute", given->compute, computes, "Least accurate arithmetic allowed (default exact)");
  add_choice(*verb, "--ta", given->op_a, ops, "Operation on A (default N)");
  add_choice(*verb, "--tb", given->op_b, ops, "Operation on B (default N)");
  add_choice(*verb, "--layout", given->layout, layouts, "Layout of all three (default row)");
  verb->add_option("--beta", given->beta, "C = A*B + beta*C (default 0)");
  add_choice(*verb, "--from", given->from, places, "Memory space of the operands (default pinned)");
  verb->add_option("--device", given->where.device, "Device or device model (default auto)");
  verb->add_option("--memory-limit", given->where.memory_limit, "Device memory to use, e.g. 4GiB")
      ->transform(size_in_bytes());
  add_choice(*verb, "--split", given->options.split, splits, "How to split the GEMM (default auto)");
  verb->add_option("--parts", given->options.parts, "Parts of the split")->check(whole_number(0));
  verb->add_option("--streams", given->options.streams, "Compute streams to use at most")->check(whole_number(0));
  CLI::Option *const devices = verb->add_option("--devices", given->options.device_count,
                                                "Devices of the machine to use, such as 2 of sim:h200x2")
                                   ->check(whole_number(0));
  CLI::Option *const ranks =
      verb->add_option("--ranks", given->ranks, "Bounds for so many processes of a cluster together: work and network")
          ->check(whole_number(1))
          ->excludes(devices);
  verb->add_option("--gpus-per-rank", given->gpus_per_rank, "GPUs of each of these, of the machine (default 1)")
      ->check(whole_number(1))
      ->needs(ranks);
  verb->add_option("--network", given->network,
                   "Bytes per second that each receives from others (default 50e9, a port of 400 Gb/s)")
      ->check(positive_number())
      ->needs(ranks);
  verb->add_option("--tile-m", given->options.tile_m, "Rows of a tile of C")->check(whole_number(0));
  verb->add_option("--tile-n", given->options.tile_n, "Columns of a tile of C")->check(whole_number(0));
  verb->add_option("--tile-k", given->options.tile_k, "Depth of a panel")->check(whole_number(0));
  verb->add_flag("--schedule", given->schedule, "Add the library's own JSON of the schedule")->excludes(ranks);
  verb->add_option("--html", given->html, "Write the simulated timeline here, as a page")->excludes(ranks);
  verb->add_flag("--run", given->run, "Run it too, on operands of this program's own, and compare")->excludes(ranks);
  verb->add_flag("--json", given->json, "Print JSON");
  verb->footer("Example: streamgemm plan 8192x8192x8192 --from pageable --device sim:h200");
  verb->callback([given] {
    if (given->m == 0 || given->n == 0 || given->k == 0)
      throw CLI::RequiredError("a shape, such as 8192x8192x8192 (or --m, --n and --k),");
    if (given->ranks > 0 && given->batch > 1)
      throw CLI::ValidationError("--ranks", "takes one GEMM, and --batch is " + std::to_string(given->batch));
    if (given->gpus_per_rank > 1 && given->from == SG_MEMORY_DEVICE)
      throw CLI::ValidationError("--gpus-per-rank", "is " + std::to_string(given->gpus_per_rank) +
                                                        "; several GPUs share operands in host memory only (--from)");
    given->options.place_a = given->options.place_b = given->options.place_c = given->from;
    given->where.compute_lanes = given->options.streams;
    run(*given);
  });
}

}  // namespace sg::cli
