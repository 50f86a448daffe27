/* SPDX-License-Identifier: Apache-2.0 */
/* Java's typemaps. Everything is generated as static native methods of one class, org.streamgemm.internal.Native, over
 * 64-bit integers; there are no proxies. org.streamgemm is the layer on top.
 *
 * A function that returns sg_status gives a long: the status (0, or one of the positive answers), or its output where it has
 * one. A double is returned as its bits (Double.longBitsToDouble). A failure is thrown.
 */
%module(jniclassname="Native") Raw
%{
#include "calls.h"
#include "relay.h"
#include <streamgemm/backend.h>
%}

%include "enumsimple.swg"
%javaconst(1);
%javaconst(0) SG_FOREVER; /* its literal is C's */
%pragma(java) jniclassclassmodifiers="public final class"
%pragma(java) jniclasscode=%{
  static {
    Loader.load();
  }

  private Native() {}

  /** Address of the first byte of a direct buffer's memory, wherever its position is; 0 when it has none. */
  public static native long address(java.nio.Buffer buffer);

  /** A direct buffer over memory with another owner. */
  public static native java.nio.ByteBuffer window(long address, long bytes);

  /** Text that ends with a NUL. */
  public static native byte[] text(long address);

  /** Ends a relay (relay.h) when the process exits. */
  public static native void endAtExit(long relay);
%}

%apply long long { int64_t, uint64_t, size_t };

/* Handles and addresses. */
%typemap(jni) void *SG_ADDRESS "jlong"
%typemap(jtype) void *SG_ADDRESS "long"
%typemap(jstype) void *SG_ADDRESS "long"
%typemap(in) void *SG_ADDRESS "$1 = ($1_ltype)(intptr_t)$input;"
%typemap(out) void *SG_ADDRESS "$result = (jlong)(intptr_t)$1;"
%typemap(javain) void *SG_ADDRESS "$javainput"
%typemap(javaout) void *SG_ADDRESS { return $jnicall; }
%typemap(freearg) void *SG_ADDRESS ""
%apply void *SG_ADDRESS { SWIGTYPE *, char *text };

/* A NUL, where C would end the text, is two bytes in the VM's form of UTF-8. */
%typemap(check) const char * {
  if ($1 && strstr($1, "\xC0\x80")) {
    (*jenv)->ReleaseStringUTFChars(jenv, $input, $1);
    sg_java_throw(jenv, SG_STATUS_INVALID_ARGUMENT, "\1$1_name holds a NUL", -1);
    return $null;
  }
}

/* A size is not negative; only outputs of the library use all bits. */
%typemap(check) uint64_t, size_t {
  if ((int64_t)$1 < 0) {
    char sg_text[96];
    snprintf(sg_text, sizeof sg_text, "\1$1_name is %lld; it must not be negative", (long long)$1);
    sg_java_throw(jenv, SG_STATUS_INVALID_ARGUMENT, sg_text, -1);
    return $null;
  }
}

/* Outputs become the result. */
%typemap(in, numinputs=0) sg_status *out_status "$1 = NULL;" /* the result is the status of the job */
%typemap(in, numinputs=0) void **SG_OUT_ADDRESS (void *made = NULL) "$1 = ($1_ltype)&made;"
%typemap(argout) void **SG_OUT_ADDRESS "if (result >= 0) $result = (jlong)(intptr_t)made$argnum;"

%define SG_OUT_NUMBER(TYPE, AS_LONG)
%typemap(in, numinputs=0) TYPE *OUTPUT (TYPE value = 0) "$1 = ($1_ltype)&value;"
%typemap(argout) TYPE *OUTPUT "if (result >= 0) $result = AS_LONG(value$argnum);"
%enddef
SG_OUT_NUMBER(int32_t, (jlong))
SG_OUT_NUMBER(int64_t, (jlong))
SG_OUT_NUMBER(uint64_t, (jlong))
SG_OUT_NUMBER(double, sg_java_bits)
%apply int32_t *OUTPUT { int32_t *out_count };

