/* SPDX-License-Identifier: Apache-2.0 */
/* The contents of matrices in host memory, as hashes: a matrix is lines of bytes, which are hashed in chunks. Only
   bytes of the matrix itself are read, and not the gaps between its lines. */
#ifndef STREAMGEMM_BLAS_CONTENTS_H
#define STREAMGEMM_BLAS_CONTENTS_H

#include "hash.h"

typedef struct sg_blas_lines {
  const char *first;
  size_t width, height, pitch; /* bytes of a line, lines, bytes from one line to the next */
  /* 0: a call reads all of it. Else which part: the program may write the rest during the call, so that in a copy made
     meanwhile the rest is anything. */
  unsigned part;
} sg_blas_lines;

static inline size_t sg_blas_bytes_of(const sg_blas_lines *of) { return of->width * of->height; }
/* Bytes from the first to behind the last one, gaps included. */
static inline size_t sg_blas_span_of(const sg_blas_lines *of) { return (of->height - 1) * of->pitch + of->width; }

/* Whether two matrices may have a byte in common: exact if their pitch is the same. */
bool sg_blas_lines_overlap(const sg_blas_lines *one, const sg_blas_lines *other);
/* Whether this build can hash. */
bool sg_blas_can_hash(void);
size_t sg_blas_chunk_count(const sg_blas_lines *of);
/* Chunk `index`: whole lines, or a part of one line. */
sg_blas_lines sg_blas_chunk(const sg_blas_lines *of, size_t index);
/* The same chunks of a copy at `first` with another pitch. */
char *sg_blas_chunk_in_copy(const sg_blas_lines *of, size_t index, char *first, size_t pitch);
/* Hashes all chunks. */
void sg_blas_hash_chunks(const sg_blas_lines *of, sg_blas_hash hashes[]);
/* Hashes all chunks into `fresh` and compares them with `known`: the number that differ, with differs[i] of each. It
   ends early, with more than half of the count, if most of the first ones differ; then `fresh` is not complete. */
size_t sg_blas_compare_chunks(const sg_blas_lines *of, const sg_blas_hash known[], sg_blas_hash fresh[],
                              unsigned char differs[]);
/* The same of the chunks with differs[i] alone, without an early end: `fresh` is complete for these. */
size_t sg_blas_compare_some(const sg_blas_lines *of, const sg_blas_hash known[], sg_blas_hash fresh[],
                            unsigned char differs[]);
/* Sets marks[i] of each chunk that has a byte in a range. */
void sg_blas_mark_chunks(const sg_blas_lines *of, const char *first, size_t bytes, unsigned char marks[]);
/* A hash of a few places of it: different if most of it was replaced. */
sg_blas_hash sg_blas_sample(const sg_blas_lines *of);

#endif
