// SPDX-License-Identifier: Apache-2.0
// libFuzzer target: sequences of calls on a few handles of every type, live, stale and foreign, with small operands and
// arguments that are often wrong. Whatever the order, each call returns an allowed status, returns no handle when it
// fails, and nothing crashes, hangs or leaks.
#include <streamgemm/streamgemm.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <utility>

namespace {

// The input, byte by byte; zeros after its end.
class input {
 public:
  input(const std::uint8_t *data, std::size_t size) : next_(data), end_(data + size) {}
  bool empty() const { return next_ == end_; }
  int byte() { return empty() ? 0 : *next_++; }
  int below(int bound) { return byte() % bound; }
  // Mostly small and valid, sometimes wrong.
  int dimension() {
    const int value = byte();
    return value == 255 ? -1 : value % 14;
  }
  template <class Enum>
  Enum choice(int values) {
    const int value = byte();
    return static_cast<Enum>(value >= 250 ? value - 252 : value % values);
  }

 private:
  const std::uint8_t *next_, *end_;
};

constexpr int slots = 4;
enum type { context, stream, event, buffer, job, queue, plan, graph, types };
void *g_handles[types][slots];  // never cleared: released handles stay as stale ones

void *g_shared[4];  // contexts that outlive an input; stale when an input has released one too often

// Operands: any offset that the calls below compute stays inside.
alignas(64) unsigned char g_pool[1 << 20];

// Pointer arrays, used cyclically. These and resubmitted descriptors use no device memory, which may be freed by then.
constexpr int most_items = 4;
void *g_pointers[32][most_items];

// The latest submissions, to be submitted again.
constexpr int most_of_group = 3;
sg_gemm_desc g_latest[most_of_group];

void require(bool good, const char *what, sg_status status) {
  if (good) return;
  std::fprintf(stderr, "%s: %s (%s)\n", what, sg_status_name(status), sg_last_error_message());
  std::abort();
}

// Any status is allowed except an internal error.
sg_status check(sg_status status, const char *what) {
  require(status != SG_STATUS_INTERNAL, what, status);
  require(std::strcmp(sg_status_name(status), "SG_STATUS_UNKNOWN") != 0, what, status);
  require(status >= 0 || sg_last_error_message()[0], what, status);
  return status;
}
#define CALL(call) check(call, #call)

void release_all(void *handle, int of_type);

// For calls that return a handle: stored in the slot after a success, replacing the earlier one; NULL after a failure.
template <class T>
void keep(void *&slot, sg_status status, T *out, const char *what) {
  check(status, what);
  require((status == SG_STATUS_OK) == (out != nullptr), what, status);
  if (!out) return;
  release_all(slot, int((&slot - &g_handles[0][0]) / slots));
  slot = out;
}

struct caller {
  input &in;
  sg_copy_desc copied = SG_COPY_DESC_INIT;  // the latest copy
  bool lasting = false;                     // operands must not be in device memory
  std::size_t arrays_used = 0;

  void *&slot(type t) { return g_handles[t][in.below(slots)]; }
  // A handle of the type; sometimes of another type.
  template <class T>
  T *handle(type t) {
    const int byte = in.byte();
    return static_cast<T *>(g_handles[byte >= 240 ? byte % types : t][byte % slots]);
  }
  std::int64_t timeout() { return in.below(8) == 7 ? -2 - in.below(3) : in.below(3) * 100000; }
  void *memory() { return g_pool + 64 * in.byte(); }
  // Host or device memory; a device buffer holds 64 KiB.
  void *anywhere() {
    void *data = nullptr;
    if (!lasting && in.below(4) == 3) check(sg_buffer_data(handle<sg_buffer>(buffer), &data), "sg_buffer_data");
    return data ? data : memory();
  }

