// SPDX-License-Identifier: Apache-2.0
// A program that uses CUDA itself: its streams, its memory, its current device and context. Skipped without a GPU.
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <fstream>
#include <future>
#include <sstream>
#include <thread>

#include "support/harness.hpp"

namespace sg_test {
namespace {

constexpr std::int64_t n = 64;
constexpr std::size_t bytes = n * n * sizeof(double);
using matrix = std::vector<double>;

#define ASSERT_CUDA(call) ASSERT_EQ(cudaSuccess, (call))
#define EXPECT_CUDA(call) EXPECT_EQ(cudaSuccess, (call))

struct device_matrix {
  device_matrix() { EXPECT_CUDA(cudaMalloc(reinterpret_cast<void **>(&data), bytes)); }
  ~device_matrix() { cudaFree(data); }
  double *data = nullptr;
};

class cuda : public testing::Test {
 protected:
  void SetUp() override {
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) GTEST_SKIP() << "there is no GPU";
    context_ = open_context("cuda:0");
    for (std::int64_t i = 0; i < n; ++i) two_[static_cast<std::size_t>(i * n + i)] = 2;
  }
  static matrix all(double value) { return matrix(n * n, value); }

  // The caller's copies in and out, and between them to = 2 * 2 * from by two GEMMs, all in `native`, which is blocked
  // at first.
  void between_the_callers_own(cudaStream_t native) {
    stream wrapper;
    ASSERT_OK(sg_stream_wrap(context_, native, wrapper.out()));
    const device_matrix two, in, middle, out;
    ASSERT_CUDA(cudaMemcpy(two.data, two_.data(), bytes, cudaMemcpyHostToDevice));
    double *host = nullptr;
    ASSERT_CUDA(cudaMallocHost(reinterpret_cast<void **>(&host), 2 * bytes));
    std::fill(host, host + n * n, 1.0);
    std::fill(host + n * n, host + 2 * n * n, -1.0);
    std::promise<void> gate;
    std::future<void> opened = gate.get_future();
    EXPECT_CUDA(cudaLaunchHostFunc(
        native, [](void *x) { static_cast<std::future<void> *>(x)->wait(); }, &opened));
    EXPECT_CUDA(cudaMemcpyAsync(in.data, host, bytes, cudaMemcpyHostToDevice, native));
    sg_submit options = SG_SUBMIT_INIT;
    options.stream = wrapper;
    const sg_gemm_desc first = make_gemm(two.data, in.data, middle.data, n, n, n);
    const sg_gemm_desc second = make_gemm(two.data, middle.data, out.data, n, n, n);
    job job;
    EXPECT_OK(sg_gemm_async(context_, &first, &options, nullptr));
    EXPECT_OK(sg_gemm_async(context_, &second, &options, job.out()));
    EXPECT_CUDA(cudaMemcpyAsync(host + n * n, out.data, bytes, cudaMemcpyDeviceToHost, native));
    EXPECT_STATUS(SG_STATUS_NOT_READY, sg_job_query(job, nullptr));
    EXPECT_STATUS(SG_STATUS_NOT_READY, sg_stream_query(wrapper));
    EXPECT_EQ(-1, host[n * n]);
    gate.set_value();
    EXPECT_CUDA(cudaStreamSynchronize(native));
    EXPECT_EQ(all(4), matrix(host + n * n, host + 2 * n * n));
    EXPECT_OK(sg_job_wait(job, SG_FOREVER, nullptr));
    EXPECT_CUDA(cudaFreeHost(host));
  }

  // 2 * 1 with all three operands at the given addresses, which the host can read.
  void expect_gemm(double *a, double *b, double *c) {
    std::copy(two_.begin(), two_.end(), a);
    std::fill(b, b + n * n, 1.0);
    std::fill(c, c + n * n, -1.0);
    const sg_gemm_desc desc = make_gemm(a, b, c, n, n, n);
    ASSERT_OK(sg_gemm(context_, &desc, nullptr));
    EXPECT_EQ(all(2), matrix(c, c + n * n));
  }

