/* SPDX-License-Identifier: Apache-2.0 */
/* A CUDA driver of one GPU that writes the process's pageable memory. */
int cuDeviceGetCount(int *count);
int cuDeviceGetAttribute(int *value, int attribute, int device);

int cuDeviceGetCount(int *count) {
  *count = 1;
  return 0;
}

int cuDeviceGetAttribute(int *value, int attribute, int device) {
  *value = device == 0 && attribute == 88; /* CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS */
  return 0;
}