  sg_matrix matrix(std::int64_t rows, std::int64_t cols, sg_dtype dtype) {
    sg_matrix m = {anywhere(), rows, cols, 0, dtype, in.choice<sg_layout>(2)};
    if (in.below(3) == 0) m.ld = in.below(20);
    if (in.below(40) == 0) m.data = nullptr;
    if (in.below(40) == 0) m.rows = in.dimension();
    return m;
  }
  void **pointer_array() {
    void **items = g_pointers[arrays_used++ % std::size(g_pointers)];
    for (int i = 0; i < most_items; ++i) items[i] = in.below(40) == 0 ? nullptr : memory();
    return items;
  }
  static sg_dtype result_of(sg_dtype operands) {
    if (operands == SG_DTYPE_I8) return SG_DTYPE_I32;
    return operands >= SG_DTYPE_F8_E4M3 ? SG_DTYPE_F32 : operands;
  }
  sg_gemm_desc make_gemm() {
    const std::int64_t m = in.dimension(), n = in.dimension(), k = in.dimension();
    const auto dtype = in.choice<sg_dtype>(11);
    sg_gemm_desc desc = SG_GEMM_DESC_INIT;
    desc.op_a = in.choice<sg_transpose>(3);
    desc.op_b = in.choice<sg_transpose>(3);
    desc.a = desc.op_a == SG_TRANSPOSE_N ? matrix(m, k, dtype) : matrix(k, m, dtype);
    desc.b = desc.op_b == SG_TRANSPOSE_N ? matrix(k, n, dtype) : matrix(n, k, dtype);
    desc.c = matrix(m, n, result_of(dtype));
    desc.compute = in.choice<sg_compute>(6);
    desc.alpha.re = in.below(3);
    desc.beta.re = in.below(3);
    if (in.below(4) == 0) {
      desc.batch = in.below(4);
      desc.stride_a = in.byte();
      desc.stride_b = in.byte();
      desc.stride_c = in.byte() * 4 - 1;
    }
    if (const int arrays = in.byte(); desc.batch <= most_items && arrays >= 224) {
      if (arrays & 1) desc.a_array = pointer_array();
      if (arrays & 2) desc.b_array = pointer_array();
      if (arrays & 4) desc.c_array = pointer_array();
    }
    if (in.below(3) == 0) {
      desc.bias = anywhere();
      desc.bias_shape = in.choice<sg_bias>(2);
      desc.stride_bias = in.byte() - 1;
    }
    if (in.below(3) == 0) desc.activation = in.choice<sg_activation>(3);
    return desc;
  }
  // One of the latest submissions, unchanged or with other addresses, or a new one, which replaces it.
  sg_gemm_desc recent_gemm(int place) {
    const int what = in.byte();
    sg_gemm_desc desc = what & 1 ? g_latest[place] : make_gemm();
    if (what & 2) desc.a.data = memory();
    if (what & 4) desc.c.data = memory();
    if (lasting) g_latest[place] = desc;
    return desc;
  }

  sg_plan_options planning() {
    sg_plan_options options = SG_PLAN_OPTIONS_INIT;
    options.split = in.choice<sg_split>(6);
    options.parts = in.below(6) - 1;
    options.streams = in.below(4);
    options.memory_limit = static_cast<std::uint64_t>(in.below(5)) << 12;
    options.tile_m = in.below(9) - 1;
    options.tile_n = in.below(9);
    options.tile_k = in.below(9);
    options.place_a = in.choice<sg_memory_kind>(4);
    return options;
  }

  // Submission options and the objects that they point to.
  struct submission {
    sg_submit options = SG_SUBMIT_INIT;
    sg_plan_options planning;
    sg_job *after[2];
  };
  void fill(submission &s) {
    const int what = in.byte();
    if (what & 1) s.options.stream = handle<sg_stream>(stream);
    if (what & 2) s.options.queue = handle<sg_queue>(queue);
    s.options.tag = static_cast<std::uint64_t>(what);
    if (what & 4) {
      s.after[0] = handle<sg_job>(job);
      s.after[1] = handle<sg_job>(job);
      s.options.after = s.after;
      s.options.after_count = in.below(4) - 1 > 2 ? 2 : in.below(3);
    }
    if (what & 8) s.options.priority = in.below(5) - 2;
    if (what & 16) s.options.flags = static_cast<std::uint32_t>(in.below(5));
    if (what & 32) {
      s.planning = planning();
      s.options.plan = &s.planning;
    }
    static const char *const labels[] = {nullptr, "", "a label",
                                         "a label of more than sixty-four bytes \xe2\x82\xac \xe2\x82\xac \xe2\x82\xac "
                                         "\xe2\x82\xac \xe2\x82\xac \xe2\x82\xac"};
    s.options.label = labels[what % 4];
    if (what & 64) s.options.graph = handle<sg_graph>(graph);
    lasting = what >= 64;
  }