  context context_;
  matrix two_ = all(0);
};

TEST_F(cuda, a_stream_of_the_callers) {
  cudaStream_t native = nullptr;
  ASSERT_CUDA(cudaStreamCreateWithFlags(&native, cudaStreamNonBlocking));
  between_the_callers_own(native);
  EXPECT_CUDA(cudaStreamDestroy(native));
}

TEST_F(cuda, a_blocking_stream_of_the_callers) {
  cudaStream_t native = nullptr;
  ASSERT_CUDA(cudaStreamCreate(&native));
  between_the_callers_own(native);
  EXPECT_CUDA(cudaStreamDestroy(native));
}

TEST_F(cuda, a_stream_of_a_green_context) {
  bool is_there = true;
  const auto find = [&]<class Function>(Function &function, const char *name) {
    void *address = nullptr;
    cudaDriverEntryPointQueryResult answer;
    constexpr unsigned since = 12050;
    is_there = is_there &&
               cudaGetDriverEntryPointByVersion(name, &address, since, cudaEnableDefault, &answer) == cudaSuccess &&
               answer == cudaDriverEntryPointSuccess;
    function = reinterpret_cast<Function>(address);
  };
  decltype(&cuDeviceGetDevResource) get_resource = nullptr;
  decltype(&cuDevSmResourceSplitByCount) split = nullptr;
  decltype(&cuDevResourceGenerateDesc) describe = nullptr;
  decltype(&cuGreenCtxCreate) create = nullptr;
  decltype(&cuGreenCtxStreamCreate) create_stream = nullptr;
  decltype(&cuGreenCtxDestroy) destroy = nullptr;
  find(get_resource, "cuDeviceGetDevResource");
  find(split, "cuDevSmResourceSplitByCount");
  find(describe, "cuDevResourceGenerateDesc");
  find(create, "cuGreenCtxCreate");
  find(create_stream, "cuGreenCtxStreamCreate");
  find(destroy, "cuGreenCtxDestroy");
  if (!is_there) GTEST_SKIP() << "the driver has no green contexts";
  CUdevResource all{}, half{}, rest{};
  unsigned groups = 1;
  CUdevResourceDesc text = nullptr;
  CUgreenCtx context = nullptr;
  CUstream native = nullptr;
  ASSERT_EQ(CUDA_SUCCESS, get_resource(0, &all, CU_DEV_RESOURCE_TYPE_SM));
  ASSERT_EQ(CUDA_SUCCESS, split(&half, &groups, &all, &rest, 0, all.sm.smCount / 2));
  ASSERT_EQ(CUDA_SUCCESS, describe(&text, &half, 1));
  ASSERT_EQ(CUDA_SUCCESS, create(&context, text, 0, CU_GREEN_CTX_DEFAULT_STREAM));
  ASSERT_EQ(CUDA_SUCCESS, create_stream(&native, context, CU_STREAM_NON_BLOCKING, 0));
  between_the_callers_own(native);
  // Next to a partition of the library's, which knows nothing of the caller's.
  stream limited;
  sg_stream_options options = SG_STREAM_OPTIONS_INIT;
  options.compute_units = static_cast<std::int32_t>(all.sm.smCount / 2);
  ASSERT_OK(sg_stream_create(context_, &options, limited.out()));
  std::int32_t is_partition = -1;
  EXPECT_OK(sg_stream_is_partition(limited, &is_partition));
  EXPECT_EQ(1, is_partition);
  between_the_callers_own(native);
  EXPECT_CUDA(cudaStreamDestroy(native));
  EXPECT_EQ(CUDA_SUCCESS, destroy(context));
}

TEST_F(cuda, the_default_streams) {
  for (cudaStream_t native : {cudaStream_t{nullptr}, cudaStreamLegacy}) between_the_callers_own(native);
}

// The caller's copy in, a GEMM of the library and the caller's copy out, in three streams that only events order; the
// first is blocked, and no call waits.
TEST_F(cuda, events_in_and_out) {
  cudaStream_t before = nullptr, after = nullptr;
  cudaEvent_t reached = nullptr, done = nullptr;
  ASSERT_CUDA(cudaStreamCreateWithFlags(&before, cudaStreamNonBlocking));
  ASSERT_CUDA(cudaStreamCreateWithFlags(&after, cudaStreamNonBlocking));
  ASSERT_CUDA(cudaEventCreateWithFlags(&reached, cudaEventDisableTiming));
  ASSERT_CUDA(cudaEventCreate(&done));
  stream ours;
  event over_reached, over_done, completed;
  ASSERT_OK(sg_stream_create(context_, nullptr, ours.out()));
  ASSERT_OK(sg_event_wrap(context_, reached, over_reached.out()));
  ASSERT_OK(sg_event_wrap(context_, done, over_done.out()));
  ASSERT_OK(sg_event_create(context_, completed.out()));
  void *native_completed = nullptr, *same = nullptr;
  ASSERT_OK(sg_event_native(completed, &native_completed));
  EXPECT_OK(sg_event_native(over_done, &same));
  EXPECT_EQ(done, same);
  EXPECT_CUDA(cudaEventQuery(static_cast<cudaEvent_t>(native_completed))) << "never recorded";
  const device_matrix two, in, middle, out;
  ASSERT_CUDA(cudaMemcpy(two.data, two_.data(), bytes, cudaMemcpyHostToDevice));
  double *host = nullptr;
  ASSERT_CUDA(cudaMallocHost(reinterpret_cast<void **>(&host), 2 * bytes));
  for (const bool by_wrapper : {false, true}) {
    std::fill(host, host + n * n, 1.0);
    std::fill(host + n * n, host + 2 * n * n, -1.0);
    std::promise<void> gate;
    std::future<void> opened = gate.get_future();
    EXPECT_CUDA(cudaLaunchHostFunc(
        before, [](void *x) { static_cast<std::future<void> *>(x)->wait(); }, &opened));
    EXPECT_CUDA(cudaMemcpyAsync(in.data, host, bytes, cudaMemcpyHostToDevice, before));
    EXPECT_CUDA(cudaEventRecord(reached, before));
    EXPECT_OK(sg_stream_wait_event(ours, over_reached));
    sg_submit options = SG_SUBMIT_INIT;
    options.stream = ours;
    options.flags = SG_SUBMIT_UNTRACKED;
    const sg_gemm_desc first = make_gemm(two.data, in.data, middle.data, n, n, n);
    const sg_gemm_desc second = make_gemm(two.data, middle.data, out.data, n, n, n);
    EXPECT_OK(sg_gemm_async(context_, &first, &options, nullptr));
    EXPECT_OK(sg_gemm_async(context_, &second, &options, nullptr));
    EXPECT_OK(sg_event_record(by_wrapper ? over_done : completed, ours));
    EXPECT_CUDA(cudaStreamWaitEvent(after, by_wrapper ? done : static_cast<cudaEvent_t>(native_completed), 0));
    EXPECT_CUDA(cudaMemcpyAsync(host + n * n, out.data, bytes, cudaMemcpyDeviceToHost, after));
    EXPECT_STATUS(SG_STATUS_NOT_READY, sg_event_query(over_reached));
    EXPECT_STATUS(SG_STATUS_NOT_READY, sg_event_query(by_wrapper ? over_done : completed));
    EXPECT_STATUS(SG_STATUS_TIMEOUT, sg_event_wait(over_reached, 1000000));
    EXPECT_EQ(-1, host[n * n]);
    gate.set_value();
    EXPECT_CUDA(cudaStreamSynchronize(after));
    EXPECT_EQ(all(4), matrix(host + n * n, host + 2 * n * n));
    EXPECT_OK(sg_event_wait(by_wrapper ? over_done : completed, SG_FOREVER));
  }
  double seconds = 0;
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_event_elapsed(over_reached, over_done, &seconds));
  // Enqueued waits outlive the event.
  EXPECT_CUDA(cudaStreamWaitEvent(after, static_cast<cudaEvent_t>(native_completed), 0));
  EXPECT_OK(completed.reset());
  EXPECT_CUDA(cudaStreamSynchronize(after));
  for (cudaEvent_t each : {reached, done}) EXPECT_CUDA(cudaEventDestroy(each));
  for (cudaStream_t each : {before, after}) EXPECT_CUDA(cudaStreamDestroy(each));
  EXPECT_CUDA(cudaFreeHost(host));
}

