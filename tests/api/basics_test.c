/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that need no device: version, names, sizes, and the calling thread's message. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <string.h>

#include "support/check.h"

static void names_of_statuses(void) {
  static const struct {
    sg_status status;
    const char *name;
  } table[] = {
      {SG_STATUS_OK, "SG_STATUS_OK"},
      {SG_STATUS_NOT_READY, "SG_STATUS_NOT_READY"},
      {SG_STATUS_TIMEOUT, "SG_STATUS_TIMEOUT"},
      {SG_STATUS_INVALID_ARGUMENT, "SG_STATUS_INVALID_ARGUMENT"},
      {SG_STATUS_INVALID_HANDLE, "SG_STATUS_INVALID_HANDLE"},
      {SG_STATUS_OUT_OF_MEMORY, "SG_STATUS_OUT_OF_MEMORY"},
      {SG_STATUS_NO_DEVICE, "SG_STATUS_NO_DEVICE"},
      {SG_STATUS_UNSUPPORTED, "SG_STATUS_UNSUPPORTED"},
      {SG_STATUS_BUSY, "SG_STATUS_BUSY"},
      {SG_STATUS_CANCELLED, "SG_STATUS_CANCELLED"},
      {SG_STATUS_DEADLOCK, "SG_STATUS_DEADLOCK"},
      {SG_STATUS_BACKEND_FAILURE, "SG_STATUS_BACKEND_FAILURE"},
      {SG_STATUS_DEPENDENCY_FAILED, "SG_STATUS_DEPENDENCY_FAILED"},
      {SG_STATUS_SHUTDOWN, "SG_STATUS_SHUTDOWN"},
      {SG_STATUS_INTERNAL, "SG_STATUS_INTERNAL"},
      {(sg_status)3, "SG_STATUS_UNKNOWN"},
      {SG_STATUS_DEADLINE_EXCEEDED, "SG_STATUS_DEADLINE_EXCEEDED"},
      {SG_STATUS_IO_FAILURE, "SG_STATUS_IO_FAILURE"},
      {(sg_status)-15, "SG_STATUS_UNKNOWN"},
      {(sg_status)1000000, "SG_STATUS_UNKNOWN"},
  };
  size_t i;
  for (i = 0; i < sizeof table / sizeof table[0]; ++i) {
    CHECK(strcmp(table[i].name, sg_status_name(table[i].status)) == 0);
  }
}

static void sizes_and_names_of_types(void) {
  static const struct {
    int type;
    int size;
    const char *name;
  } table[] = {{SG_DTYPE_F64, 8, "f64"},
               {SG_DTYPE_F32, 4, "f32"},
               {SG_DTYPE_C64, 8, "c64"},
               {SG_DTYPE_C128, 16, "c128"},
               {SG_DTYPE_F16, 2, "f16"},
               {SG_DTYPE_BF16, 2, "bf16"},
               {SG_DTYPE_I8, 1, "i8"},
               {SG_DTYPE_I32, 4, "i32"},
               {SG_DTYPE_F8_E4M3, 1, "f8_e4m3"},
               {SG_DTYPE_F8_E5M2, 1, "f8_e5m2"},
               {0, 0, "unknown"},
               {11, 0, "unknown"},
               {-1, 0, "unknown"},
               {1 << 30, 0, "unknown"}};
  size_t i;
  for (i = 0; i < sizeof table / sizeof table[0]; ++i) {
    CHECK(sg_dtype_size((sg_dtype)table[i].type) == table[i].size);
    CHECK(strcmp(sg_dtype_name((sg_dtype)table[i].type), table[i].name) == 0);
  }
}

static void *message_of_a_fresh_thread(void *unused) {
  (void)unused;
  CHECK(strcmp(sg_last_error_message(), "") == 0);
  return NULL;
}

