# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_rtrace_global_optspecs
    string join \n a/all-cpus p/pid= t/tid= u/uid= G/cgroup= C/cpu= filter-pids= no-inherit D/delay= run-as= E/env= chdir= no-wait e/event= probe= filter= syscalls no-syscalls path= duration= failure F/pf= signals sched fd-paths switch-on= switch-off= show-on-off-events max-events= s/summary S/with-summary errno-summary summary-mode= max-summary= T/time time-format= comm no-comm show-cpu show-zeros pending no-pending string-limit= call-graph= max-stack= min-stack= kernel-stack lines inline resolve-at-end folded= flamegraph= stack-weight= stack-summary= o/output= output-separately color= strict m/mmap-pages= engine= strings-by= f/follow-forks y q/quiet v/verbose no-config sort-events bpf-summary no-bpf-summary h help V/version
end

function __fish_rtrace_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_rtrace_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_rtrace_using_subcommand
    set -l cmd (__fish_rtrace_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c rtrace -n "__fish_rtrace_needs_command" -s p -l pid -d 'Processes that are there, with the children they make from now on' -r
complete -c rtrace -n "__fish_rtrace_needs_command" -s t -l tid -d 'Single threads that are there, and nothing they make' -r
complete -c rtrace -n "__fish_rtrace_needs_command" -s u -l uid -d 'Everything this user runs (a name or a number)' -r -f -a "(__fish_complete_users)"
complete -c rtrace -n "__fish_rtrace_needs_command" -s G -l cgroup -d 'Everything in this cgroup (its path below the cgroup mount) and those below it' -r
complete -c rtrace -n "__fish_rtrace_needs_command" -s C -l cpu -d 'On these CPUs only; without another target, everything there' -r
complete -c rtrace -n "__fish_rtrace_needs_command" -l filter-pids -d 'All but these processes or threads' -r
complete -c rtrace -n "__fish_rtrace_needs_command" -s D -l delay -d 'Begin so long after the start (a bare number is milliseconds)' -r
complete -c rtrace -n "__fish_rtrace_needs_command" -l run-as -d 'Start COMMAND as this user, with its groups and environment' -r -f -a "(__fish_complete_users)"
complete -c rtrace -n "__fish_rtrace_needs_command" -s E -l env -d 'Set a variable in COMMAND\'s environment, or remove it (VAR alone)' -r
complete -c rtrace -n "__fish_rtrace_needs_command" -l chdir -d 'Start COMMAND in this directory' -r -f -a "(__fish_complete_directories)"
complete -c rtrace -n "__fish_rtrace_needs_command" -s e -l event -l expr -d 'Syscalls, globs (epoll_*), groups (%file), /regexes/, events (sched:*), BPF programs (file.bpf.c); ! takes away; repeated -e add up' -r
complete -c rtrace -n "__fish_rtrace_needs_command" -l probe -d 'Make a probe for this run, by a line of the kernel\'s dynamic events with names where it wants numbers: \'p tcp_sendmsg sk size\', \'r /bin/bash:readline +0($retval):string\'' -r
complete -c rtrace -n "__fish_rtrace_needs_command" -l filter -d 'A condition for the -e or --probe before it, or for everything: \'ret < 0 && filename ~ "/etc/*"\'' -r
complete -c rtrace -n "__fish_rtrace_needs_command" -l path -d 'Only calls that name this path, or have a descriptor open on it; globs (\'/etc/*\')' -r -F
complete -c rtrace -n "__fish_rtrace_needs_command" -l duration -d 'Only calls that took at least so long (a bare number is milliseconds)' -r
complete -c rtrace -n "__fish_rtrace_needs_command" -s F -l pf -d 'Page faults' -r -f -a "all\t''
maj\t''
min\t''"
complete -c rtrace -n "__fish_rtrace_needs_command" -l switch-on -d 'Print from this event on' -r
complete -c rtrace -n "__fish_rtrace_needs_command" -l switch-off -d 'Print up to this event' -r
complete -c rtrace -n "__fish_rtrace_needs_command" -l max-events -d 'End after so many lines; a command runs on' -r
complete -c rtrace -n "__fish_rtrace_needs_command" -l summary-mode -d 'One table for each of these' -r -f -a "thread\t''
process\t''
total\t''
cgroup\t''"
complete -c rtrace -n "__fish_rtrace_needs_command" -l max-summary -d 'At most so many rows in a table' -r
complete -c rtrace -n "__fish_rtrace_needs_command" -l time-format -d 'How time stamps are written' -r -f -a "relative\t'Milliseconds since the first event'
delta\t'Milliseconds since the line before'
local\t'Local time of day'
local-date\t'Local date and time'
utc\t'Date and time in UTC'
epoch\t'Seconds since 1970'
monotonic\t'The kernel\'s monotonic clock'"
complete -c rtrace -n "__fish_rtrace_needs_command" -l string-limit -d 'Print at most so many bytes of a string [default: 32]' -r
complete -c rtrace -n "__fish_rtrace_needs_command" -l call-graph -l call-stack -d 'Print where each call was made from, by frame pointers (fp) or by unwinding up to SIZE bytes of stack (dwarf, which works with all programs)' -r
complete -c rtrace -n "__fish_rtrace_needs_command" -l max-stack -d 'At most so many frames (implies --call-graph dwarf)' -r
complete -c rtrace -n "__fish_rtrace_needs_command" -l min-stack -d 'Only calls with so many frames or more (implies --call-graph dwarf)' -r
complete -c rtrace -n "__fish_rtrace_needs_command" -l folded -d 'Write call paths with their weights to FILE, a line each, as flame graph programs read them' -r -F
complete -c rtrace -n "__fish_rtrace_needs_command" -l flamegraph -d 'Draw call paths with their weights as a flame graph: an SVG picture that a browser shows and searches' -r -F
complete -c rtrace -n "__fish_rtrace_needs_command" -l stack-weight -d 'What call paths weigh: the time that calls took, or their number' -r -f -a "time\t''
count\t''"
complete -c rtrace -n "__fish_rtrace_needs_command" -l stack-summary -d 'With -s or -S: for each syscall the N call paths that took most time [default: 5]' -r
complete -c rtrace -n "__fish_rtrace_needs_command" -s o -l output -d 'Write to FILE (an old one becomes FILE.old); - is stdout, \'|CMD\' a pipe to a command' -r -F
complete -c rtrace -n "__fish_rtrace_needs_command" -l color -d 'Colours; auto means on a terminal' -r -f -a "auto\t''
always\t''
never\t''"
complete -c rtrace -n "__fish_rtrace_needs_command" -s m -l mmap-pages -d 'Buffer for each CPU: a size with K, M or G; a bare number is pages' -r
complete -c rtrace -n "__fish_rtrace_needs_command" -l engine -d 'The mechanism' -r -f -a "auto\t'bpf where the kernel takes it, otherwise tracepoint (-v says why)'
tracepoint\t'Kernel tracepoints through perf_event_open'
bpf\t'BPF programs: arguments\' memory too, one record a call'"
complete -c rtrace -n "__fish_rtrace_needs_command" -l strings-by -d 'Without BPF: how path names are known (chooses the tracepoint engine)' -r -f -a "auto\t'The truest of these that the kernel has (-v says which, and why)'
getname\t'A return probe of rtrace\'s own, where the kernel copies names (needs kprobes): whole names'
vfs_getname\t'The event probe:vfs_getname, if somebody made it (perf probe does)'
events\t'What the syscalls: events bring along from Linux 6.19 on: cut, and with dots for what is unprintable'
eprobe\t'An event probe of rtrace\'s own that reads them when calls return (needs eprobes, synthetic events and histograms): whole names'
none\t'Addresses'"
complete -c rtrace -n "__fish_rtrace_needs_command" -s a -l all-cpus -d 'Everything on this machine; a COMMAND only says how long'
complete -c rtrace -n "__fish_rtrace_needs_command" -l no-inherit -d 'Do not follow children and new threads'
complete -c rtrace -n "__fish_rtrace_needs_command" -l no-wait -d 'Do not wait for children that COMMAND leaves behind'
complete -c rtrace -n "__fish_rtrace_needs_command" -l syscalls -d 'Trace syscalls beside the events of -e'
complete -c rtrace -n "__fish_rtrace_needs_command" -l no-syscalls -d 'Trace no syscalls: events and page faults only'
complete -c rtrace -n "__fish_rtrace_needs_command" -l failure -d 'Only calls that failed'
complete -c rtrace -n "__fish_rtrace_needs_command" -l signals -d 'Signals as they are delivered'
complete -c rtrace -n "__fish_rtrace_needs_command" -l sched -d 'Time on the CPU for each thread, shown in the summary'
complete -c rtrace -n "__fish_rtrace_needs_command" -l fd-paths -d 'Also trace what tells which files descriptors are, where -e alone would not'
complete -c rtrace -n "__fish_rtrace_needs_command" -l show-on-off-events -d 'Print the switching events themselves, too'
complete -c rtrace -n "__fish_rtrace_needs_command" -s s -l summary -d 'A table of counts, errors and times instead of lines'
complete -c rtrace -n "__fish_rtrace_needs_command" -s S -l with-summary -d 'Lines, then the table'
complete -c rtrace -n "__fish_rtrace_needs_command" -l errno-summary -d 'Count each errno in the table (implies -s unless -S is given)'
complete -c rtrace -n "__fish_rtrace_needs_command" -s T -l time -d 'Time stamps of the monotonic clock instead of milliseconds since the first event'
complete -c rtrace -n "__fish_rtrace_needs_command" -l comm -d 'Print the thread\'s name'
complete -c rtrace -n "__fish_rtrace_needs_command" -l no-comm -d 'Do not print the thread\'s name'
complete -c rtrace -n "__fish_rtrace_needs_command" -l show-cpu -d 'Print the CPU'
complete -c rtrace -n "__fish_rtrace_needs_command" -l show-zeros -d 'Print arguments that are zero as well'
complete -c rtrace -n "__fish_rtrace_needs_command" -l pending -d 'Print a call that takes long while it is still in flight, and again when it is over [default: to a terminal or a pipe]'
complete -c rtrace -n "__fish_rtrace_needs_command" -l no-pending -d 'Print a call only when it is over [default: to a file]'
complete -c rtrace -n "__fish_rtrace_needs_command" -l kernel-stack -l kernel-syscall-graph -d 'Frames inside the kernel, too; alone, only these'
complete -c rtrace -n "__fish_rtrace_needs_command" -l lines -d 'Print each frame\'s source file and line'
complete -c rtrace -n "__fish_rtrace_needs_command" -l inline -d 'Print functions that the compiler inlined, as frames of their own'
complete -c rtrace -n "__fish_rtrace_needs_command" -l resolve-at-end -d 'Name functions at the end only, when all debug information that can be had is there; lines come then'
complete -c rtrace -n "__fish_rtrace_needs_command" -l output-separately -d 'A file for each process: FILE.PID'
complete -c rtrace -n "__fish_rtrace_needs_command" -l strict -d 'Exit with status 124 if anything was lost'
complete -c rtrace -n "__fish_rtrace_needs_command" -s f -l follow-forks -d 'Accepted for strace\'s sake: children are always followed'
complete -c rtrace -n "__fish_rtrace_needs_command" -s y -d 'Accepted for strace\'s sake: what descriptors are is always printed'
complete -c rtrace -n "__fish_rtrace_needs_command" -s q -l quiet -d 'Print no lines about how tasks end, and no notes on stderr'
complete -c rtrace -n "__fish_rtrace_needs_command" -s v -l verbose -d 'Say what is traced how and why, and what it costs others; twice: more'
complete -c rtrace -n "__fish_rtrace_needs_command" -l no-config -d 'Ignore configuration files and RTRACE_OPTS'
complete -c rtrace -n "__fish_rtrace_needs_command" -l sort-events -d 'Accepted for perf\'s sake: events are always in order'
complete -c rtrace -n "__fish_rtrace_needs_command" -l bpf-summary -d 'Accepted for perf\'s sake: the cheapest way is taken anyhow'
complete -c rtrace -n "__fish_rtrace_needs_command" -l no-bpf-summary -d 'Accepted for perf\'s sake'
complete -c rtrace -n "__fish_rtrace_needs_command" -s h -d 'Print one screen of help'
complete -c rtrace -n "__fish_rtrace_needs_command" -l help -d 'Print all options'
complete -c rtrace -n "__fish_rtrace_needs_command" -s V -l version -d 'Print the version'
complete -c rtrace -n "__fish_rtrace_needs_command" -a "list" -d 'Show what can be traced here: syscalls, groups, events; a syscall\'s arguments, a table\'s values'
complete -c rtrace -n "__fish_rtrace_needs_command" -a "check" -d 'Say what works here for this user, and what would give the rest'
complete -c rtrace -n "__fish_rtrace_needs_command" -a "probe" -d 'Make probes that stay, list, show and delete them; write records of user events'
complete -c rtrace -n "__fish_rtrace_needs_command" -a "completions" -d 'Print a completion script'
complete -c rtrace -n "__fish_rtrace_using_subcommand list" -s h -l help -d 'Print help'
complete -c rtrace -n "__fish_rtrace_using_subcommand check" -s h -l help -d 'Print help'
complete -c rtrace -n "__fish_rtrace_using_subcommand probe; and not __fish_seen_subcommand_from list show add del emit" -s h -l help -d 'Print help'
complete -c rtrace -n "__fish_rtrace_using_subcommand probe; and not __fish_seen_subcommand_from list show add del emit" -f -a "list" -d 'List this kernel\'s dynamic events: whose they are, how often they were hit and missed, how they are defined'
complete -c rtrace -n "__fish_rtrace_using_subcommand probe; and not __fish_seen_subcommand_from list show add del emit" -f -a "show" -d 'Show all of an event: fields, filter, triggers, histograms'
complete -c rtrace -n "__fish_rtrace_using_subcommand probe; and not __fish_seen_subcommand_from list show add del emit" -f -a "add" -d 'Make probes that stay until `rtrace probe del` (or the next start of the machine), and print their names'
complete -c rtrace -n "__fish_rtrace_using_subcommand probe; and not __fish_seen_subcommand_from list show add del emit" -f -a "del" -d 'Delete probes that `rtrace probe add` made'
complete -c rtrace -n "__fish_rtrace_using_subcommand probe; and not __fish_seen_subcommand_from list show add del emit" -f -a "emit" -d 'Write a record of a user event, as its program would'
complete -c rtrace -n "__fish_rtrace_using_subcommand probe; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help'
complete -c rtrace -n "__fish_rtrace_using_subcommand probe; and __fish_seen_subcommand_from show" -s h -l help -d 'Print help'
complete -c rtrace -n "__fish_rtrace_using_subcommand probe; and __fish_seen_subcommand_from add" -s f -l file -d 'All lines of FILE (- is stdin) or none: as in tracefs, with # comments, and -: to delete' -r -F
complete -c rtrace -n "__fish_rtrace_using_subcommand probe; and __fish_seen_subcommand_from add" -l force -d 'Let -: in FILE delete what others made'
complete -c rtrace -n "__fish_rtrace_using_subcommand probe; and __fish_seen_subcommand_from add" -s h -l help -d 'Print help'
complete -c rtrace -n "__fish_rtrace_using_subcommand probe; and __fish_seen_subcommand_from del" -l force -d 'Delete also what others made'
complete -c rtrace -n "__fish_rtrace_using_subcommand probe; and __fish_seen_subcommand_from del" -s h -l help -d 'Print help'
complete -c rtrace -n "__fish_rtrace_using_subcommand probe; and __fish_seen_subcommand_from emit" -s h -l help -d 'Print help'
complete -c rtrace -n "__fish_rtrace_using_subcommand completions" -s h -l help -d 'Print help'
