/* Preloaded into a process: the Nth change of a file below a folder fails, or kills the process.
 *
 * A change is a write, a sync, a truncation, a rename or a removal. arm_faults() begins to count,
 * disarm_faults() ends it and returns the number of changes that were seen. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static char folder[4096];
static long count, first;   /* changes so far; the first one that fails; 0: none */
static int error, has_end;  /* errno, or 0 to kill; whether only one change fails */

void arm_faults(const char *below, long number, int code, int only_one) {
    snprintf(folder, sizeof folder, "%s/", below);
    count = 0, first = number, error = code, has_end = only_one;
}

long disarm_faults(void) {
    folder[0] = 0;
    return count;
}

static int is_hit(const char *path) {
    if (!folder[0] || !path || strncmp(path, folder, strlen(folder))) return 0;
    count++;
    return first && (has_end ? count == first : count >= first);
}

static int is_hit_descriptor(int descriptor) {
    char link[64], path[4096];
    if (!folder[0]) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return is_hit(path);
}

static int fail(void) {
    if (!error) kill(getpid(), SIGKILL);
    errno = error;
    return -1;
}

#define REAL(name) ((__typeof__(name) *)dlsym(RTLD_NEXT, #name))

/* Half of a write reaches the file before it fails, as on a full disk or in a power cut. */
ssize_t write(int descriptor, const void *bytes, size_t size) {
    if (!is_hit_descriptor(descriptor)) return REAL(write)(descriptor, bytes, size);
    if (size > 1 && REAL(write)(descriptor, bytes, size / 2) < 0) return -1;
    return fail();
}

ssize_t pwrite64(int descriptor, const void *bytes, size_t size, off64_t at) {
    if (!is_hit_descriptor(descriptor)) return REAL(pwrite64)(descriptor, bytes, size, at);
    if (size > 1 && REAL(pwrite64)(descriptor, bytes, size / 2, at) < 0) return -1;
    return fail();
}

ssize_t pwrite(int descriptor, const void *bytes, size_t size, off_t at) {
    return pwrite64(descriptor, bytes, size, at);
}

int fsync(int descriptor) {
    return is_hit_descriptor(descriptor) ? fail() : REAL(fsync)(descriptor);
}

int fdatasync(int descriptor) {
    return is_hit_descriptor(descriptor) ? fail() : REAL(fdatasync)(descriptor);
}

int ftruncate64(int descriptor, off64_t size) {
    return is_hit_descriptor(descriptor) ? fail() : REAL(ftruncate64)(descriptor, size);
}

int ftruncate(int descriptor, off_t size) {
    return ftruncate64(descriptor, size);
}

int rename(const char *from, const char *to) {
    return is_hit(from) ? fail() : REAL(rename)(from, to);
}

int unlink(const char *path) {
    return is_hit(path) ? fail() : REAL(unlink)(path);
}