  // A context costs threads and a device model: most inputs share one for each valid device, which lives on.
  void open() {
    static const char *const sound[] = {"cpu", "sim:h200", "sim:a100", "sim:h200?timing-only"};
    static const char *const others[] = {"sim:h200?fail-copy=3",
                                         "sim:h200?fail-launch=2",
                                         "sim:h200?fail-alloc=2",
                                         "sim:h200?refuse-copy=1",
                                         "cpu",
                                         "sim:none",
                                         "abacus"};
    void *&slot = g_handles[context][0];
    if (slot && sg_context_retain(static_cast<sg_context *>(slot)) == SG_STATUS_OK) {
      CALL(sg_context_release(static_cast<sg_context *>(slot)));
      return;
    }
    const bool shared = in.below(8) != 7;
    const int which = in.below(shared ? std::size(sound) : std::size(others));
    if (shared && g_shared[which] && sg_context_retain(static_cast<sg_context *>(g_shared[which])) == SG_STATUS_OK) {
      slot = g_shared[which];
      return;
    }
    sg_context_options options = SG_CONTEXT_OPTIONS_INIT;
    options.device = shared ? sound[which] : others[which];
    options.compute_lanes = shared ? 0 : in.below(5) - 1;
    options.flags = in.below(2) ? SG_CONTEXT_CHECK_HAZARDS : 0u;
    sg_context *out = nullptr;
    keep(slot, sg_context_create(&options, &out), out, "sg_context_create");
    if (shared) g_shared[which] = out;
  }

  static void on_job(sg_job *completed, sg_status, void *user) {
    std::int32_t index = 0;
    switch (reinterpret_cast<std::uintptr_t>(user) % 6) {
      case 0:
        require(sg_job_wait(completed, SG_FOREVER, nullptr) != SG_STATUS_OK, "a wait for its own job", SG_STATUS_OK);
        break;
      case 1: CALL(sg_job_release(completed)); break;
      case 2: CALL(sg_job_query(completed, nullptr)); break;
      case 3: CALL(sg_job_cancel(completed)); break;
      case 4: CALL(sg_job_wait_any(&completed, 1, 0, &index, nullptr)); break;
      default: CALL(sg_job_retain(completed)); CALL(sg_job_release(completed));
    }
  }
  static void on_event(sg_event *happened, sg_status, void *) { CALL(sg_event_query(happened)); }

  void create() {
    sg_context *c = handle<sg_context>(context);
    switch (in.below(6)) {
      case 0: {
        sg_stream *out = nullptr;
        sg_stream_options options = SG_STREAM_OPTIONS_INIT;
        options.priority = in.below(5) - 2;
        if (!in.below(4)) options.device = in.below(4) - 1, options.compute_units = in.below(4) - 1;
        const sg_status status = sg_stream_create(c, in.below(4) ? &options : nullptr, &out);
        return keep(slot(stream), status, out, "sg_stream_create");
      }
      case 1: {
        sg_event *out = nullptr;
        const sg_status status = sg_event_create(c, &out);
        return keep(slot(event), status, out, "sg_event_create");
      }
      case 2: {
        sg_buffer *out = nullptr;
        const sg_status status = sg_buffer_create(c, in.below(8) ? 65536 : 0, nullptr, &out);
        return keep(slot(buffer), status, out, "sg_buffer_create");
      }
      case 3: {
        sg_queue *out = nullptr;
        const sg_status status =
            in.below(4) ? sg_queue_create(c, nullptr, &out) : sg_queue_create(nullptr, nullptr, &out);
        return keep(slot(queue), status, out, "sg_queue_create");
      }
      case 4: {
        sg_graph *out = nullptr;
        const sg_status status = sg_graph_create(c, &out);
        return keep(g_handles[graph][in.below(2)], status, out, "sg_graph_create");  // few, so that some become large
      }
      default: {
        sg_plan *out = nullptr;
        sg_gemm_desc desc = make_gemm();
        const sg_plan_options options = planning();
        if (in.below(2)) desc.a.data = desc.b.data = desc.c.data = nullptr;
        const sg_operation_desc gemm = {sizeof gemm, SG_OPERATION_GEMM, 1, &desc};
        const sg_status status = sg_plan_create(c, &gemm, &options, &out);
        return keep(slot(plan), status, out, "sg_plan_create");
      }
    }
  }

