/*
 * Preloaded into processes of the service by tests: counts the calls by which they read and write files of one folder, in
 * all processes together, and lets one of them fail, or all from there on.
 *
 * FAILING_FOLDER  whose files
 * FAILING_COUNTER a file of eight bytes: how many calls there were
 * FAILING_AT      which call fails, from 1; 0: none
 * FAILING_ERRNO   with what
 * FAILING_ON      "1": so do all after it
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

static const char *folder;
static size_t folder_length;
static unsigned long *counter;
static unsigned long fails_at;
static int fails_with, goes_on;

__attribute__((constructor)) static void begin(void) {
  folder = getenv("FAILING_FOLDER");
  const char *path = getenv("FAILING_COUNTER");
  if (folder == NULL || path == NULL) return;
  int fd = (int)(((int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open"))(path, O_RDWR | O_CLOEXEC));
  if (fd < 0) return;
  void *map = mmap(NULL, sizeof *counter, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (map == MAP_FAILED) return;
  folder_length = strlen(folder);
  fails_at = strtoul(getenv("FAILING_AT"), NULL, 10);
  fails_with = atoi(getenv("FAILING_ERRNO"));
  goes_on = strcmp(getenv("FAILING_ON"), "1") == 0;
  counter = map;
}

static int fails(const char *path) {
  if (counter == NULL || strncmp(path, folder, folder_length) != 0) return 0;
  unsigned long at = __atomic_add_fetch(counter, 1, __ATOMIC_SEQ_CST);
  if (fails_at == 0 || at < fails_at || (at > fails_at && !goes_on)) return 0;
  errno = fails_with;
  return 1;
}

static int fails_of(int fd) {
  if (counter == NULL || fd < 3) return 0;
  int before = errno;
  char link[32], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, sizeof path - 1);
  errno = before;
  if (length < 0) return 0;
  path[length] = 0;
  return fails(path);
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define OF_FD(type, name, parameters, arguments) \
  type name parameters {                         \
    static __typeof__(&name) real;               \
    if (real == NULL) real = REAL(name);         \
    return fails_of(fd) ? -1 : real arguments;   \
  }

OF_FD(ssize_t, read, (int fd, void *to, size_t n), (fd, to, n))
OF_FD(ssize_t, write, (int fd, const void *from, size_t n), (fd, from, n))
OF_FD(ssize_t, pread64, (int fd, void *to, size_t n, off64_t at), (fd, to, n, at))
OF_FD(ssize_t, pwrite64, (int fd, const void *from, size_t n, off64_t at), (fd, from, n, at))
OF_FD(ssize_t, writev, (int fd, const struct iovec *from, int n), (fd, from, n))
OF_FD(int, fsync, (int fd), (fd))
OF_FD(int, fdatasync, (int fd), (fd))
OF_FD(int, ftruncate64, (int fd, off64_t length), (fd, length))

int unlink(const char *path) { return fails(path) ? -1 : REAL(unlink)(path); }

int open64(const char *path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  mode_t mode = va_arg(rest, mode_t);
  va_end(rest);
  return fails(path) ? -1 : REAL(open64)(path, flags, mode);
}

int open(const char *path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  mode_t mode = va_arg(rest, mode_t);
  va_end(rest);
  return fails(path) ? -1 : REAL(open)(path, flags, mode);
}
