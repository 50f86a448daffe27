/* SPDX-License-Identifier: Apache-2.0 */
/* A profiler as NVTX loads it: it counts ranges. */
#include <nvtx3/nvToolsExt.h>
#include <stdatomic.h>
#include <string.h>

__attribute__((visibility("default"))) atomic_int nvtx_pushed, nvtx_popped, nvtx_started, nvtx_ended, nvtx_labelled;

static nvtxDomainHandle_t create(const char *name) {
  return strcmp(name, "StreamGEMM") == 0 ? (nvtxDomainHandle_t)&nvtx_pushed : NULL;
}
static int push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *what) {
  (void)domain;
  (void)what;
  return nvtx_pushed++;
}
static int pop(nvtxDomainHandle_t domain) {
  (void)domain;
  return nvtx_popped++;
}
static nvtxRangeId_t start(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *what) {
  (void)domain;
  if (strcmp(what->message.ascii, "by hand") == 0) ++nvtx_labelled;
  return (nvtxRangeId_t)nvtx_started++; /* 0 too is an identifier */
}
static void end(nvtxDomainHandle_t domain, nvtxRangeId_t id) {
  (void)domain;
  (void)id;
  ++nvtx_ended;
}

__attribute__((visibility("default"))) int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_export_table);
int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_export_table) {
  const NvtxExportTableCallbacks *const callbacks = get_export_table(NVTX_ETID_CALLBACKS);
  NvtxFunctionTable table = NULL;
  unsigned size = 0;
  if (!callbacks || !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size)) return 0;
  *table[NVTX_CBID_CORE2_DomainCreateA] = (NvtxFunctionPointer)create;
  *table[NVTX_CBID_CORE2_DomainRangePushEx] = (NvtxFunctionPointer)push;
  *table[NVTX_CBID_CORE2_DomainRangePop] = (NvtxFunctionPointer)pop;
  *table[NVTX_CBID_CORE2_DomainRangeStartEx] = (NvtxFunctionPointer)start;
  *table[NVTX_CBID_CORE2_DomainRangeEnd] = (NvtxFunctionPointer)end;
  return 1;
}