  void submit() {
    submission s;
    fill(s);
    sg_context *c = handle<sg_context>(context);
    sg_job *out = nullptr;
    sg_status status;
    switch (in.below(8)) {
      case 0: {
        sg_gemm_desc group[most_of_group];
        for (int i = 0; i < most_of_group; ++i) group[i] = recent_gemm(i);
        status = sg_gemm_grouped_async(c, group, in.below(4), &s.options, &out);
        break;
      }
      case 1:
        copied = SG_COPY_DESC_INIT;
        copied.width = static_cast<std::uint64_t>(in.byte()) * 8;
        status = sg_copy_async(c, anywhere(), anywhere(), copied.width, &s.options, &out);
        break;
      case 2: {
        void *dst = anywhere(), *src = anywhere();
        copied = SG_COPY_DESC_INIT;
        copied.dst_pitch = in.byte(), copied.src_pitch = in.byte(), copied.width = in.byte();
        copied.height = static_cast<std::uint64_t>(in.below(20));
        status = sg_copy_2d_async(c, dst, copied.dst_pitch, src, copied.src_pitch, copied.width, copied.height,
                                  &s.options, &out);
        break;
      }
      case 3: {
        const sg_gemm_desc desc = make_gemm();
        const sg_operation_desc gemm = {sizeof gemm, SG_OPERATION_GEMM, 1, &desc};
        status = sg_plan_run_async(handle<sg_plan>(plan), &gemm, &s.options, &out);
        break;
      }
      case 4:
        s.options.graph = nullptr;
        status = sg_graph_run_async(handle<sg_graph>(graph), &s.options, &out);
        break;
      default: {
        const sg_gemm_desc desc = recent_gemm(0);
        status = sg_gemm_async(c, &desc, &s.options, &out);
      }
    }
    lasting = false;
    if (!s.options.graph) return keep(slot(job), status, out, "a submission");
    check(status, "recording");
    require(out == nullptr, "what is recorded has no job", status);
  }

  void change_graph() {
    sg_graph *g = handle<sg_graph>(graph);
    std::int32_t size = 0;
    lasting = true;
    CALL(sg_graph_submission_count(g, &size));
    const std::int32_t index = in.below(8) ? in.below(std::max<std::int32_t>(1, size)) : in.byte() - 128;
    if (in.below(4)) {
      const sg_gemm_desc desc = recent_gemm(0);
      sg_operation_desc update = SG_OPERATION_DESC_INIT;
      update.operation = in.below(8) ? SG_OPERATION_GEMM : static_cast<sg_operation>(in.below(2) ? 77 : 0);
      update.desc = &desc;
      CALL(sg_graph_update(g, index, &update));
    } else {
      sg_copy_desc copy = copied;
      copy.dst = memory(), copy.src = memory();
      if (!in.below(8)) copy.width = in.byte();
      const sg_operation_desc update = {sizeof update, SG_OPERATION_COPY, 1, &copy};
      CALL(sg_graph_update(g, index, &update));
    }
    lasting = false;
  }

