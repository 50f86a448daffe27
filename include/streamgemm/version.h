/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file version.h
 * @brief Versions of the headers that a program was compiled with and of the library that it runs with.
 *
 * The first release is 0.9. What is newer names its first version in its comment, as "Since 0.10."
 */
#ifndef STREAMGEMM_VERSION_H
#define STREAMGEMM_VERSION_H

#include <stdint.h>

#include <streamgemm/export.h>

/** Version of this header: major. A version that breaks the ABI has another soname. */
#define SG_VERSION_MAJOR 0
/** Version of this header: minor. Grows with additions. */
#define SG_VERSION_MINOR 9
/** Version of this header: patch. Grows with corrections. */
#define SG_VERSION_PATCH 0
/** The soname's number: libstreamgemm.so.1. */
#define SG_SOVERSION 1
/** One comparable number: major * 1000000 + minor * 1000 + patch. */
#define SG_VERSION (SG_VERSION_MAJOR * 1000000 + SG_VERSION_MINOR * 1000 + SG_VERSION_PATCH)

/** Whether these headers are of at least that version, for the preprocessor: `#if SG_VERSION_AT_LEAST(1, 2)`. */
#define SG_VERSION_AT_LEAST(MAJOR, MINOR) (SG_VERSION >= (MAJOR) * 1000000 + (MINOR) * 1000)

SG_BEGIN_DECLS

/**
 * The version of the library in use, as SG_VERSION is formed.
 * Never blocks. Any thread.
 */
SG_API int32_t sg_version(void);

/**
 * The version of the library in use as text, for instance "0.9.0".
 * @return A static string.
 * Never blocks. Any thread.
 */
SG_API const char *sg_version_string(void);

SG_END_DECLS

#endif /* STREAMGEMM_VERSION_H */
