/* SPDX-License-Identifier: Apache-2.0 */
/* A Matrix from another library's tensor, and a tensor from a Matrix. */
#include "dlpack.h"

#include <stdlib.h>

#include "native.h"

static const struct {
  uint8_t code, bits;
  sg_dtype dtype;
} dl_types[] = {
    {DL_FLOAT, 64, SG_DTYPE_F64},
    {DL_FLOAT, 32, SG_DTYPE_F32},
    {DL_FLOAT, 16, SG_DTYPE_F16},
    {DL_BFLOAT, 16, SG_DTYPE_BF16},
    {DL_COMPLEX, 64, SG_DTYPE_C64},
    {DL_COMPLEX, 128, SG_DTYPE_C128},
    {DL_INT, 8, SG_DTYPE_I8},
    {DL_INT, 32, SG_DTYPE_I32},
    {DL_FLOAT8_E4M3FN, 8, SG_DTYPE_F8_E4M3},
    {DL_FLOAT8_E5M2, 8, SG_DTYPE_F8_E5M2},
};

static bool take_tensor(matrix_object *m, const dl_tensor *t) {
  if (t->ndim < 0 || t->ndim > MAX_DIMENSIONS)
    return raise_argument("a tensor has %d dimensions; at most %d are possible", (int)t->ndim, MAX_DIMENSIONS);
  if (t->ndim > 0 && !t->shape) return raise_argument("a tensor of %d dimensions has no shape", (int)t->ndim);
  for (size_t i = 0; i < sizeof dl_types / sizeof *dl_types && t->dtype.lanes == 1; ++i)
    if (dl_types[i].code == t->dtype.code && dl_types[i].bits == t->dtype.bits) m->of.dtype = dl_types[i].dtype;
  if (m->of.dtype == 0)
    return raise_argument(
        "a tensor's elements (DLPack type %d of %d bits, %d lanes) are of no type that is multiplied here",
        t->dtype.code, t->dtype.bits, t->dtype.lanes);
  const Py_ssize_t size = sg_dtype_size(m->of.dtype);
  Py_ssize_t tight = size;
  for (int i = t->ndim - 1; i >= 0; --i) {
    Py_ssize_t stride = tight;
    m->shape[i] = (Py_ssize_t)t->shape[i];
    if (m->shape[i] < 0) return raise_argument("a tensor has the extent %zd in dimension %d", m->shape[i], i);
    if ((t->strides && __builtin_mul_overflow(t->strides[i], size, &stride)) ||
        __builtin_mul_overflow(tight, m->shape[i] ? m->shape[i] : 1, &tight))
      return raise_argument("a tensor is too large in dimension %d", i);
    m->strides[i] = stride;
  }
  uintptr_t first = (uintptr_t)t->data;
  if (t->data && __builtin_add_overflow(first, t->byte_offset, &first))
    return raise_argument("a tensor begins %llu bytes behind its memory", (unsigned long long)t->byte_offset);
  m->of.ndim = t->ndim;
  m->of.data = (void *)first;
  m->of.device_id = t->device.id;
  m->of.place = t->device.type == ON_CUDA_HOST ? ON_HOST : t->device.type;
  if (m->of.place != ON_HOST && m->of.place != ON_CUDA)
    return raise_argument("a tensor is on a device of DLPack's type %d; the host (1) and CUDA devices (2) are known",
                          (int)t->device.type);
  return sound(&m->of, "a tensor");
}

/* Takes a capsule over: from here on the Matrix releases its memory. */
bool take_capsule(matrix_object *m, PyObject *capsule) {
  m->versioned = PyCapsule_IsValid(capsule, "dltensor_versioned");
  const char *name = m->versioned ? "dltensor_versioned" : "dltensor";
  void *managed = PyCapsule_GetPointer(capsule, name);
  if (!managed) return false;
  const dl_managed_versioned *v = managed;
  if (m->versioned && v->major != DL_MAJOR) return raise_argument("a tensor is of DLPack %d", (int)v->major);
  m->of.readonly = m->versioned && (v->flags & DL_FLAG_READ_ONLY) != 0;
  if (!take_tensor(m, m->versioned ? &v->tensor : &((dl_managed *)managed)->tensor)) return false;
  if (PyCapsule_SetName(capsule, m->versioned ? "used_dltensor_versioned" : "used_dltensor") < 0) return false;
  m->managed = managed;
  return true;
}

void release_tensor(matrix_object *m) {
  dl_managed *plain = m->managed;
  dl_managed_versioned *versioned = m->managed;
  if (m->versioned && versioned->release) versioned->release(versioned);
  if (!m->versioned && plain->release) plain->release(plain);
}

/* Export through DLPack: the consumer's tensor keeps the Matrix. */
typedef struct exported {
  dl_managed plain;
  dl_managed_versioned versioned;
  int64_t shape[MAX_DIMENSIONS], strides[MAX_DIMENSIONS];
  PyObject *of;
} exported;

static void exported_free(exported *e) {
  if (!Py_IsInitialized()) return; /* the process is exiting, and its memory is freed with it */
  PyGILState_STATE state = PyGILState_Ensure();
  Py_DECREF(e->of);
  PyGILState_Release(state);
  free(e);
}

static void release_plain(dl_managed *m) { exported_free(m->manager); }
static void release_versioned(dl_managed_versioned *m) { exported_free(m->manager); }

static void capsule_dropped(PyObject *capsule) { /* no consumer took it */
  if (PyCapsule_IsValid(capsule, "dltensor")) {
    release_plain(PyCapsule_GetPointer(capsule, "dltensor"));
  } else if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
    release_versioned(PyCapsule_GetPointer(capsule, "dltensor_versioned"));
  }
}

PyObject *matrix_export(PyObject *self, PyObject *args) {
  matrix_object *m = (matrix_object *)self;
  int versioned;
  if (!PyArg_ParseTuple(args, "p", &versioned)) return NULL;
  if (m->of.place != ON_HOST && m->of.place != ON_CUDA)
    return PyErr_Format(PyExc_BufferError, "this memory is on a device that DLPack does not know");
  if (!versioned && m->of.readonly)
    return PyErr_Format(PyExc_BufferError, "DLPack before 1.0 cannot say that memory is read-only");
  exported *e = calloc(1, sizeof *e);
  if (!e) return PyErr_NoMemory();
  dl_tensor t = {.data = m->of.data,
                 .device = {m->of.place, m->of.device_id},
                 .ndim = m->of.ndim,
                 .shape = e->shape,
                 .strides = e->strides,
                 .dtype = {.lanes = 1}};
  for (size_t i = 0; i < sizeof dl_types / sizeof *dl_types; ++i) {
    if (dl_types[i].dtype != m->of.dtype) continue;
    t.dtype.code = dl_types[i].code;
    t.dtype.bits = dl_types[i].bits;
  }
  for (int i = 0; i < m->of.ndim; ++i) {
    e->shape[i] = m->shape[i];
    e->strides[i] = m->strides[i] / sg_dtype_size(m->of.dtype);
  }
  e->plain = (dl_managed){t, e, release_plain};
  e->versioned =
      (dl_managed_versioned){DL_MAJOR, DL_MINOR, e, release_versioned, m->of.readonly ? DL_FLAG_READ_ONLY : 0, t};
  PyObject *capsule = versioned ? PyCapsule_New(&e->versioned, "dltensor_versioned", capsule_dropped)
                                : PyCapsule_New(&e->plain, "dltensor", capsule_dropped);
  if (!capsule) {
    free(e);
    return NULL;
  }
  e->of = Py_NewRef(self);
  return capsule;
}
