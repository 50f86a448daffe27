/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file export.h
 * @brief Linkage of the public functions. Applications include <streamgemm/streamgemm.h>.
 */
#ifndef STREAMGEMM_EXPORT_H
#define STREAMGEMM_EXPORT_H

/** Marks a function that libstreamgemm.so exports; everything else in the library is hidden. */
#if defined(__GNUC__)
#define SG_API __attribute__((visibility("default")))
#else
#define SG_API
#endif

#ifdef __cplusplus
/** Opens the C linkage block of a public header. */
#define SG_BEGIN_DECLS extern "C" {
/** Closes it. */
#define SG_END_DECLS }
#else
/** Opens the C linkage block of a public header. */
#define SG_BEGIN_DECLS
/** Closes it. */
#define SG_END_DECLS
#endif

#endif /* STREAMGEMM_EXPORT_H */
