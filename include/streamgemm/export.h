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

#if defined(__cplusplus) || (defined(__STDC_VERSION__) && __STDC_VERSION__ >= 202311L)
/** Stands behind the name of each enum: its type is int, so that every value of 32 bits may be given. */
#define SG_ENUM_INT : int
#else
/** Stands behind the name of each enum, whose type the compiler chooses. */
#define SG_ENUM_INT
/** Does not compile if that is not 32 bits wide, as with -fshort-enums: the library's enums are. */
#define SG_ENUM_CHECK typedef char sg_enums_have_32_bits[sizeof(enum { SG_ENUM_OF_32_BITS }) == 4 ? 1 : -1];
#ifndef SWIG /* whose parser does not know an enum there */
SG_ENUM_CHECK
#endif
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
