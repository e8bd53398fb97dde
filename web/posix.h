// Included before every source of the web build: what WASI's headers lack of POSIX. processes.c has the functions.
#pragma once
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/types.h>

#ifndef O_PATH
#define O_PATH 0
#endif
#define fchmod web_fchmod
#define RTLD_DEEPBIND 0
#define TIOCGWINSZ 0
typedef int siginfo_t;
struct sigaction {
    void (*sa_handler)(int);
    int sa_flags, sa_mask;
};
struct winsize {
    unsigned short ws_row, ws_col;
};

#ifdef __cplusplus
extern "C" {
#endif
int web_fchmod(int file, mode_t mode);
FILE* popen(const char* command, const char* mode);
char* mkdtemp(char* name);
int getloadavg(double* averages, int count);
int kill(pid_t process, int signal);
int sigaction(int signal, const struct sigaction* wanted, struct sigaction* before);
int pclose(FILE* stream);
int pipe2(int* ends, int flags);
uid_t geteuid(void);
#ifdef __cplusplus
}
#endif