// An event recorded in a capturing stream cannot be waited for.
TEST_F(cuda, an_event_of_a_capture_is_refused) {
  cudaStream_t captured = nullptr;
  cudaEvent_t inside = nullptr;
  ASSERT_CUDA(cudaStreamCreateWithFlags(&captured, cudaStreamNonBlocking));
  ASSERT_CUDA(cudaEventCreateWithFlags(&inside, cudaEventDisableTiming));
  ASSERT_CUDA(cudaStreamBeginCapture(captured, cudaStreamCaptureModeRelaxed));
  ASSERT_CUDA(cudaEventRecord(inside, captured));
  event wrapper;
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_event_wrap(context_, inside, wrapper.out()));
  cudaGraph_t graph = nullptr;
  cudaStreamEndCapture(captured, &graph);
  cudaGetLastError();
  if (graph != nullptr) cudaGraphDestroy(graph);
  EXPECT_CUDA(cudaEventDestroy(inside));
  EXPECT_CUDA(cudaStreamDestroy(captured));
}

// The library's own streams do not wait for the default stream, nor it for them.
TEST_F(cuda, own_streams_pass_a_busy_default_stream) {
  const device_matrix a, b, c;
  std::promise<void> gate;
  std::future<void> opened = gate.get_future();
  ASSERT_CUDA(cudaMemset(a.data, 0, bytes));
  ASSERT_CUDA(cudaMemset(b.data, 0, bytes));
  ASSERT_CUDA(cudaDeviceSynchronize());
  ASSERT_CUDA(cudaLaunchHostFunc(
      nullptr, [](void *x) { static_cast<std::future<void> *>(x)->wait(); }, &opened));
  const sg_gemm_desc desc = make_gemm(a.data, b.data, c.data, n, n, n);
  EXPECT_OK(sg_gemm(context_, &desc, nullptr));
  gate.set_value();
  EXPECT_CUDA(cudaStreamSynchronize(nullptr));
}