  void ask() {
    sg_job *j = handle<sg_job>(job), *both[2] = {j, handle<sg_job>(job)};
    sg_job_statistics stats = SG_JOB_STATISTICS_INIT;
    sg_plan_prediction prediction = SG_PLAN_PREDICTION_INIT;
    sg_device_info info = SG_DEVICE_INFO_INIT;
    sg_completion completions[3];
    std::int32_t number = 0;
    char text[100];
    double seconds;
    switch (in.below(21)) {
      case 0: CALL(sg_job_wait(j, in.below(2) ? SG_FOREVER : timeout(), nullptr)); break;
      case 1: CALL(sg_job_query(j, nullptr)); break;
      case 2: CALL(sg_job_cancel(j)); break;
      case 3: CALL(sg_job_get_statistics(j, &stats)); break;
      case 4: CALL(sg_job_message(j, text, static_cast<std::uint64_t>(in.below(100)), nullptr)); break;
      case 5: CALL(sg_job_wait_all(both, in.below(3), timeout(), nullptr)); break;
      case 6: CALL(sg_job_wait_any(both, in.below(3), timeout(), &number, nullptr)); break;
      case 7:
        CALL(sg_job_on_complete(j, on_job, reinterpret_cast<void *>(static_cast<std::uintptr_t>(in.byte()))));
        break;
      case 8: CALL(sg_event_record(handle<sg_event>(event), handle<sg_stream>(stream))); break;
      case 9: CALL(sg_event_wait(handle<sg_event>(event), timeout())); break;
      case 10: CALL(sg_event_elapsed(handle<sg_event>(event), handle<sg_event>(event), &seconds)); break;
      case 11: CALL(sg_event_on_complete(handle<sg_event>(event), on_event, nullptr)); break;
      case 12: CALL(sg_stream_wait_event(handle<sg_stream>(stream), handle<sg_event>(event))); break;
      case 13: CALL(sg_stream_synchronize(handle<sg_stream>(stream), timeout())); break;
      case 14:
        CALL(sg_queue_next_batch(handle<sg_queue>(queue), completions, sizeof(sg_completion), in.below(4), timeout(),
                                 &number));
        break;
      case 15: CALL(sg_queue_fd(handle<sg_queue>(queue), &number)); break;
      case 16: CALL(sg_queue_close(handle<sg_queue>(queue))); break;
      case 17: CALL(sg_plan_get_prediction(handle<sg_plan>(plan), &prediction)); break;
      case 18: CALL(sg_plan_describe(handle<sg_plan>(plan), in.choice<sg_plan_format>(3), text, 100, nullptr)); break;
      case 19: CALL(sg_job_label(j, text, static_cast<std::uint64_t>(in.below(100)), nullptr)); break;
      default: CALL(sg_context_get_device_info(handle<sg_context>(context), 0, &info));
    }
  }

  // Pinned memory that nothing else uses; sometimes freed twice, which is an error.
  void pinned() {
    sg_context *c = handle<sg_context>(context);
    void *memory = nullptr;
    const sg_status status = CALL(sg_host_alloc(c, static_cast<std::uint64_t>(in.byte()), &memory));
    require((status == SG_STATUS_OK) == (memory != nullptr), "sg_host_alloc", status);
    if (memory) CALL(sg_host_free(c, memory));
    if (memory && in.below(2)) require(sg_host_free(c, memory) != SG_STATUS_OK, "freed twice", SG_STATUS_OK);
    CALL(sg_host_register(c, g_pool + (900 << 10), static_cast<std::uint64_t>(in.byte())));
    CALL(sg_host_unregister(c, g_pool + (900 << 10)));
  }

  void count(bool up);
};

struct verbs {
  sg_status (*retain)(void *), (*release)(void *);
};
template <class T, sg_status (*F)(T *)>
sg_status untyped(void *handle) {
  return F(static_cast<T *>(handle));
}
#define VERBS(t) \
  { untyped<sg_##t, sg_##t##_retain>, untyped<sg_##t, sg_##t##_release> }
constexpr verbs g_verbs[types] = {VERBS(context), VERBS(stream), VERBS(event), VERBS(buffer),
                                  VERBS(job),     VERBS(queue),  VERBS(plan),  VERBS(graph)};

// Every reference except those to shared contexts.
void release_all(void *handle, int of_type) {
  const bool stays = std::find(std::begin(g_shared), std::end(g_shared), handle) != std::end(g_shared);
  while (handle && !stays && g_verbs[of_type].release(handle) == SG_STATUS_OK) continue;
}

void caller::count(bool up) {
  const auto t = static_cast<type>(in.below(types));
  void *h = handle<void>(t);
  check(up ? g_verbs[t].retain(h) : g_verbs[t].release(h), up ? "retain" : "release");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  input in(data, size);
  caller call{in};
  call.open();
  for (sg_gemm_desc &desc : g_latest) desc = SG_GEMM_DESC_INIT;
  while (!in.empty()) switch (in.below(11)) {
      case 0: call.open(); break;
      case 1:
      case 2: call.create(); break;
      case 3:
      case 4:
      case 5: call.submit(); break;
      case 6: call.count(true); break;
      case 7: call.count(false); break;
      case 8: call.pinned(); break;
      case 9: call.change_graph(); break;
      default: call.ask();
    }
  if (g_handles[context][0]) (void)sg_context_synchronize(static_cast<sg_context *>(g_handles[context][0]), SG_FOREVER);
  for (int t = types - 1; t >= 0; --t)
    for (void *&h : g_handles[t]) release_all(std::exchange(h, nullptr), t);
  return 0;
}
