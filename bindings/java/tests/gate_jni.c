/* SPDX-License-Identifier: Apache-2.0 */
/* The gates of the C tests for org.streamgemm.Gate. */
#include <jni.h>
#include <stdint.h>

#include "support/gate.h"

static gate *of(jlong handle) { return (gate *)(intptr_t)handle; }

JNIEXPORT jlong JNICALL Java_org_streamgemm_Gate_make(JNIEnv *env, jclass self, jlong bytes) {
  (void)env, (void)self;
  return (jlong)(intptr_t)gate_new((size_t)bytes);
}

JNIEXPORT jobject JNICALL Java_org_streamgemm_Gate_memory(JNIEnv *env, jclass self, jlong handle, jlong bytes) {
  (void)self;
  return (*env)->NewDirectByteBuffer(env, gate_memory(of(handle)), bytes);
}

JNIEXPORT jobject JNICALL Java_org_streamgemm_Gate_content(JNIEnv *env, jclass self, jlong handle, jlong bytes) {
  (void)self;
  return (*env)->NewDirectByteBuffer(env, gate_content(of(handle)), bytes);
}

JNIEXPORT void JNICALL Java_org_streamgemm_Gate_open(JNIEnv *env, jclass self, jlong handle) {
  (void)env, (void)self;
  gate_open(of(handle));
}