// The reported properties of the other GPUs agree with the runtime, and every GPU is listed.
TEST_F(cuda, properties_of_peers) {
  sg_device_info info = SG_DEVICE_INFO_INIT;
  ASSERT_OK(sg_context_get_device_info(context_, 0, &info));
  EXPECT_STRNE("", info.mig);
  EXPECT_GE(info.nvlinks, -1);
  EXPECT_EQ(info.nvlinks > 0 && info.nvlink_bytes_per_second > 1e9, info.nvlink_bytes_per_second > 0);
  int count = 0;
  ASSERT_CUDA(cudaGetDeviceCount(&count));
  ASSERT_EQ(std::min(count - 1, SG_MAX_PEERS), info.peer_count);
  for (int i = 0; i < info.peer_count; ++i) {
    const sg_device_peer &peer = info.peers[i];
    int reachable = 0;
    ASSERT_CUDA(cudaDeviceCanAccessPeer(&reachable, 0, i + 1));
    EXPECT_EQ("cuda:" + std::to_string(i + 1), peer.name);
    EXPECT_EQ(reachable == 0, peer.link_class == SG_LINK_HOST);
    EXPECT_EQ(peer.link_class == SG_LINK_NVLINK || peer.link_class == SG_LINK_PCIE, peer.links > 0);
    sg_device_info other = SG_DEVICE_INFO_INIT;
    ASSERT_OK(sg_device_get_info(peer.index, &other));
    EXPECT_STREQ(other.name, peer.name);
  }
}

TEST_F(cuda, memory_of_the_callers) {
  double *pinned = nullptr, *managed = nullptr;
  ASSERT_CUDA(cudaMallocHost(reinterpret_cast<void **>(&pinned), 3 * bytes));
  expect_gemm(pinned, pinned + n * n, pinned + 2 * n * n);
  EXPECT_CUDA(cudaFreeHost(pinned));
  ASSERT_CUDA(cudaMallocManaged(reinterpret_cast<void **>(&managed), 3 * bytes));
  expect_gemm(managed, managed + n * n, managed + 2 * n * n);
  EXPECT_CUDA(cudaFree(managed));
  matrix registered(3 * n * n);
  ASSERT_CUDA(cudaHostRegister(registered.data(), 3 * bytes, cudaHostRegisterDefault));
  expect_gemm(registered.data(), registered.data() + n * n, registered.data() + 2 * n * n);
  EXPECT_CUDA(cudaHostUnregister(registered.data()));
}

