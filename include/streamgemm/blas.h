/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file blas.h
 * @brief Functions of the drop-in BLAS, libstreamgemm-blas.so, which a program finds by dlsym; libstreamgemm.so has none of them.
 *
 * The drop-in BLAS (docs/blas.md) answers to the names of level 3 of BLAS and CBLAS. It computes calls on the device where that is
 * faster, and passes the others to the CPU BLAS: the library that would have been called without it.
 */
#ifndef STREAMGEMM_BLAS_H
#define STREAMGEMM_BLAS_H

#include <stdint.h>

#include <streamgemm/export.h>
#include <streamgemm/status.h>
#include <streamgemm/version.h>

SG_BEGIN_DECLS

/**
 * The version of the drop-in BLAS, as SG_VERSION is formed. A library that defines this function is a dispatcher, and no CPU BLAS.
 * Never blocks. Any thread.
 */
SG_API int32_t sg_blas_version(void);

/**
 * The CPU BLAS's function of a name: the one that calls below the threshold reach.
 * @param name A name as BLAS libraries export it: "dgemm_", "cblas_sgemv", "scipy_cblas_dgemm64_".
 * @return Its address; NULL if no library has it.
 * Blocks at the first call with a name, while libraries are opened. Any thread.
 */
SG_API void *sg_blas_cpu_function(const char *name);

/**
 * Sets the CPU BLAS's function of a name of level 3, for a program that replaces functions in a dispatcher of its own.
 * @param name A name that the drop-in BLAS exports.
 * @param address The function; NULL: it is looked for again at the next call.
 * @return SG_STATUS_OK, or SG_STATUS_INVALID_ARGUMENT: the drop-in BLAS exports no such name. Never blocks. Any thread.
 */
SG_API sg_status sg_blas_set_cpu_function(const char *name, void *address);

/**
 * What the calls of this process did, as JSON (docs/blas.md). Calls are counted only with the variable SG_BLAS_REPORT.
 * @param[out] text Receives at most `size` bytes with the NUL; may be NULL when size is 0.
 * @param size Bytes of `text`.
 * @param[out] out_size Bytes that the whole text needs with its NUL; may be NULL.
 * @return SG_STATUS_OK (also if the text was truncated: compare *out_size), or SG_STATUS_INVALID_ARGUMENT: `text` is NULL and
 * `size` is not 0. Never blocks. Any thread.
 */
SG_API sg_status sg_blas_report(char *text, uint64_t size, uint64_t *out_size);

/**
 * Whether calls of the calling thread may go to the device; at first they may.
 * @param on 0: all of them go to the CPU BLAS, and are not counted.
 * @return What it was before, 0 or 1. Never blocks. Any thread.
 */
SG_API int32_t sg_blas_enable(int32_t on);

/**
 * Frees the device's copies of operands that the range touches. Never needed for right results: a copy is compared with its operand
 * at each use. It returns their device memory at once.
 * @param memory The first byte; NULL is a no-op.
 * @param bytes Size; 0 is a no-op.
 * Never blocks on work in flight. Any thread.
 */
SG_API void sg_blas_forget(const void *memory, uint64_t bytes);

SG_END_DECLS

#endif /* STREAMGEMM_BLAS_H */
