// SPDX-License-Identifier: Apache-2.0
// Many threads use one library in every way at once; every result is exact. Made for ThreadSanitizer.
//
//   mixed_test DEVICE [SECONDS]     SG_SOAK=1: for a minute
#include <streamgemm/streamgemm.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "support/gemm_plan.h"
#include "support/numbers.hpp"

namespace {

constexpr int n = 12;
using matrix = std::vector<double>;
const char *g_device;
std::atomic<long> g_failures{0}, g_done{0};

void fail(const char *what, sg_status status) {
  if (g_failures++ < 20) std::fprintf(stderr, "%s: %s (%s)\n", what, sg_status_name(status), sg_last_error_message());
}
// Checks that a call returned one of the statuses allowed here.
template <class... Status>
bool expect(sg_status seen, const char *what, Status... right) {
  if ((false || ... || (seen == right))) return true;
  fail(what, seen);
  return false;
}
#define OK(call) expect(call, #call, SG_STATUS_OK)

sg_context *open() {
  sg_context_options options = SG_CONTEXT_OPTIONS_INIT;
  options.device = g_device;
  sg_context *context = nullptr;
  OK(sg_context_create(&options, &context));
  return context;
}

sg_gemm_desc make_gemm(const matrix &a, const matrix &b, matrix &c) {
  sg_gemm_desc desc = SG_GEMM_DESC_INIT;
  const auto view = [](const matrix &x) {
    return sg_matrix{const_cast<double *>(x.data()), n, n, 0, SG_DTYPE_F64, SG_LAYOUT_ROW_MAJOR};
  };
  desc.a = view(a);
  desc.b = view(b);
  desc.c = view(c);
  return desc;
}

// A GEMM whose operands live as long as any thread may use them: a callback releases them when the job has completed.
struct work {
  matrix a, b, c;
  double expected;
  std::atomic<int> *finished;

  work(double x, std::atomic<int> *f)
      : a(n * n, x), b(n * n, 2.0), c(n * n, -1.0), expected(2.0 * n * x), finished(f) {}
  bool right() const {
    for (const double v : c)
      if (v != expected) return false;
    return true;
  }
  static void completed(sg_job *, sg_status status, void *user) {
    const std::unique_ptr<work> self(static_cast<work *>(user));
    if (expect(status, "a job", SG_STATUS_OK, SG_STATUS_CANCELLED) && status == SG_STATUS_OK && !self->right())
      fail("a wrong result in a callback", status);
    self->finished->fetch_add(1);
    self->finished->notify_all();
  }
};

struct shared {
  sg_context *context = open();
  sg_queue *queue = nullptr;
  sg_plan *plan = nullptr;
  std::atomic<sg_job *> slots[4] = {};  // jobs that all threads wait for, poll and cancel; their owners replace them
  sg_graph *graph = nullptr;            // all threads run it
  const matrix graph_a = matrix(n * n, 3.0), graph_b = matrix(n * n, 2.0);
  matrix graph_c = matrix(n * n), graph_d = graph_c;
  std::atomic<bool> stop{false};
  std::atomic<long> posted{0}, taken{0};

