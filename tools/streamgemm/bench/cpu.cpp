// SPDX-License-Identifier: Apache-2.0
// The suite `cpu`: this library on the cpu device beside OpenBLAS and oneDNN, each with all cores and with one.
#include <algorithm>
#include <bit>
#include <fstream>
#include <memory>
#include <thread>

#include "../library.hpp"
#include "cpu_calls.hpp"
#include "peers.hpp"
#include "suite.hpp"
#include "workload.hpp"

namespace sg::cli {

namespace {

using json = nlohmann::ordered_json;

using shared_workload = std::shared_ptr<workload>;

class cpu_suite {
 public:
  cpu_suite(const suite_request &request, suite_run &out)
      : quick_(request.quick),
        out_(out),
        context_(open_context({.device = request.device.empty() ? "cpu" : request.device})),
        peers_(load_cpu_peers().all),
        cores_(int(std::max(1u, std::thread::hardware_concurrency()))) {}

  void run() {
    describe_machine();
    const std::int64_t large = quick_ ? 512 : 4096;
    for (const sg_dtype type : {SG_DTYPE_F32, SG_DTYPE_F64}) one({large, large, large}, type);
    many({64, 64, 1024}, quick_ ? 64 : 512);
    many({32, 32, 32}, quick_ ? 1000 : 10000);
    in_cache({32, 32, 32}, quick_ ? 1000 : 10000);
    for (const sg_dtype type : {SG_DTYPE_BF16, SG_DTYPE_I8}) narrow({large, large, large}, type);
    measure_call_cost(quick_, context_.get(), peers_, out_);
  }

 private:
  void describe_machine() {
    std::ifstream info("/proc/cpuinfo");
    std::string line, flags;
    while (std::getline(info, line) && flags.empty())
      if (line.starts_with("flags")) flags = line.substr(line.find(':') + 1) + " ";
    json useful = json::array();
    for (const char *flag : {"avx2", "avx512f", "avx_vnni", "avx512_vnni", "avx512_bf16", "amx_bf16", "amx_int8"})
      if (flags.find(std::string(1, ' ').append(flag).append(" ")) != std::string::npos) useful.push_back(flag);
    out_.note("processor_flags", useful);
    out_.note("cores", cores_);
    for (const peer &p : peers_) out_.note(p.name, p.version);
  }

  // This library, one asynchronous call per GEMM, and one wait at the end. With more calls than GEMMs it starts over.
  bench_variant ours(const shared_workload &work, int calls, const std::string &name = own_variant) {
    return {name, [this, work, calls, name] {
              return work->checked(name, [&] {
                for (int i = 0; i < calls; ++i) {
                  const sg_gemm_desc desc = work->desc(i % work->count());
                  check(sg_gemm_async(context_.get(), &desc, nullptr, nullptr), "sg_gemm_async");
                }
                check(sg_context_synchronize(context_.get(), SG_FOREVER), "sg_context_synchronize");
              });
            }};
  }

  // The same as one strided batch.
  bench_variant ours_batched(const shared_workload &work) {
    return {"streamgemm, one batch", [this, work] {
              return work->checked("streamgemm, one batch", [&] {
                sg_gemm_desc desc = work->desc(0);
                desc.batch = work->count();
                desc.stride_a = work->size().m * work->size().k;
                desc.stride_b = work->size().k * work->size().n;
                desc.stride_c = work->size().m * work->size().n;
                check(sg_gemm(context_.get(), &desc, nullptr), "sg_gemm");
              });
            }};
  }

  // Each peer that has the type, in a loop, with all cores and with one.
  void add_peers(bench_case &to, const shared_workload &work, int calls) {
    for (const peer &p : peers_)
      for (const int threads : cores_ > 1 ? std::vector{cores_, 1} : std::vector{1}) {
        const peer_threads preparing(p, threads);
        const multiply_fn multiply =
            p.prepare(work->size().m, work->size().n, work->size().k, work->in(), SG_TRANSPOSE_N);
        if (!multiply) {
          out_.leave_out(to.name, name_of(p, threads));
          continue;
        }
        to.variants.push_back({name_of(p, threads), [p, threads, multiply, work, calls] {
                                 const peer_threads running(p, threads);
                                 return work->checked(name_of(p, threads), [&] {
                                   for (int call = 0; call < calls; ++call) {
                                     const int i = call % work->count();
                                     multiply(work->a(i), work->b(i), work->c(i));
                                   }
                                 });
                               }});
      }
  }

  // The same with one thread of its own on each of the caller's, of which there are as many as cores.
  void add_peers_side_by_side(bench_case &to, const shared_workload &work) {
    if (cores_ == 1) return;
    for (const peer &p : peers_) {
      const peer_threads preparing(p, 1);
      std::vector<multiply_fn> multiply;  // each thread's own
      for (int t = 0; t < cores_; ++t)
        multiply.push_back(p.prepare(work->size().m, work->size().n, work->size().k, work->in(), SG_TRANSPOSE_N));
      if (!multiply.front()) continue;
      const std::string name = name_of(p, 1) + ", on " + std::to_string(cores_) + " threads";
      to.variants.push_back({name, [p, name, multiply, work] {
                               const peer_threads running(p, 1);
                               return work->checked(name, [&] {
                                 const int threads = int(multiply.size());
                                 std::vector<std::jthread> all;
                                 for (int t = 0; t < threads; ++t)
                                   all.emplace_back([&, t] {
                                     p.set_threads(1);
                                     for (int i = t * work->count() / threads; i < (t + 1) * work->count() / threads;
                                          ++i)
                                       multiply[std::size_t(t)](work->a(i), work->b(i), work->c(i));
                                   });
                               });
                             }});
    }
  }