static void messages_belong_to_their_thread(void) {
  pthread_t thread;
  char before[600];
  sg_context *context = NULL;
  sg_context_options options = SG_CONTEXT_OPTIONS_INIT;
  CHECK(strcmp(sg_last_error_message(), "") == 0);
  CHECK_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_backend_count(NULL));
  CHECK(strstr(sg_last_error_message(), "out_count") != NULL);
  snprintf(before, sizeof before, "%s", sg_last_error_message());
  options.device = "cpu";
  REQUIRE_OK(sg_context_create(&options, &context));
  CHECK(strcmp(before, sg_last_error_message()) == 0); /* a success leaves the message unchanged */
  pthread_create(&thread, NULL, message_of_a_fresh_thread, NULL);
  pthread_join(thread, NULL);
  CHECK(strcmp(before, sg_last_error_message()) == 0);
  CHECK_STATUS(SG_STATUS_OK, sg_context_release(context));
}

static void backends_and_devices(void) {
  int32_t backends = 0, devices = 0, i;
  int cpu_seen = 0, sim_seen = 0, cpu_device = 0;
  REQUIRE_OK(sg_backend_count(&backends));
  for (i = 0; i < backends; ++i) {
    sg_backend_info info = SG_BACKEND_INFO_INIT;
    REQUIRE_OK(sg_backend_get_info(i, &info));
    CHECK(info.name[0] != '\0');
    CHECK((info.available == 1) == (info.reason[0] == '\0'));
    if (strcmp(info.name, "cpu") == 0) cpu_seen = info.available && strcmp(info.origin, "built in") == 0;
    if (strcmp(info.name, "sim") == 0) sim_seen = info.available && strcmp(info.origin, "built in") == 0;
  }
  CHECK(cpu_seen && sim_seen);
  REQUIRE_OK(sg_device_count(&devices));
  CHECK(devices >= 1);
  for (i = 0; i < devices; ++i) {
    sg_device_info info = SG_DEVICE_INFO_INIT, again = SG_DEVICE_INFO_INIT;
    sg_context_options options = SG_CONTEXT_OPTIONS_INIT;
    sg_context *context = NULL;
    REQUIRE_OK(sg_device_get_info(i, &info));
    CHECK(info.description[0] != '\0');
    CHECK(info.memory_bytes > 0 && info.compute_units >= 1 && info.compute_lanes >= 1 && info.priorities >= 1);
    if (info.unified_memory) {
      CHECK(info.copy_engines == 0 && info.link_in_bytes_per_second == 0);
    } else {
      CHECK(info.copy_engines >= 1 && info.link_in_bytes_per_second > 0 && info.link_out_bytes_per_second > 0);
    }
    CHECK(info.nvlinks >= -1 && info.nvlink_bytes_per_second >= 0 &&
          (info.mig[0] != '\0') == (strncmp(info.name, "cuda", 4) == 0) &&
          (info.uuid[0] != '\0') == (strncmp(info.name, "cuda", 4) == 0));
    if (strncmp(info.name, "cuda", 4) != 0) CHECK(info.nvlinks == 0 && info.peer_count == 0);
    if (strcmp(info.name, "cpu") == 0) cpu_device = info.unified_memory;
    options.device = info.name; /* the name that sg_context_create takes */
    REQUIRE_OK(sg_context_create(&options, &context));
    REQUIRE_OK(sg_context_get_device_info(context, 0, &again));
    CHECK(strcmp(info.name, again.name) == 0 && strcmp(info.description, again.description) == 0);
    CHECK(info.unified_memory == again.unified_memory && info.compute_units == again.compute_units);
    CHECK(info.compute_lanes == again.compute_lanes && info.copy_engines == again.copy_engines);
    CHECK(info.priorities == again.priorities);
    CHECK(info.link_in_bytes_per_second == again.link_in_bytes_per_second);
    CHECK(info.link_out_bytes_per_second == again.link_out_bytes_per_second);
    CHECK_STATUS(SG_STATUS_OK, sg_context_release(context));
  }
  CHECK(cpu_device);
}

int main(void) {
  char version[32];
  CHECK(sg_version() == SG_VERSION);
  sprintf(version, "%d.%d.%d", SG_VERSION_MAJOR, SG_VERSION_MINOR, SG_VERSION_PATCH);
  CHECK(strcmp(sg_version_string(), version) == 0);
  names_of_statuses();
  sizes_and_names_of_types();
  messages_belong_to_their_thread();
  backends_and_devices();
  return check_result();
}