// A custom operation's copy on its native stream, between two GEMMs, a long one of them; its device is current.
struct native_copy {
  std::atomic<int> calls{0}, wrong{0};
  sg_status result = SG_STATUS_OK;
  static sg_status run(const sg_custom_call *call, void *user) {
    auto &own = *static_cast<native_copy *>(user);
    int current = -1;
    if (cudaGetDevice(&current) != cudaSuccess || current != 0 || !call->native_stream) ++own.wrong;
    ++own.calls;
    const auto in = static_cast<cudaStream_t>(call->native_stream);
    if (cudaMemcpyAsync(call->operands[1], call->operands[0], bytes, cudaMemcpyDeviceToDevice, in) != cudaSuccess)
      return SG_STATUS_BACKEND_FAILURE;
    return own.result;
  }
};

TEST_F(cuda, a_custom_operation_enqueues_on_a_native_stream) {
  native_copy copy;
  const device_matrix two, ones, middle, moved, out;
  ASSERT_CUDA(cudaMemcpy(two.data, two_.data(), bytes, cudaMemcpyHostToDevice));
  const matrix filled = all(1);
  ASSERT_CUDA(cudaMemcpy(ones.data, filled.data(), bytes, cudaMemcpyHostToDevice));
  const sg_custom_operand operands[] = {{middle.data, bytes, SG_ACCESS_READ}, {moved.data, bytes, SG_ACCESS_WRITE}};
  sg_custom_desc desc = SG_CUSTOM_DESC_INIT;
  desc.function = native_copy::run;
  desc.user = &copy;
  desc.operands = operands;
  desc.operand_count = 2;
  owned<sg_graph, sg_graph_release> recorded;
  ASSERT_OK(sg_graph_create(context_, recorded.out()));
  sg_submit record = SG_SUBMIT_INIT;
  record.graph = recorded;
  constexpr int rounds = 50;
  for (sg_submit *submit : {static_cast<sg_submit *>(nullptr), &record}) {
    matrix seen = all(-1);
    for (int round = 0; round < (submit ? 1 : rounds); ++round) {
      const sg_gemm_desc first = make_gemm(two.data, ones.data, middle.data, n, n, n);
      const sg_gemm_desc second = make_gemm(two.data, moved.data, out.data, n, n, n);
      ASSERT_OK(sg_gemm_async(context_, &first, submit, nullptr));
      ASSERT_OK(sg_custom_async(context_, &desc, submit, nullptr));
      ASSERT_OK(sg_gemm_async(context_, &second, submit, nullptr));
      if (submit) continue;
      ASSERT_OK(sg_copy(context_, seen.data(), out.data, bytes, nullptr));
      ASSERT_EQ(all(4), seen);
    }
    if (!submit) continue;
    ASSERT_CUDA(cudaMemset(out.data, 0, bytes));
    for (int i = 0; i < 3; ++i) {
      job done;
      ASSERT_OK(sg_graph_run_async(recorded, nullptr, done.out()));
      ASSERT_OK(sg_job_wait(done, SG_FOREVER, nullptr));
    }
    ASSERT_CUDA(cudaMemcpy(seen.data(), out.data, bytes, cudaMemcpyDeviceToHost));
    EXPECT_EQ(all(4), seen);
  }
  EXPECT_EQ(rounds + 3, copy.calls);
  copy.result = SG_STATUS_OUT_OF_MEMORY;
  EXPECT_STATUS(SG_STATUS_OUT_OF_MEMORY, sg_custom(context_, &desc, nullptr));
  copy.result = SG_STATUS_OK;
  EXPECT_OK(sg_custom(context_, &desc, nullptr));
  EXPECT_EQ(0, copy.wrong);
}

// Memory from a pool, whose pointers the driver describes differently.
TEST_F(cuda, memory_of_a_pool) {
  const device_matrix two;
  double *in = nullptr, *out = nullptr;
  ASSERT_CUDA(cudaMallocAsync(reinterpret_cast<void **>(&in), bytes, nullptr));
  ASSERT_CUDA(cudaMallocAsync(reinterpret_cast<void **>(&out), bytes, nullptr));
  ASSERT_CUDA(cudaMemcpy(two.data, two_.data(), bytes, cudaMemcpyHostToDevice));
  const matrix ones = all(1);
  ASSERT_CUDA(cudaMemcpy(in, ones.data(), bytes, cudaMemcpyHostToDevice));
  const sg_gemm_desc desc = make_gemm(two.data, in, out, n, n, n);
  EXPECT_OK(sg_gemm(context_, &desc, nullptr));
  matrix seen = all(-1);
  EXPECT_CUDA(cudaMemcpy(seen.data(), out, bytes, cudaMemcpyDeviceToHost));
  EXPECT_EQ(all(2), seen);
  EXPECT_CUDA(cudaFreeAsync(in, nullptr));
  EXPECT_CUDA(cudaFreeAsync(out, nullptr));
}