  // The time of the memory accesses alone: each operand read once and each result written, with hardly any arithmetic.
  // Not a GEMM, so nothing is compared.
  bench_variant memory_alone(const shared_workload &work) const {
    return {"operands read, C written, on " + std::to_string(cores_) + " threads", [this, work] {
              return timed([&] {
                std::vector<std::jthread> all;
                for (int t = 0; t < cores_; ++t)
                  all.emplace_back([&, t] {
                    const int end = (t + 1) * work->count() / cores_;
                    for (int i = t * work->count() / cores_; i < end; ++i) read_and_write(*work, i);
                  });
              });
            }};
  }

  static void read_and_write(workload &work, int i) {
    constexpr std::int64_t lanes = 32;
    float sums[lanes] = {};
    const auto read = [&](const std::byte *from, std::int64_t elements) {
      const auto *at = reinterpret_cast<const float *>(from);
      for (std::int64_t e = 0; e + lanes <= elements; e += lanes)
        for (std::int64_t l = 0; l < lanes; ++l) sums[l] += at[e + l];
    };
    const shape &size = work.size();
    read(work.a(i), size.m * size.k);
    read(work.b(i), size.k * size.n);
    auto *to = reinterpret_cast<float *>(work.c(i));
    for (std::int64_t e = 0; e < size.m * size.n; ++e) to[e] = sums[e % lanes];
  }

  static std::string name_of(const peer &p, int threads) { return p.name + " x" + std::to_string(threads); }

  void one(shape size, sg_dtype type) {
    const std::string name = std::string("gemm ") + sg_dtype_name(type) + " " + size.text();
    if (!out_.wants(name)) return;
    const auto work = std::make_shared<workload>(size, type, 1);
    bench_case what{name, size.flops(), {ours(work, 1)}};
    add_peers(what, work, 1);
    out_.run(what);
  }

  void many(shape size, int count) {
    const std::string name = std::to_string(count) + " gemm f32 " + size.text();
    if (!out_.wants(name)) return;
    const auto work = std::make_shared<workload>(size, SG_DTYPE_F32, count);
    bench_case what{name, size.flops() * count, {ours(work, count), ours_batched(work)}};
    what.products = count;
    add_peers(what, work, count);
    add_peers_side_by_side(what, work);
    what.variants.push_back(memory_alone(work));
    out_.run(what);
  }

  // Few GEMMs computed repeatedly: their cost when memory is not the bottleneck. Two that write the same C run one
  // after the other, so there are more C's than can be queued at a time.
  void in_cache(shape size, int calls) {
    constexpr int distinct = 64, results = 512;
    const std::string name = std::to_string(calls) + " gemm f32 " + size.text() + ", operands in cache";
    if (!out_.wants(name)) return;
    const auto work = std::make_shared<workload>(size, SG_DTYPE_F32, results, distinct);
    bench_case what{name, size.flops() * calls, {ours(work, calls)}};
    what.products = calls;
    add_peers(what, work, calls);
    out_.run(what);
  }

  // bf16 and i8: beside our own f32, the peers that have the type, and converting to f32 first for OpenBLAS.
  void narrow(shape size, sg_dtype type) {
    const std::string name = std::string("gemm ") + sg_dtype_name(type) + " " + size.text();
    if (!out_.wants(name)) return;
    const auto work = std::make_shared<workload>(size, type, 1);
    const auto wide = std::make_shared<workload>(size, SG_DTYPE_F32, 1);
    bench_case what{name, size.flops(), {ours(work, 1), ours(wide, 1, "streamgemm f32")}};
    add_peers(what, work, 1);
    for (const peer &p : peers_) {
      if (p.name != "OpenBLAS") continue;
      const std::string label = "convert, " + name_of(p, cores_);
      const multiply_fn multiply = p.prepare(size.m, size.n, size.k, SG_DTYPE_F32, SG_TRANSPOSE_N);
      what.variants.push_back({label, [this, p, multiply, work, size] {
                                 std::vector<float> a(size.m * size.k), b(size.k * size.n), c(size.m * size.n);
                                 const peer_threads running(p, cores_);
                                 return timed([&] {
                                   widen(work->in(), work->a(0), a);
                                   widen(work->in(), work->b(0), b);
                                   multiply(a.data(), b.data(), c.data());
                                 });
                               }});
    }
    out_.run(what);
  }

  static void widen(sg_dtype from, const std::byte *at, std::vector<float> &to) {
    const auto *bytes8 = reinterpret_cast<const std::int8_t *>(at);
    const auto *bytes16 = reinterpret_cast<const std::uint16_t *>(at);
    for (std::size_t i = 0; i < to.size(); ++i)
      to[i] = from == SG_DTYPE_I8 ? float(bytes8[i]) : std::bit_cast<float>(std::uint32_t{bytes16[i]} << 16);
  }

  bool quick_;
  suite_run &out_;
  context_handle context_;
  std::vector<peer> peers_;
  int cores_;
};

}  // namespace

void run_cpu_suite(const suite_request &request, suite_run &run) { cpu_suite(request, run).run(); }

}  // namespace sg::cli
