/* What stands between a JVM and its machine, loaded by LD_PRELOAD: files that are held up, a log of
   what was synced, a clock that is wrong. tests/support/machine/shim.py compiles and commands it.

   Calls on files whose path contains one of KWIRE_SHIM_HELD (divided by ":") are held while the word
   of their kind in the control file is not 0; the word behind it counts who waits. Of reads, those of
   64 KB and more: as a coordinator loads, and not as a log is opened. A sync that is
   over, and a rename, of files whose path contains KWIRE_SHIM_FILES are a line each in KWIRE_SHIM_LOG:
   "S size path", "R path\tpath".

   control: offset  0 reads held    8 reads waiting    16 writes held   24 writes waiting
                   32 syncs held   40 syncs waiting    48 milliseconds that the clock is ahead */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { READ_BYTES_MIN = 65536 };
enum { READS = 0, WRITES = 2, SYNCS = 4, SKEW_MS = 6, WORDS = 7 };

static volatile int64_t *control;
static const char *watched;
static char *held[8];
static int log_fd = -1;

static void *next(const char *name) { return dlsym(RTLD_NEXT, name); }

__attribute__((constructor)) static void begin(void) {
  const char *path = getenv("KWIRE_SHIM_CONTROL");
  const char *log = getenv("KWIRE_SHIM_LOG");
  watched = getenv("KWIRE_SHIM_FILES");
  char *names = getenv("KWIRE_SHIM_HELD") ? strdup(getenv("KWIRE_SHIM_HELD")) : 0;
  for (int at = 0; at < 7 && names && (held[at] = strsep(&names, ":")); at++) continue;
  if (log) log_fd = open(log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
  if (fd < 0) return;
  void *at = mmap(0, WORDS * 8, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (at != MAP_FAILED) control = at;
}

static int path_of(int fd, char *path) {
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t size = readlink(link, path, PATH_MAX - 1);
  if (size <= 0) return 0;
  path[size] = 0;
  return 1;
}

static int is_held(const char *path) {
  for (int at = 0; held[at]; at++)
    if (strstr(path, held[at])) return 1;
  return 0;
}

static void hold(int fd, int kind) {
  char path[PATH_MAX];
  if (!control || !control[kind] || !path_of(fd, path) || !is_held(path)) return;
  __sync_fetch_and_add(&control[kind + 1], 1);
  struct timespec pause = {0, 2000000};
  while (control[kind]) nanosleep(&pause, 0);
  __sync_fetch_and_sub(&control[kind + 1], 1);
}

static void note(const char *line, int size) {
  static ssize_t (*real)(int, const void *, size_t);
  if (!real) real = next("write");
  if (log_fd >= 0 && real(log_fd, line, size) != size) abort();
}

static void note_sync(int fd) {
  char path[PATH_MAX], line[PATH_MAX + 64];
  struct stat found;
  if (log_fd < 0 || !watched || !path_of(fd, path) || !strstr(path, watched)) return;
  if (fstat(fd, &found)) return;
  note(line, snprintf(line, sizeof line, "S %lld %s\n", (long long)found.st_size, path));
}

#define HELD(kind, result, name, parameters, arguments)      \
  result name parameters {                                   \
    static result(*real) parameters;                         \
    if (!real) real = next(#name);                           \
    if (kind != READS || n >= READ_BYTES_MIN) hold(fd, kind); \
    return real arguments;                                   \
  }

HELD(READS, ssize_t, read, (int fd, void *b, size_t n), (fd, b, n))
HELD(READS, ssize_t, pread, (int fd, void *b, size_t n, off_t at), (fd, b, n, at))
HELD(READS, ssize_t, pread64, (int fd, void *b, size_t n, off64_t at), (fd, b, n, at))
HELD(WRITES, ssize_t, write, (int fd, const void *b, size_t n), (fd, b, n))
HELD(WRITES, ssize_t, pwrite, (int fd, const void *b, size_t n, off_t at), (fd, b, n, at))
HELD(WRITES, ssize_t, pwrite64, (int fd, const void *b, size_t n, off64_t at), (fd, b, n, at))
HELD(WRITES, ssize_t, writev, (int fd, const struct iovec *v, int n), (fd, v, n))

#define SYNCED(name)                 \
  int name(int fd) {                 \
    static int (*real)(int);         \
    if (!real) real = next(#name);   \
    hold(fd, SYNCS);                 \
    int result = real(fd);           \
    if (!result) note_sync(fd);      \
    return result;                   \
  }

SYNCED(fsync)
SYNCED(fdatasync)

int rename(const char *from, const char *to) {
  static int (*real)(const char *, const char *);
  if (!real) real = next("rename");
  int result = real(from, to);
  char line[2 * PATH_MAX + 8];
  if (!result && log_fd >= 0 && watched && strstr(to, watched))
    note(line, snprintf(line, sizeof line, "R %s\t%s\n", from, to));
  return result;
}

int clock_gettime(clockid_t which, struct timespec *found) {
  static int (*real)(clockid_t, struct timespec *);
  if (!real) real = next("clock_gettime");
  int result = real(which, found);
  if (!result && control && which == CLOCK_REALTIME) found->tv_sec += control[SKEW_MS] / 1000;
  return result;
}

int gettimeofday(struct timeval *found, void *zone) {
  static int (*real)(struct timeval *, void *);
  if (!real) real = next("gettimeofday");
  int result = real(found, zone);
  if (!result && control) found->tv_sec += control[SKEW_MS] / 1000;
  return result;
}