  shared() {
    OK(sg_queue_create(context, nullptr, &queue));
    matrix shape(n * n);
    sg_gemm_desc desc = make_gemm(shape, shape, shape);
    desc.a.data = desc.b.data = desc.c.data = nullptr;
    sg_plan_options options = SG_PLAN_OPTIONS_INIT;
    options.place_a = options.place_b = options.place_c =
        std::strcmp(g_device, "ordered") == 0 ? SG_MEMORY_DEVICE : SG_MEMORY_PAGEABLE;
    OK(create_gemm_plan(context, &desc, &options, &plan));
    OK(sg_graph_create(context, &graph));
    sg_submit record = SG_SUBMIT_INIT;
    record.graph = graph;
    desc = make_gemm(graph_a, graph_b, graph_c);
    OK(sg_gemm_async(context, &desc, &record, nullptr));
    desc = make_gemm(graph_c, graph_b, graph_d);
    OK(sg_gemm_async(context, &desc, &record, nullptr));
  }
  ~shared() {
    for (auto &s : slots) sg_job_release(s.exchange(nullptr));
    OK(sg_graph_release(graph));
    OK(sg_plan_release(plan));
    OK(sg_queue_release(queue));
    OK(sg_context_release(context));
  }
};

// -- operations of a thread -----------------------------------------------------------------------------------------

void submit_and_wait(shared &s, sg_test::random_source &random) {
  const double x = 1 + random.below(9);
  matrix a(n * n, x), b(n * n, 2.0), c(n * n);
  const sg_gemm_desc desc = make_gemm(a, b, c);
  sg_submit submit = SG_SUBMIT_INIT;
  submit.priority = random.below(3) - 1;
  sg_job *job = nullptr;
  if (!OK(sg_gemm_async(s.context, &desc, &submit, &job))) return;
  while (sg_job_query(job, nullptr) == SG_STATUS_NOT_READY && random.below(3)) std::this_thread::yield();
  OK(sg_job_wait(job, SG_FOREVER, nullptr));
  OK(sg_job_release(job));
  if (c != matrix(n * n, 2.0 * n * x)) fail("a wrong result", SG_STATUS_OK);
}

// A chain over one matrix, ordered by its data alone.
void chain(shared &s, sg_test::random_source &random) {
  const int links = 1 + random.below(6);
  matrix a(n * n, 0.0), c(n * n, 1.0), b(n * n, 0.0);
  for (int i = 0; i < n; ++i) a[static_cast<std::size_t>(i * n + i)] = b[static_cast<std::size_t>(i * n + i)] = 1;
  for (int i = 0; i < links; ++i) {
    sg_gemm_desc desc = make_gemm(a, b, c);
    desc.alpha.re = 0;
    desc.beta.re = 2;
    OK(sg_gemm_async(s.context, &desc, nullptr, nullptr));
  }
  sg_gemm_desc last = make_gemm(a, b, c);
  last.beta.re = 1;
  OK(sg_gemm(s.context, &last, nullptr));
  if (c[1] != double(1 << links) || c[0] != double(1 << links) + 1) fail("a chain is out of order", SG_STATUS_OK);
}

void cancel_at_once(shared &s, sg_test::random_source &) {
  std::atomic<int> finished{0};
  auto w = std::make_unique<work>(3, &finished);
  const sg_gemm_desc desc = make_gemm(w->a, w->b, w->c);
  sg_job *job = nullptr;
  if (!OK(sg_gemm_async(s.context, &desc, nullptr, &job))) return;
  OK(sg_job_on_complete(job, work::completed, w.release()));
  expect(sg_job_cancel(job), "sg_job_cancel", SG_STATUS_OK, SG_STATUS_BUSY);
  OK(sg_job_release(job));
  finished.wait(0);
}

void callbacks_only(shared &s, sg_test::random_source &random) {
  std::atomic<int> finished{0};
  const int count = 1 + random.below(8);
  for (int i = 0; i < count; ++i) {
    auto w = std::make_unique<work>(i, &finished);
    const sg_gemm_desc desc = make_gemm(w->a, w->b, w->c);
    sg_job *job = nullptr;
    if (!OK(sg_gemm_async(s.context, &desc, nullptr, &job))) return;
    OK(sg_job_on_complete(job, work::completed, w.release()));
    OK(sg_job_release(job));
  }
  for (int seen; (seen = finished.load()) < count;) finished.wait(seen);
}

void wait_for_many(shared &s, sg_test::random_source &random) {
  std::vector<matrix> c(6, matrix(n * n));
  matrix a(n * n, 1.0), b(n * n, 1.0);
  std::vector<sg_job *> jobs(c.size());
  for (std::size_t i = 0; i < c.size(); ++i) {
    const sg_gemm_desc desc = make_gemm(a, b, c[i]);
    OK(sg_gemm_async(s.context, &desc, nullptr, &jobs[i]));
  }
  if (random.below(2)) {
    OK(sg_job_wait_all(jobs.data(), static_cast<std::int32_t>(jobs.size()), SG_FOREVER, nullptr));
    for (sg_job *job : jobs) OK(sg_job_release(job));
  } else
    while (!jobs.empty()) {
      std::int32_t index = -1;
      if (!OK(sg_job_wait_any(jobs.data(), static_cast<std::int32_t>(jobs.size()), SG_FOREVER, &index, nullptr)))
        return;
      OK(sg_job_release(jobs[static_cast<std::size_t>(index)]));
      jobs.erase(jobs.begin() + index);
    }
  for (const matrix &x : c)
    if (x != matrix(n * n, n)) fail("a wrong result among many", SG_STATUS_OK);
}

void streams_and_events(shared &s, sg_test::random_source &random) {
  sg_stream *first = nullptr, *second = nullptr;
  sg_event *event = nullptr;
  matrix a(n * n, 1.0), b(n * n, 1.0), c(n * n), d(n * n);
  sg_stream_options options = SG_STREAM_OPTIONS_INIT;
  options.priority = static_cast<std::int32_t>(random.below(3)) - 1,
  options.compute_units = static_cast<std::int32_t>(random.below(3));
  OK(sg_stream_create(s.context, &options, &first));
  OK(sg_stream_create(s.context, nullptr, &second));
  OK(sg_event_create(s.context, &event));
  sg_submit on_first = SG_SUBMIT_INIT, on_second = SG_SUBMIT_INIT;
  on_first.stream = first;
  on_second.stream = second;
  on_first.flags = on_second.flags = SG_SUBMIT_UNTRACKED;  // only the event orders them
  const sg_gemm_desc write = make_gemm(a, b, c), read = make_gemm(c, b, d);
  OK(sg_gemm_async(s.context, &write, &on_first, nullptr));
  OK(sg_event_record(event, first));
  OK(sg_stream_wait_event(second, event));
  OK(sg_gemm_async(s.context, &read, &on_second, nullptr));
  if (random.below(2)) OK(sg_event_wait(event, SG_FOREVER));
  expect(sg_stream_query(first), "sg_stream_query", SG_STATUS_OK, SG_STATUS_NOT_READY);
  OK(sg_stream_synchronize(second, SG_FOREVER));
  if (d != matrix(n * n, double(n) * n)) fail("the event did not order the streams", SG_STATUS_OK);
  OK(sg_event_release(event));
  OK(sg_stream_release(first));
  OK(sg_stream_release(second));
}

void run_the_plan(shared &s, sg_test::random_source &) {
  matrix a(n * n, 1.0), b(n * n, 3.0), c(n * n);
  const sg_gemm_desc desc = make_gemm(a, b, c);
  sg_job *job = nullptr;
  OK(sg_plan_retain(s.plan));
  if (OK(run_gemm_plan(s.plan, &desc, nullptr, &job))) {
    OK(sg_job_wait(job, SG_FOREVER, nullptr));
    if (c != matrix(n * n, 3.0 * n)) fail("a wrong result of the plan", SG_STATUS_OK);
    OK(sg_job_release(job));
  }
  OK(sg_plan_release(s.plan));
}

void make_a_plan(shared &s, sg_test::random_source &random) {
  matrix shape(1);
  sg_gemm_desc desc = SG_GEMM_DESC_INIT;
  const std::int64_t m = 1 + random.below(300), k = 1 + random.below(300);
  desc.a = {nullptr, m, k, 0, SG_DTYPE_F32, SG_LAYOUT_ROW_MAJOR};
  desc.b = {nullptr, k, m, 0, SG_DTYPE_F32, SG_LAYOUT_COLUMN_MAJOR};
  desc.c = {nullptr, m, m, 0, SG_DTYPE_F32, SG_LAYOUT_ROW_MAJOR};
  sg_plan *plan = nullptr;
  sg_plan_prediction prediction = SG_PLAN_PREDICTION_INIT;
  if (!OK(create_gemm_plan(s.context, &desc, nullptr, &plan))) return;
  OK(sg_plan_get_prediction(plan, &prediction));
  OK(sg_plan_release(plan));
}

// A graph of the thread's own: a successful run is exact, a cancelled run returns that status.
void replay_a_graph(shared &s, sg_test::random_source &random) {
  const double x = 1 + random.below(9);
  matrix a(n * n, x), b(n * n, 2.0), c(n * n), d(n * n);
  sg_graph *graph = nullptr;
  OK(sg_graph_create(s.context, &graph));
  sg_submit record = SG_SUBMIT_INIT;
  record.graph = graph;
  const sg_gemm_desc write = make_gemm(a, b, c), read = make_gemm(c, b, d);
  OK(sg_gemm_async(s.context, &write, &record, nullptr));
  OK(sg_gemm_async(s.context, &read, &record, nullptr));
  for (int runs = 1 + random.below(4); runs > 0; --runs) {
    const bool cancels = random.below(3) == 0;
    sg_job *run = nullptr;
    if (!OK(sg_graph_run_async(graph, nullptr, &run))) break;
    if (cancels) expect(sg_job_cancel(run), "cancel of a graph's run", SG_STATUS_OK, SG_STATUS_BUSY);
    const sg_status status = sg_job_wait(run, SG_FOREVER, nullptr);
    if (cancels)
      expect(status, "a cancelled run", SG_STATUS_OK, SG_STATUS_CANCELLED, SG_STATUS_DEPENDENCY_FAILED);
    else
      OK(status);
    if (status == SG_STATUS_OK && (c != matrix(n * n, 2 * n * x) || d != matrix(n * n, 4.0 * n * n * x)))
      fail("a wrong result of a graph", status);
    OK(sg_job_release(run));
    std::fill(c.begin(), c.end(), -1.0);
    std::fill(d.begin(), d.end(), -1.0);
  }
  OK(sg_graph_release(graph));
}

// A graph that all threads run and cancel; runs over its one set of operands are sequential.
void run_the_graph(shared &s, sg_test::random_source &random) {
  sg_job *run = nullptr;
  if (!OK(sg_graph_run_async(s.graph, nullptr, &run))) return;
  if (random.below(3) == 0) {
    expect(sg_job_cancel(run), "cancel of the graph's run", SG_STATUS_OK, SG_STATUS_BUSY);
    expect(sg_job_wait(run, SG_FOREVER, nullptr), "a cancelled run of the graph", SG_STATUS_OK, SG_STATUS_CANCELLED,
           SG_STATUS_DEPENDENCY_FAILED);
  } else {
    OK(sg_job_wait(run, SG_FOREVER, nullptr));
  }
  OK(sg_job_release(run));
}

// One thread's job in a slot that all may wait for, poll, cancel and release; the operands stay with the slot's owner.
void share_a_job(shared &s, sg_test::random_source &random) {
  auto &slot = s.slots[random.below(4)];
  static std::atomic<int> finished{0};
  auto w = std::make_unique<work>(5, &finished);
  const sg_gemm_desc desc = make_gemm(w->a, w->b, w->c);
  sg_job *job = nullptr;
  if (!OK(sg_gemm_async(s.context, &desc, nullptr, &job))) return;
  OK(sg_job_on_complete(job, work::completed, w.release()));
  sg_job_release(slot.exchange(job));
}
void use_a_shared_job(shared &s, sg_test::random_source &random) {
  sg_job *job = s.slots[random.below(4)];
  if (!job) return;
  // Its owner may release it at any moment: a stale handle is then a valid answer too.
  constexpr auto stale = SG_STATUS_INVALID_HANDLE;
  switch (random.below(4)) {
    case 0:
      expect(sg_job_wait(job, 1000000, nullptr), "wait", SG_STATUS_OK, SG_STATUS_TIMEOUT, SG_STATUS_CANCELLED, stale);
      break;
    case 1:
      expect(sg_job_query(job, nullptr), "poll", SG_STATUS_OK, SG_STATUS_NOT_READY, SG_STATUS_CANCELLED, stale);
      break;
    case 2: expect(sg_job_cancel(job), "cancel", SG_STATUS_OK, SG_STATUS_BUSY, stale); break;
    default:
      if (sg_job_retain(job) != SG_STATUS_OK) break;
      sg_job_statistics stats = SG_JOB_STATISTICS_INIT;
      expect(sg_job_wait(job, SG_FOREVER, nullptr), "wait for a retained job", SG_STATUS_OK, SG_STATUS_CANCELLED);
      OK(sg_job_get_statistics(job, &stats));
      OK(sg_job_release(job));
  }
}

void post_to_the_queue(shared &s, sg_test::random_source &) {
  std::atomic<int> finished{0};
  auto w = std::make_unique<work>(4, &finished);
  const sg_gemm_desc desc = make_gemm(w->a, w->b, w->c);
  sg_submit submit = SG_SUBMIT_INIT;
  submit.queue = s.queue;
  submit.tag = 4711;
  sg_job *job = nullptr;
  s.posted++;
  if (!OK(sg_gemm_async(s.context, &desc, &submit, &job))) return;
  OK(sg_job_on_complete(job, work::completed, w.release()));
  OK(sg_job_release(job));
  finished.wait(0);
}
void take_from_the_queue(shared &s, sg_test::random_source &random) {
  sg_completion completions[4];
  std::int32_t count = 0;
  const sg_status status =
      sg_queue_next_batch(s.queue, completions, sizeof(sg_completion), 1 + random.below(4), 200000, &count);
  expect(status, "sg_queue_next_batch", SG_STATUS_OK, SG_STATUS_TIMEOUT);
  for (int i = 0; i < count; ++i)
    if (completions[i].tag != 4711 || completions[i].status != SG_STATUS_OK)
      fail("a strange completion", completions[i].status);
  s.taken += count;
}

void copy_about(shared &s, sg_test::random_source &random) {
  sg_buffer *buffer = nullptr;
  void *data = nullptr;
  matrix from(n * n, random.real()), to(n * n);
  OK(sg_buffer_create(s.context, from.size() * sizeof(double), nullptr, &buffer));
  OK(sg_buffer_data(buffer, &data));
  OK(sg_copy_async(s.context, data, from.data(), from.size() * sizeof(double), nullptr, nullptr));
  sg_job *job = nullptr;
  OK(sg_copy_async(s.context, to.data(), data, to.size() * sizeof(double), nullptr, &job));
  OK(sg_buffer_release(buffer));
  OK(sg_job_wait(job, SG_FOREVER, nullptr));
  OK(sg_job_release(job));
  if (from != to) fail("a wrong copy", SG_STATUS_OK);
}

void a_context_of_ones_own(shared &, sg_test::random_source &random) {
  if (random.below(8)) return;  // more expensive than the others
  sg_context *own = open();
  matrix a(n * n, 1.0), b(n * n, 1.0), c(n * n);
  const sg_gemm_desc desc = make_gemm(a, b, c);
  sg_job *job = nullptr;
  OK(sg_gemm_async(own, &desc, nullptr, &job));
  OK(sg_context_release(own));
  OK(sg_job_wait(job, SG_FOREVER, nullptr));
  OK(sg_job_release(job));
  if (c != matrix(n * n, n)) fail("a wrong result on a context of one's own", SG_STATUS_OK);
}

// A library thread releases the last reference to a context.
void last_reference_in_a_callback(shared &, sg_test::random_source &random) {
  if (random.below(8)) return;
  struct last {
    sg_context *context = open();
    matrix a = matrix(n * n, 1.0), b = a, c = a;
    std::atomic<int> gone{0};
    static void completed(sg_job *job, sg_status status, void *user) {
      auto *self = static_cast<last *>(user);
      expect(status, "a last job", SG_STATUS_OK);
      OK(sg_job_release(job));
      OK(sg_context_release(self->context));
      self->gone = 1;
      self->gone.notify_all();
    }
  };
  const auto l = std::make_shared<last>();
  const sg_gemm_desc desc = make_gemm(l->a, l->b, l->c);
  sg_job *job = nullptr;
  if (!OK(sg_gemm_async(l->context, &desc, nullptr, &job))) return;
  OK(sg_job_on_complete(job, last::completed, l.get()));
  l->gone.wait(0);
}

void synchronize(shared &s, sg_test::random_source &random) {
  if (!random.below(4)) OK(sg_context_synchronize(s.context, SG_FOREVER));
}

constexpr void (*operations[])(shared &, sg_test::random_source &) = {submit_and_wait,
                                                                      chain,
                                                                      cancel_at_once,
                                                                      callbacks_only,
                                                                      wait_for_many,
                                                                      streams_and_events,
                                                                      run_the_plan,
                                                                      make_a_plan,
                                                                      replay_a_graph,
                                                                      run_the_graph,
                                                                      share_a_job,
                                                                      use_a_shared_job,
                                                                      post_to_the_queue,
                                                                      take_from_the_queue,
                                                                      copy_about,
                                                                      synchronize,
                                                                      a_context_of_ones_own,
                                                                      last_reference_in_a_callback};

}  // namespace

