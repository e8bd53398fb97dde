// What WASI's libc lacks of POSIX, most of it about other programs: a page starts none, and each of these says that it
// cannot.
#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/wait.h>

// The tag of C++'s exceptions, which every object that throws one refers to.
__asm__(".tagtype __cpp_exception i32\n.globl __cpp_exception\n__cpp_exception:\n");

// Files have no rights, no second reader and no memory but the program's.
int web_fchmod(int file, mode_t mode) {
    return 0;
}
int flock(int file, int operation) {
    return 0;
}
int madvise(void* start, size_t length, int advice) {
    return 0;
}
uid_t geteuid(void) {
    return 1;
}
int sigaction(int signal, const struct sigaction* wanted, struct sigaction* before) {
    return 0;
}

static int refuse(void) {
    errno = ENOSYS;
    return -1;
}
FILE* popen(const char* command, const char* mode) {
    return refuse(), NULL;
}
int pclose(FILE* stream) {
    return refuse();
}
char* mkdtemp(char* name) {
    return refuse(), NULL;
}
int getloadavg(double* averages, int count) {
    return refuse();
}
int kill(pid_t process, int signal) {
    return refuse();
}
int pipe2(int* ends, int flags) {
    return refuse();
}
pid_t waitpid(pid_t process, int* status, int options) {
    return refuse();
}
int posix_spawn(pid_t* process, const char* path, const posix_spawn_file_actions_t* actions,
                const posix_spawnattr_t* attributes, char* const words[], char* const environment[]) {
    return ENOSYS;
}
int posix_spawnp(pid_t* process, const char* file, const posix_spawn_file_actions_t* actions,
                 const posix_spawnattr_t* attributes, char* const words[], char* const environment[]) {
    return ENOSYS;
}
int posix_spawn_file_actions_init(posix_spawn_file_actions_t* actions) {
    return ENOSYS;
}
int posix_spawn_file_actions_adddup2(posix_spawn_file_actions_t* actions, int from, int to) {
    return ENOSYS;
}
int posix_spawn_file_actions_destroy(posix_spawn_file_actions_t* actions) {
    return 0;
}
int posix_spawnattr_init(posix_spawnattr_t* attributes) {
    return ENOSYS;
}
int posix_spawnattr_setflags(posix_spawnattr_t* attributes, short flags) {
    return ENOSYS;
}
int posix_spawnattr_destroy(posix_spawnattr_t* attributes) {
    return 0;
}