// With SG_CONTEXT_TUNE: timing leaves C unchanged, and the next context finds the stored choice.
TEST_F(cuda, kernels_are_timed_once_for_a_shape) {
  char folder[] = "/tmp/sg-tune-XXXXXX";
  ASSERT_NE(nullptr, mkdtemp(folder));
  ASSERT_EQ(0, setenv("XDG_CACHE_HOME", folder, 1));
  const std::string path = std::string(folder) + "/streamgemm/cublaslt-choices";
  const auto kept = [&] {
    std::ostringstream all;
    all << std::ifstream(path).rdbuf();
    return all.str();
  };
  const device_matrix two, one, sum;
  const matrix ones = all(1);
  ASSERT_CUDA(cudaMemcpy(two.data, two_.data(), bytes, cudaMemcpyHostToDevice));
  for (double *x : {one.data, sum.data}) ASSERT_CUDA(cudaMemcpy(x, ones.data(), bytes, cudaMemcpyHostToDevice));
  sg_gemm_desc desc = make_gemm(two.data, one.data, sum.data, n, n, n);
  desc.beta.re = 1;
  sg_context_options options = SG_CONTEXT_OPTIONS_INIT;
  options.device = "cuda:0";
  options.flags = SG_CONTEXT_TUNE;
  std::string after_first;
  for (int round = 1; round <= 2; ++round) {
    context tuned;
    ASSERT_OK(sg_context_create(&options, tuned.out()));
    for (int i = 0; i < 3; ++i) ASSERT_OK(sg_gemm(tuned, &desc, nullptr));
    matrix seen = all(-1);
    ASSERT_CUDA(cudaMemcpy(seen.data(), sum.data, bytes, cudaMemcpyDeviceToHost));
    EXPECT_EQ(all(1 + 6 * round), seen);
    if (round == 1) after_first = kept();
  }
  EXPECT_EQ(2, std::count(after_first.begin(), after_first.end(), '\n')) << "a first line and one choice";
  EXPECT_EQ(after_first, kept());
  unlink(path.c_str());
  rmdir((std::string(folder) + "/streamgemm").c_str());
  rmdir(folder);
}

// The caller's current context stays current, whatever the library did in its own, also on threads that have none.
TEST_F(cuda, the_callers_context_stays_current) {
  // By name: the test has to start, and to be skipped, where there is no driver.
  void *driver = dlopen("libcuda.so.1", RTLD_NOW);
  ASSERT_NE(nullptr, driver);
  const auto init = reinterpret_cast<decltype(&cuInit)>(dlsym(driver, "cuInit"));
  const auto create = reinterpret_cast<CUresult (*)(CUcontext *, unsigned, CUdevice)>(dlsym(driver, "cuCtxCreate_v2"));
  const auto destroy = reinterpret_cast<CUresult (*)(CUcontext)>(dlsym(driver, "cuCtxDestroy_v2"));
  const auto get_current = reinterpret_cast<CUresult (*)(CUcontext *)>(dlsym(driver, "cuCtxGetCurrent"));
  CUcontext own = nullptr, seen = nullptr;
  ASSERT_EQ(CUDA_SUCCESS, init(0));
  ASSERT_EQ(CUDA_SUCCESS, create(&own, 0, 0));
  matrix a = two_, b = all(1), c = all(-1);
  expect_gemm(a.data(), b.data(), c.data());
  EXPECT_EQ(CUDA_SUCCESS, get_current(&seen));
  EXPECT_EQ(own, seen);
  EXPECT_EQ(CUDA_SUCCESS, destroy(own));
  std::thread([&] {
    EXPECT_EQ(CUDA_SUCCESS, get_current(&seen));
    const bool none_before = seen == nullptr;
    expect_gemm(a.data(), b.data(), c.data());
    EXPECT_EQ(CUDA_SUCCESS, get_current(&seen));
    EXPECT_TRUE(!none_before || seen == nullptr);
  }).join();
}

}  // namespace
}  // namespace sg_test
