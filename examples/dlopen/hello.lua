-- SPDX-License-Identifier: Apache-2.0
-- The library from LuaJIT with nothing but its FFI: the declarations are the headers' own. Memory made by ffi.new is kept as
-- long as its variable is; keep it until the job has ended.
local ffi = require("ffi")

ffi.cdef[[
typedef struct sg_context sg_context;
typedef struct sg_job sg_job;
const char *sg_last_error_message(void);
int sg_context_create(const void *options, sg_context **out_context);
int sg_context_release(sg_context *context);
int sg_dgemm_async(sg_context *context, int layout, int op_a, int op_b, int64_t m, int64_t n, int64_t k, double alpha,
                   const double *a, int64_t lda, const double *b, int64_t ldb, double beta, double *c, int64_t ldc,
                   const void *submit, sg_job **out_job);
int sg_job_wait(sg_job *job, int64_t timeout_ns, int *out_status);
int sg_job_release(sg_job *job);
]]

local sg = ffi.load("libstreamgemm.so.0")
local ROW_MAJOR, NO_OP, FOREVER = 0, 0, -1

local function check(status)
  if status ~= 0 then error(ffi.string(sg.sg_last_error_message())) end
end

local a = ffi.new("double[6]", {1, 2, 3, 4, 5, 6})
local b = ffi.new("double[6]", {7, 8, 9, 10, 11, 12})
local c = ffi.new("double[4]")

local context, job = ffi.new("sg_context *[1]"), ffi.new("sg_job *[1]")
check(sg.sg_context_create(nil, context))
check(sg.sg_dgemm_async(context[0], ROW_MAJOR, NO_OP, NO_OP, 2, 2, 3, 1.0, a, 3, b, 2, 0.0, c, 2, nil, job))
check(sg.sg_job_wait(job[0], FOREVER, nil))
sg.sg_job_release(job[0])
sg.sg_context_release(context[0])

print(string.format("%g %g\n%g %g", c[0], c[1], c[2], c[3]))
assert(c[0] == 58 and c[1] == 64 and c[2] == 139 and c[3] == 154)