int main(int argc, char **argv) {
  if (argc < 2) return 2;
  g_device = argv[1];
  const char *const soak = std::getenv("SG_SOAK");
  const double seconds = soak && *soak == '1' ? 60 : argc > 2 ? std::atof(argv[2]) : 5;
  {
    shared s;
    std::vector<std::thread> threads;
    for (std::uint64_t t = 0; t < 16; ++t)
      threads.emplace_back([&s, t] {
        sg_test::random_source random(t + 1);
        while (!s.stop) {
          operations[random.below(static_cast<int>(std::size(operations)))](s, random);
          ++g_done;
        }
      });
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
    s.stop = true;
    for (std::thread &t : threads) t.join();
    OK(sg_context_synchronize(s.context, SG_FOREVER));
    sg_job *last = nullptr;
    if (OK(sg_graph_run_async(s.graph, nullptr, &last))) OK(sg_job_wait(last, SG_FOREVER, nullptr));
    OK(sg_job_release(last));
    if (s.graph_c != matrix(n * n, 6.0 * n) || s.graph_d != matrix(n * n, 12.0 * n * n))
      fail("a wrong result of the graph", SG_STATUS_OK);
    sg_test::random_source random(99);
    while (s.taken < s.posted && g_failures == 0) take_from_the_queue(s, random);
    if (s.taken != s.posted) fail("completions were lost or doubled", SG_STATUS_OK);
  }
  std::printf("%ld operations, %ld failures\n", g_done.load(), g_failures.load());
  return g_failures ? 1 : 0;
}
