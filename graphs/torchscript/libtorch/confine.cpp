#include <fcntl.h>
#include <sched.h>
#include <seccomp.h>

#include <cerrno>
#include <sstream>
#include <string>

#include "graphs/torchscript/program.hpp"

/// Other calls fail as those that the kernel lacks: no file is written, no program started, no connection made. glibc
/// then starts threads by clone, whose flags a filter can read, in place of clone3.
void ftax_confine() {
    std::istringstream allowed(
        "read pread64 write close lseek access faccessat faccessat2 stat lstat fstat newfstatat statx readlink "
        "readlinkat getdents64 getcwd fcntl mmap munmap mremap mprotect madvise brk futex exit exit_group "
        "rt_sigaction rt_sigprocmask rt_sigreturn sigaltstack tgkill gettid getpid set_robust_list rseq clock_gettime "
        "clock_nanosleep getrandom sched_yield sched_getaffinity sysinfo uname restart_syscall");
    const scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(ENOSYS));
    for (std::string call; allowed >> call;)
        seccomp_rule_add(filter, SCMP_ACT_ALLOW, seccomp_syscall_resolve_name(call.c_str()), 0);
    constexpr unsigned changing = O_ACCMODE | O_CREAT | O_TRUNC;
    seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(open), 1, SCMP_A1(SCMP_CMP_MASKED_EQ, changing, O_RDONLY));
    seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(openat), 1, SCMP_A2(SCMP_CMP_MASKED_EQ, changing, O_RDONLY));
    seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(clone), 1,
                     SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, CLONE_THREAD));
    seccomp_load(filter);
    seccomp_release(filter);
}
