// A program whose calls are recorded on other machines. It prints what it did: a line for each call, with the number of
// the task, the name and the number of the call, the registers, the result, and the arguments as they are written
// below. The lines are what the recordings are compared with. It uses no library, so it makes no other calls than these
// and the writes of the lines.
#include <asm/ioctls.h>
#include <asm/mman.h>
#include <asm/signal.h>
#include <asm/stat.h>
#include <asm/unistd.h>
#include <linux/close_range.h>
#include <linux/eventpoll.h>
#include <linux/falloc.h>
#include <linux/fcntl.h>
#include <linux/fs.h>
#include <linux/futex.h>
#include <linux/mman.h>
#include <linux/openat2.h>
#include <linux/prctl.h>
#include <linux/random.h>
#include <linux/resource.h>
#include <linux/sched.h>
#include <linux/socket.h>
#include <linux/stat.h>
#include <linux/time.h>
#include <linux/un.h>
#include <linux/wait.h>

// linux/in.h and linux/net.h have these as members of enumerations, sys/socket.h as macros.
#define X_OK 1
#define W_OK 2
#define R_OK 4
#define AF_UNIX 1
#define AF_INET 2
#define SOCK_STREAM 1
#define SOCK_DGRAM 2
#define SOCK_CLOEXEC O_CLOEXEC
#define SOCK_NONBLOCK O_NONBLOCK
#define EFD_CLOEXEC O_CLOEXEC
#define EFD_NONBLOCK O_NONBLOCK

typedef unsigned long size_t;

