#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The library from Python with nothing but ctypes: handles are pointers, statuses are ints, 0 is success. The package
streamgemm does this for you and keeps operands alive; here that is this program's own duty."""

import ctypes
from ctypes import byref, c_double, c_int, c_int64, c_void_p

lib = ctypes.CDLL("libstreamgemm.so.0")
lib.sg_last_error_message.restype = ctypes.c_char_p
lib.sg_context_create.argtypes = [c_void_p, c_void_p]
lib.sg_dgemm_async.argtypes = [
    c_void_p,
    c_int,
    c_int,
    c_int,
    c_int64,
    c_int64,
    c_int64,
    c_double,
    c_void_p,
    c_int64,
    c_void_p,
    c_int64,
    c_double,
    c_void_p,
    c_int64,
    c_void_p,
    c_void_p,
]
lib.sg_job_wait.argtypes = [c_void_p, c_int64, c_void_p]
lib.sg_job_release.argtypes = lib.sg_context_release.argtypes = [c_void_p]

ROW_MAJOR, NO_OP, FOREVER = 0, 0, -1


def check(status):
    if status != 0:
        raise SystemExit(lib.sg_last_error_message().decode())


a = (c_double * 6)(1, 2, 3, 4, 5, 6)  # 2 x 3
b = (c_double * 6)(7, 8, 9, 10, 11, 12)  # 3 x 2
c = (c_double * 4)()

context, job = c_void_p(), c_void_p()
check(lib.sg_context_create(None, byref(context)))
check(lib.sg_dgemm_async(context, ROW_MAJOR, NO_OP, NO_OP, 2, 2, 3, 1.0, a, 3, b, 2, 0.0, c, 2, None, byref(job)))
check(lib.sg_job_wait(job, FOREVER, None))
lib.sg_job_release(job)
lib.sg_context_release(context)

print(f"{c[0]:g} {c[1]:g}\n{c[2]:g} {c[3]:g}")
assert list(c) == [58, 64, 139, 154]
