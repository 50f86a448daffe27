/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the wrappers of all languages. A language's own file (python/python.i, ...) names the module, defines the
 * typemaps below for its types, and includes this one. The public headers are the source: a new function, enumerator,
 * struct or handle needs nothing here.
 *
 * A language defines, before it includes this file:
 *
 *   void *SG_ADDRESS           in, out: a handle, an address or an array of handles as a 64-bit integer, 0 for NULL. Users never see it.
 *   void **SG_OUT_ADDRESS      an output: the stored pointer, as a 64-bit integer.
 *   int32_t *OUTPUT, int64_t *OUTPUT, uint64_t *OUTPUT, double *OUTPUT   outputs; most come with SWIG's typemaps.i.
 *   sg_status                  out: throws the language's exception for a negative status, with its name and
 *                              sg_last_error_message(); returns the other statuses (such as SG_STATUS_NOT_READY).
 *   int64_t, uint64_t, size_t  the language's 64-bit integer, where SWIG's own choice is narrower or boxed.
 *
 * and may define SG_QUICK(function) and SG_BLOCKS(function), which are called for each function: whether it may be called
 * while a lock of the language's runtime is held.
 *
 * Ownership: a returned handle is one reference; the layer on top releases it by sg_..._release, once. Nothing generated owns
 * a handle. The info and option structs are proxies; a new one holds its SG_..._INIT.
 */
%{
#include <stdlib.h>
#include <string.h>
#include <streamgemm/streamgemm.h>
%}

%include <stdint.i>
#define INT64_C(VALUE) VALUE ## LL /* for SG_FOREVER; stdint.i has no such macro */

#ifndef SG_QUICK
#define SG_QUICK(FUNCTION)
#endif
#ifndef SG_BLOCKS
#define SG_BLOCKS(FUNCTION)
#endif

/* Handles and addresses are integers everywhere, so no proxy class ever holds (or frees) one. */
%define SG_HANDLE(TYPE)
%apply void *SG_ADDRESS { TYPE * };
%apply void **SG_OUT_ADDRESS { TYPE ** };
%apply void *SG_ADDRESS { TYPE *const * };
%typemap(argout) TYPE *const * ""
%ignore TYPE;
%enddef

%apply void *SG_ADDRESS { void *, const void *, void *const *, const float *, const double *, float *c, double *c };
%apply void **SG_OUT_ADDRESS { void ** };
%apply int32_t *OUTPUT { int32_t *out_supports }; /* of calls.h */

/* A struct that begins with its size: a new one has the header's initial value; the wrapper's copies are freed with it. */
%define SG_STRUCT(TYPE, INITIAL, RELEASE_STRINGS)
%extend TYPE {
  TYPE() {
    const TYPE initial = INITIAL;
    TYPE *self = (TYPE *)malloc(sizeof *self);
    if (self) *self = initial;
    return self;
  }
  ~TYPE() {
    RELEASE_STRINGS
    free((void *)self);
  }
}
%enddef

/* An array of structs in a struct: the entries one by one, in a proxy that is valid as long as that of the struct. */
%define SG_STRUCT_ARRAY(TYPE, ENTRY, ARRAY, ONE)
%ignore TYPE::ARRAY;
%extend TYPE {
  ENTRY *ONE(int32_t index) { return &self->ARRAY[index]; }
}
%enddef

/* An array of addresses in a struct that the library fills, one by one. */
%define SG_ADDRESS_ARRAY(TYPE, ARRAY, ONE)
%ignore TYPE::ARRAY;
%extend TYPE {
  void *ONE(int32_t index) { return self->ARRAY[index]; }
}
%enddef

%ignore sg_last_error; /* the marked text, on the thread of the call */
%ignore sg_struct_init; /* a new proxy has the initial value */
%ignore struct_size;
%ignore reserved;

/* A string member belongs to the proxy, which holds a copy of its own. */
%typemap(memberin) const char * {
  free((void *)$1);
  $1 = $input ? strdup((const char *)$input) : NULL;
}
%warnfilter(451) device; /* "may leak": SG_STRUCT frees it */

%include "headers.i"
