/* SPDX-License-Identifier: Apache-2.0 */
#include <dlfcn.h>

#include "native.h"

/* Waits, without the GIL, until the work queued on a CUDA stream has completed. Uses the driver that the operand's
 * producer has loaded; this library links none. */
PyObject *synchronize_producer(PyObject *self, PyObject *args) {
  typedef int retain_fn(void **, int);
  typedef int push_fn(void *);
  typedef int pop_fn(void **);
  typedef int wait_fn(void *);
  typedef int release_fn(int);
  int device;
  unsigned long long stream;
  (void)self;
  if (!PyArg_ParseTuple(args, "iK", &device, &stream)) return NULL;
  void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  retain_fn *retain;
  push_fn *push;
  pop_fn *pop;
  wait_fn *wait;
  release_fn *release;
  const struct {
    const char *name;
    void *function;
  } wanted[] = {{"cuDevicePrimaryCtxRetain", &retain},
                {"cuCtxPushCurrent_v2", &push},
                {"cuCtxPopCurrent_v2", &pop},
                {"cuStreamSynchronize", &wait},
                {"cuDevicePrimaryCtxRelease_v2", &release}};
  for (size_t i = 0; i < sizeof wanted / sizeof *wanted; ++i) {
    void *symbol = driver ? dlsym(driver, wanted[i].name) : NULL;
    if (!symbol)
      return raise_status(SG_STATUS_NO_DEVICE, "an operand is on a CUDA device, but libcuda.so.1 is not loaded");
    memcpy(wanted[i].function, &symbol, sizeof symbol);
  }
  void *context = NULL;
  int failure;
  Py_BEGIN_ALLOW_THREADS
  failure = retain(&context, device);
  if (!failure) {
    failure = push(context);
    if (!failure) {
      failure = wait((void *)(uintptr_t)stream);
      pop(&context);
    }
    release(device);
  }
  Py_END_ALLOW_THREADS
  if (failure) {
    char text[80];
    snprintf(text, sizeof text, "waiting for the stream of an operand's producer failed (CUDA error %d)", failure);
    return raise_status(SG_STATUS_BACKEND_FAILURE, text);
  }
  Py_RETURN_NONE;
}