/* A failure is thrown; the wrapper then frees its memory, and returns. */
%typemap(jni) sg_status "jlong"
%typemap(jtype) sg_status "long"
%typemap(jstype) sg_status "long"
%typemap(in) sg_status "$1 = ($1_ltype)$input;"
%typemap(javain) sg_status "$javainput"
%typemap(javaout) sg_status { return $jnicall; }
%typemap(out) sg_status {
  $result = (jlong)$1;
  if ($1 < 0) sg_java_throw(jenv, $1, sg_last_error_marked(), -1);
}
%define SG_NAMES_ARGUMENTS(FUNCTION, CALL)
%typemap(out) sg_status FUNCTION {
  $result = (jlong)$1;
  if ($1 < 0) sg_java_throw(jenv, $1, sg_last_error_marked(), (jint)(CALL));
}
%enddef
SG_NAMES_ARGUMENTS(sg_call, arg1 == SG_CALL_NUMBER_plan_run ? *(const int64_t *)sg_at(arg3) : arg1)
SG_NAMES_ARGUMENTS(sg_call_plan_create, arg2)
SG_NAMES_ARGUMENTS(sg_call_supports, arg2)
SG_NAMES_ARGUMENTS(sg_call_graph_update, arg3)

%{
#include <stdio.h>
#include <string.h>

typedef char sg_java_needs_64_bits[sizeof(void *) == sizeof(jlong) ? 1 : -1];

static jlong sg_java_bits(double value) {
  jlong bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static jbyteArray sg_java_bytes(JNIEnv *jenv, const char *text) {
  const jsize length = (jsize)strlen(text);
  jbyteArray bytes = (*jenv)->NewByteArray(jenv, length);
  if (bytes) (*jenv)->SetByteArrayRegion(jenv, bytes, 0, length, (const jbyte *)text);
  return bytes;
}

/* Throws the exception made by org.streamgemm.internal.Failures; `call`: the number of an operation, whose arguments the
 * message names, or -1. A failure on the way is a Java exception already. */
static void sg_java_throw(JNIEnv *jenv, sg_status status, const char *message, jint call) {
  jbyteArray bytes;
  jmethodID method;
  jclass failures;
  if ((*jenv)->ExceptionCheck(jenv)) return;
  bytes = sg_java_bytes(jenv, message);
  failures = bytes ? (*jenv)->FindClass(jenv, "org/streamgemm/internal/Failures") : NULL;
  method = failures ? (*jenv)->GetStaticMethodID(jenv, failures, "raise", "(I[BI)V") : NULL;
  if (method) (*jenv)->CallStaticVoidMethod(jenv, failures, method, (jint)status, bytes, call);
}

JNIEXPORT jlong JNICALL Java_org_streamgemm_internal_Native_address(JNIEnv *jenv, jclass self, jobject buffer) {
  (void)self;
  return (jlong)(intptr_t)(*jenv)->GetDirectBufferAddress(jenv, buffer);
}

JNIEXPORT jobject JNICALL Java_org_streamgemm_internal_Native_window(JNIEnv *jenv, jclass self, jlong address,
                                                                    jlong bytes) {
  (void)self;
  return (*jenv)->NewDirectByteBuffer(jenv, sg_at(address), bytes);
}

JNIEXPORT jbyteArray JNICALL Java_org_streamgemm_internal_Native_text(JNIEnv *jenv, jclass self, jlong address) {
  (void)self;
  return sg_java_bytes(jenv, (const char *)sg_at(address));
}

JNIEXPORT jint JNICALL Java_org_streamgemm_internal_Loader_version(JNIEnv *jenv, jclass self) {
  (void)jenv;
  (void)self;
  return sg_version();
}

/* Of the folder beside the library where it looks for plugins: streamgemm/backend-N. */
JNIEXPORT jint JNICALL Java_org_streamgemm_internal_Loader_backendVersion(JNIEnv *jenv, jclass self) {
  (void)jenv;
  (void)self;
  return SG_BACKEND_ABI_VERSION;
}

/* Loads the plugins in that folder. */
JNIEXPORT void JNICALL Java_org_streamgemm_internal_Loader_loadPlugins(JNIEnv *jenv, jclass self) {
  int32_t count;
  (void)jenv;
  (void)self;
  sg_backend_count(&count);
}

/* The VM's one relay. */
static int64_t sg_java_relay;

static void sg_java_end_relay(void) { sg_relay_end(sg_java_relay, 0); }

/* Handlers run latest first: a library's handler that is registered later waits for calls that the VM's end has stopped. */
JNIEXPORT void JNICALL Java_org_streamgemm_internal_Native_endAtExit(JNIEnv *jenv, jclass self, jlong relay) {
  (void)jenv;
  (void)self;
  sg_java_relay = relay;
  atexit(sg_java_end_relay);
}
%}

/* Structs are laid out by bindings/api/java.py. */
%rename("$ignore", %$isclass) "";

%include "streamgemm.i"
%include "calls.h"
%include "relay.h"
