/* Fails writes to a journal, or its syncs, in a process that loads this before the C library.

   PALISADE_TEST_FAULT=write:N:ERRNO fails the write N, and sync:0:ERRNO all syncs (0: each one).
   PALISADE_TEST_FAULT_COUNT=FILE gets the number of writes and syncs when the process ends. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

enum kind { WRITE, SYNC };

static long counts[2];

/* Returns 1 for the file of a journal and its log. */
static int is_journal(int fd)
{
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0)
        return 0;
    path[length] = 0;
    const char *name = strrchr(path, '/');
    return name && (!strcmp(name, "/journal.db") || !strcmp(name, "/journal.db-wal"));
}

/* Counts a call. Returns 1 if it has to fail, with errno set. */
static int fails(enum kind kind, int fd)
{
    if (!is_journal(fd))
        return 0;
    long count = __atomic_add_fetch(&counts[kind], 1, __ATOMIC_SEQ_CST);
    const char *fault = getenv("PALISADE_TEST_FAULT");
    long wanted;
    int number;
    const char *format = kind == WRITE ? "write:%ld:%d" : "sync:%ld:%d";
    if (!fault || sscanf(fault, format, &wanted, &number) != 2)
        return 0;
    if (wanted != 0 && wanted != count)
        return 0;
    errno = number;
    return 1;
}

__attribute__((destructor)) static void report(void)
{
    const char *path = getenv("PALISADE_TEST_FAULT_COUNT");
    FILE *file = path ? fopen(path, "w") : NULL;
    if (!file)
        return;
    fprintf(file, "%ld %ld\n", counts[WRITE], counts[SYNC]);
    fclose(file);
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t write(int fd, const void *bytes, size_t length)
{
    return fails(WRITE, fd) ? -1 : NEXT(write)(fd, bytes, length);
}

ssize_t pwrite(int fd, const void *bytes, size_t length, off_t at)
{
    return fails(WRITE, fd) ? -1 : NEXT(pwrite)(fd, bytes, length, at);
}

ssize_t pwrite64(int fd, const void *bytes, size_t length, off64_t at)
{
    return fails(WRITE, fd) ? -1 : NEXT(pwrite64)(fd, bytes, length, at);
}

int fsync(int fd)
{
    return fails(SYNC, fd) ? -1 : NEXT(fsync)(fd);
}

int fdatasync(int fd)
{
    return fails(SYNC, fd) ? -1 : NEXT(fdatasync)(fd);
}
