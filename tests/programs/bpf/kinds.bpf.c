/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Records with members of every type, text, and programs of every attach type that every kernel has. */
#include <rtrace.bpf.h>

enum mood { CALM, CROSS = 7 };
enum level { LOW = -2, MEDIUM };

struct inner {
	__u8 small;
	pid_t pid;
};

struct kinds {
	__s32 minus;
	enum mood mood;
	enum level level;
	struct inner inner;
	char text[8];
	__u32 words[3];
	const void *where;
	_Bool yes;
};
RTRACE_EVENT(kinds);
RTRACE_TEXT(saying);

static __always_inline void give(void *context)
{
	struct kinds record;

	__builtin_memset(&record, 0, sizeof(record));
	record.minus = -5;
	record.mood = CROSS;
	record.level = LOW;
	record.inner.small = 200;
	record.inner.pid = bpf_get_current_pid_tgid() >> 32;
	__builtin_memcpy(record.text, "seven..", 8);
	record.words[0] = 1;
	record.words[2] = 3;
	record.where = (const void *)0xfeed;
	record.yes = 1;
	rtrace_give(context, kinds, &record);
	rtrace_say(context, saying, "half a \"word\"");
}

SEC("syscalls:sys_enter_getppid")
int says(struct rtrace_enter *call)
{
	give(call);
	return 0;
}

SEC("syscalls:sys_exit_getppid ret")
int ends(struct rtrace_exit *call)
{
	return call->ret > 0;
}

#ifdef __TARGET_ARCH_arm64
#define GETPPID 173
#else
#define GETPPID 110
#endif

SEC("raw_tp/sys_enter number=id")
int raw(unsigned long *args)
{
	return args[1] == GETPPID;
}

SEC("tp_btf/sys_enter id:x16")
int typed(unsigned long *args)
{
	return args[1] == GETPPID;
}

SEC("uprobe/libc.so.6:setlocale category=arg1:s32 name=arg2:ustring")
int begins(void *registers)
{
	return 1;
}

SEC("uretprobe/libc.so.6:setlocale ret:ustring")
int returns(void *registers)
{
	return 1;
}

RTRACE_LICENSE("GPL");