#ifdef __aarch64__
static inline long call(long number, long a, long b, long c, long d, long e, long f) {
  register long x8 __asm__("x8") = number, x0 __asm__("x0") = a, x1 __asm__("x1") = b, x2 __asm__("x2") = c;
  register long x3 __asm__("x3") = d, x4 __asm__("x4") = e, x5 __asm__("x5") = f;
  __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
  return x0;
}
// The new thread executes thread_main(). Its frame pointer is zero.
__asm__("start_thread: mov x8, 220\n svc 0\n cbz x0, 1f\n ret\n1: mov x29, 0\n bl thread_main\n");
// Where the process begins: the frame pointer is zero there.
__asm__(".globl _start\n_start: mov x29, 0\n mov x30, 0\n bl start\n");
#define ENTRY(flags, stack, parent, child, tls) flags, stack, parent, tls, child
#else
static inline long call(long number, long a, long b, long c, long d, long e, long f) {
  register long r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = f;
  __asm__ volatile("syscall" : "+a"(number) : "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9) : "rcx", "r11", "memory");
  return number;
}
__asm__("start_thread: mov $56, %eax\n mov %rcx, %r10\n syscall\n test %rax, %rax\n jz 1f\n ret\n1: xor %ebp, %ebp\n call thread_main\n");
__asm__(".globl _start\n_start: xor %ebp, %ebp\n call start\n");
#define ENTRY(flags, stack, parent, child, tls) flags, stack, parent, child, tls
#endif
long start_thread(long flags, void *stack, int *parent, long d, long e);

void *memset(void *to, int byte, size_t size) {
  for (size_t at = 0; at < size; at++) ((volatile char *)to)[at] = (char)byte;
  return to;
}

static char text[64 << 10];
static size_t length;
static int task;

static void put(char c) { text[length++] = c; }
static void put_text(const char *s) { while (*s) put(*s++); }
static void put_number(unsigned long n, unsigned base) {
  char digits[24];
  int count = 0;
  do digits[count++] = "0123456789abcdef"[n % base]; while (n /= base);
  while (count) put(digits[--count]);
}
// The registers of a call. A string may be the first one, which it may not be in an array.
struct registers { long a, b, c, d, e, f; };
static void put_line(const char *name, long number, const char *arguments, const struct registers *registers, const long *result) {
  const long *words = &registers->a;
  put_number(task, 10);
  put(' ');
  put_text(name);
  put(' ');
  put_number(number, 10);
  for (int at = 0; at < 6; at++) put_text(" 0x"), put_number(words[at], 16);
  put_text(" = ");
  if (!result) put('?');
  else if (*result < 0) put('-'), put_number(-*result, 10);
  else put_number(*result, 10);
  put_text(" : ");
  put_text(arguments);
  put('\n');
}

static long made(const char *name, long number, const char *arguments, const struct registers *with) {
  long result = call(number, with->a, with->b, with->c, with->d, with->e, with->f);
  put_line(name, number, arguments, with, &result);
  return result;
}
#define CALL(name, ...) made(#name, __NR_##name, #__VA_ARGS__, &(struct registers){__VA_ARGS__})
// The line is made before the call, which does not return, or returns to another place.
#define LAST(name, ...) (put_line(#name, __NR_##name, #__VA_ARGS__, &(struct registers){__VA_ARGS__}, 0))

// Each task's first call says which one it is.
static void begin_task(void) {
  long result = task = (int)call(__NR_gettid, 0, 0, 0, 0, 0, 0);
  put_line("gettid", __NR_gettid, "", &(struct registers){0}, &result);
}

// The result of the call that the handler of a signal makes.
static long handled;
static void handler(int signal) { handled = call(__NR_lseek, -2, signal, SEEK_SET, 0, 0, 0); }
#ifdef __x86_64__
__asm__("restorer: mov $15, %eax\n syscall\n");
extern char restorer[];
#define RESTORER .sa_flags = SA_RESTORER, .sa_restorer = (void *)restorer
#else
#define RESTORER .sa_flags = 0
#endif

static int cleared = 1;
static char stack_of_thread[4096] __attribute__((aligned(16)));
void thread_main(void) {
  int first = task;
  begin_task();
  CALL(getppid, 0);
  LAST(exit, 0);
  task = first;
  call(__NR_exit, 0, 0, 0, 0, 0, 0);
}

// The call paths that the recordings of stacks have.
__attribute__((noinline)) static long inner(long at) { long result = CALL(lseek, -1, at, SEEK_END); return result + 1; }
__attribute__((noinline)) static long middle(long at) { long result = inner(at + 1); return result + 1; }
__attribute__((noinline)) static long outer(long at) { long result = middle(at + 1); return result + 1; }

static void files(void) {
  static char room[4096];
  static struct stat status;
  static struct statx extended;
  CALL(openat, AT_FDCWD, "/nowhere/file", O_RDONLY);
  long directory = CALL(openat, AT_FDCWD, "/proc", O_RDONLY|O_CLOEXEC|O_DIRECTORY);
  long file = CALL(openat, directory, "version", O_RDONLY|O_NOFOLLOW);
  CALL(read, file, room, 16);
  CALL(pread64, file, room, 8, 4);
  CALL(lseek, file, 2, SEEK_CUR);
  CALL(getdents64, directory, room, sizeof room);
  CALL(openat, AT_FDCWD, "/proc/version", O_RDONLY|O_DIRECTORY);
  CALL(openat, AT_FDCWD, "/proc/self/exe", O_WRONLY|O_NONBLOCK|O_APPEND);
  CALL(openat, AT_FDCWD, "/proc/self", O_RDONLY|O_NOFOLLOW);
  CALL(openat, AT_FDCWD, "/proc/self", O_RDONLY|O_NOFOLLOW|O_PATH);
  long made_here = CALL(openat, AT_FDCWD, "/tmp/calls.a", O_RDWR|O_CREAT|O_EXCL|O_TRUNC|O_DSYNC|O_LARGEFILE, 0640);
  CALL(openat, AT_FDCWD, "/tmp/calls.a", O_RDONLY|O_DIRECT|O_NOATIME);
  CALL(openat, AT_FDCWD, "/tmp", O_RDWR|O_TMPFILE, 0600);
  CALL(write, made_here, "0123456789", 10);
  CALL(fallocate, made_here, FALLOC_FL_KEEP_SIZE, 0, 4096);
  CALL(ftruncate, made_here, 5);
  CALL(fcntl, made_here, F_GETFL);
  CALL(fcntl, made_here, F_SETFL, O_RDONLY|O_NONBLOCK|O_APPEND|O_LARGEFILE);
  CALL(fcntl, made_here, F_DUPFD_CLOEXEC, 40);
  CALL(ioctl, made_here, TCGETS, room);
  CALL(newfstatat, AT_FDCWD, "/tmp/calls.a", &status, AT_SYMLINK_NOFOLLOW);
  CALL(newfstatat, AT_FDCWD, "/nowhere", &status, 0);
  CALL(fstat, made_here, &status);
  CALL(statx, AT_FDCWD, "/tmp", AT_STATX_SYNC_AS_STAT|AT_NO_AUTOMOUNT, STATX_TYPE|STATX_SIZE, &extended);
  CALL(renameat, AT_FDCWD, "/tmp/calls.a", AT_FDCWD, "/tmp/calls.b");
  CALL(renameat2, AT_FDCWD, "/tmp/calls.a", AT_FDCWD, "/tmp/calls.c", RENAME_NOREPLACE);
  CALL(linkat, AT_FDCWD, "/tmp/calls.b", AT_FDCWD, "/tmp/calls.b", AT_SYMLINK_FOLLOW);
  CALL(symlinkat, "target", AT_FDCWD, "/tmp/calls.s");
  CALL(readlinkat, AT_FDCWD, "/tmp/calls.s", room, 64);
  CALL(faccessat, AT_FDCWD, "/tmp/calls.b", X_OK);
  CALL(faccessat2, AT_FDCWD, "/nowhere", R_OK|W_OK, AT_EACCESS);
  CALL(fchmodat, AT_FDCWD, "/tmp/calls.b", 0400);
  CALL(mkdirat, AT_FDCWD, "/tmp/calls.d", 0755);
  CALL(unlinkat, AT_FDCWD, "/tmp/calls.d", AT_REMOVEDIR);
  CALL(unlinkat, AT_FDCWD, "/tmp/calls.s", 0);
  CALL(unlinkat, AT_FDCWD, "/tmp/calls.b", 0);
  static struct open_how how = {.flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW, .resolve = RESOLVE_BENEATH};
  CALL(openat2, directory, "../etc", &how, sizeof how);
  CALL(openat, AT_FDCWD, 8, O_RDONLY);
  CALL(close, file);
  CALL(close, 999);
}

static void rest(void) {
  static int pair[2];
  static struct __kernel_timespec moment = {0, 1000};
  static struct epoll_event event = {EPOLLIN, 7};
  static struct sockaddr_un nobody = {AF_UNIX, "/nowhere"};
  CALL(pipe2, pair, O_NONBLOCK|O_CLOEXEC|O_DIRECT);
  CALL(dup3, pair[0], 30, O_CLOEXEC);
  CALL(dup3, 5, 5, 0);
  long poll = CALL(epoll_create1, EPOLL_CLOEXEC);
  CALL(epoll_ctl, poll, EPOLL_CTL_ADD, pair[0], &event);
  CALL(epoll_pwait, poll, &event, 1, 0, 0, 8);
  CALL(eventfd2, 1, EFD_CLOEXEC|EFD_NONBLOCK);
  CALL(read, pair[0], &event, 1);
  long memory = CALL(mmap, 0, 8192, PROT_READ|PROT_WRITE, MAP_PRIVATE|MAP_ANONYMOUS, -1, 0);
#ifdef __aarch64__
  CALL(mprotect, memory, 4096, PROT_READ|PROT_EXEC|PROT_BTI);
  CALL(mprotect, memory + 4096, 4096, PROT_READ|PROT_MTE);
#else
  CALL(mprotect, memory, 4096, PROT_READ|PROT_EXEC);
#endif
  CALL(madvise, memory, 8192, MADV_DONTNEED);
  CALL(munmap, memory, 8192);
  CALL(mmap, 0, 4096, PROT_READ, MAP_SHARED|MAP_FIXED_NOREPLACE, 999, 0);
  CALL(prctl, PR_SET_NAME, "renamed");
  CALL(prctl, PR_SET_PDEATHSIG, SIGTERM);
  CALL(prlimit64, 0, RLIMIT_NOFILE, 0, 8);
  CALL(getrandom, &event, 4, GRND_NONBLOCK);
  CALL(clock_gettime, CLOCK_MONOTONIC, &moment);
  moment.tv_sec = 0, moment.tv_nsec = 1000;
  CALL(clock_nanosleep, CLOCK_REALTIME, 0, &moment, 0);
  CALL(futex, &pair[0], FUTEX_WAKE|FUTEX_PRIVATE_FLAG, 1);
  CALL(futex, &pair[0], FUTEX_WAIT|FUTEX_PRIVATE_FLAG, 77, 0);
  long name = CALL(socket, AF_UNIX, SOCK_STREAM|SOCK_CLOEXEC|SOCK_NONBLOCK, 0);
  CALL(connect, name, &nobody, sizeof nobody);
  CALL(socket, AF_INET, SOCK_STREAM, 255);
  CALL(close_range, 50, 60, CLOSE_RANGE_CLOEXEC);
}

static void tasks(void) {
  static struct sigaction action = {.sa_handler = handler, RESTORER};
  static unsigned long mask = 1UL << (SIGUSR2 - 1);
  static int status;
  CALL(rt_sigaction, SIGUSR1, &action, 0, 8);
  CALL(rt_sigprocmask, SIG_BLOCK, &mask, 0, 8);
  CALL(tgkill, task, task, SIGUSR1);
  put_line("lseek", __NR_lseek, "-2, signal, SEEK_SET", &(struct registers){-2, SIGUSR1, SEEK_SET}, &handled);
  LAST(rt_sigreturn, 0); // at the end of the handler
  CALL(kill, task, SIGUSR2);
  CALL(kill, task, 0);
  CALL(kill, 0x7ffffffe, SIGSTOP);
  // A process. Its lines come through its own copy of the text.
  size_t before = length;
  long child = call(__NR_clone, SIGCHLD, 0, 0, 0, 0, 0);
  if (!child) {
    length = 0;
    begin_task();
    CALL(getppid, 0);
    LAST(exit_group, 7);
    call(__NR_write, 1, (long)text, length, 0, 0, 0);
    call(__NR_exit_group, 7, 0, 0, 0, 0, 0);
  }
  length = before;
  put_line("clone", __NR_clone, "SIGCHLD", &(struct registers){SIGCHLD}, &child);
  CALL(wait4, child, &status, __WALL, 0);
  CALL(wait4, -1, &status, WNOHANG, 0);
  // A thread: the order of the last two arguments differs between architectures.
  long flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM | CLONE_CHILD_CLEARTID;
  size_t place = length;
  length += 256;
  long thread = start_thread(ENTRY(flags, stack_of_thread + sizeof stack_of_thread, 0, (long)&cleared, 0));
  // The kernel writes zero when the thread has ended. Whether waiting needs a call is not known, so none is made.
  while (__atomic_load_n(&cleared, __ATOMIC_ACQUIRE));
  size_t end = length;
  length = place;
  put_line("clone", __NR_clone, "CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_SIGHAND|CLONE_THREAD|CLONE_SYSVSEM|CLONE_CHILD_CLEARTID, stack_of_thread + sizeof stack_of_thread",
           &(struct registers){ENTRY(flags, (long)stack_of_thread + sizeof stack_of_thread, 0, (long)&cleared, 0)}, &thread);
  // The room that is left becomes empty lines.
  while (length < place + 256) put('\n');
  length = end;
}

void start(void) {
  begin_task();
  files();
  rest();
  tasks();
  outer(5);
  made("4000", 4000, "1, 2, 3", &(struct registers){1, 2, 3});
  LAST(exit_group, 3);
  call(__NR_write, 1, (long)text, length, 0, 0, 0);
  call(__NR_exit_group, 3, 0, 0, 0, 0, 0);
}
