//! What has to be there before each recipe of `rtrace-recipes(7)` can be followed: a row for each.

/// A recipe's surroundings.
pub struct Row {
    /// The recipe's heading in the page.
    pub heading: &'static str,
    /// Programs without which the recipe cannot be followed.
    pub needs: &'static [&'static str],
    /// Whether the page shows what only BPF programs can read: text in the program's memory, files of descriptors.
    pub is_of_bpf: bool,
    /// A shell runs this in the directory that the page calls /srv/shop, before the recipe's command.
    pub setup: &'static str,
}

pub const ROWS: [Row; 11] = [
    Row {
        heading: "WHO WRITES THIS FILE?",
        needs: &[],
        is_of_bpf: true,
        setup: r#"
            echo first > orders
            printf '#!/bin/sh\nwhile sleep .4; do echo paid >> /srv/shop/orders; done\n' > import
            chmod +x import
            ./import &
        "#,
    },
    Row {
        heading: "WHY DOES IT NOT FIND ITS CONFIGURATION?",
        needs: &[],
        is_of_bpf: true,
        setup: r#"
            export HOME=/home/ada
            {
                echo '#!/bin/sh'
                echo 'for file in "$HOME/.config/shop.conf" /etc/shop/shop.conf; do'
                echo '    [ -r "$file" ] && exec cat "$file"'
                echo 'done'
                echo 'echo "server: no configuration" >&2'
                echo 'exit 1'
            } > server
            chmod +x server
        "#,
    },
    Row {
        heading: "WHAT IS IT WAITING FOR?",
        needs: &["gcc"],
        is_of_bpf: true,
        setup: r#"
            mkfifo requests
            {
                echo '#include <fcntl.h>'
                echo '#include <unistd.h>'
                echo 'int main(void) { char line[512]; int from = open("requests", O_RDWR); return read(from, line, sizeof line) < 0; }'
            } > server.c
            gcc -o server server.c
            ./server &
            echo $! > server.pid
            # Its first call to read begins.
            until grep -q '^0 0x3 ' "/proc/$!/syscall"; do sleep .1; done
        "#,
    },
    Row {
        heading: "WHO KILLED IT?",
        needs: &[],
        is_of_bpf: true,
        setup: r#"
            printf '#!/bin/sh\nmkfifo never; read -r line < never\n' > server
            chmod +x server
            ./server &
            echo $! > server.pid
            # When rtrace waits for something to happen (epoll_wait or epoll_pwait), it traces.
            printf '%s\n' '#!/bin/sh' 'server=$(cat server.pid)' \
                'is_traced() { grep -Eq "^(232|281) " "/proc/$(pgrep -f "^rtrace -p $server ")/syscall" 2>/dev/null; }' \
                'until is_traced; do sleep .1; done' 'kill -TERM "$server"' > watchdog
            chmod +x watchdog
            ./watchdog &
        "#,
    },
    Row {
        heading: "WHAT HAPPENED BEFORE IT FAILED?",
        needs: &[],
        is_of_bpf: true,
        setup: r#"
            echo first > orders
            printf '#!/bin/sh\nsleep 1; mv orders archive\n' > nightly
            printf '#!/bin/sh\n./nightly &\nwhile cat orders; do sleep .2; done > sent 2>&1\n' > server
            chmod +x nightly server
        "#,
    },
    Row {
        heading: "WHICH CALLS FAIL?",
        needs: &[],
        is_of_bpf: false,
        setup: r#"
            {
                echo '#!/bin/sh'
                echo 'cat orders old-orders'
                echo 'mkdir /srv/shop'
                echo 'echo x > /proc/version'
            } > deploy
            chmod +x deploy
            echo first > orders
        "#,
    },
    Row {
        heading: "WHAT DOES A CONTAINER DO?",
        needs: &["unshare"],
        is_of_bpf: true,
        setup: r#"
            id=$(printf %064x $$)
            group=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)/docker-$id.scope
            mkdir "$group"
            echo "$id" > shop.id
            printf '#!/bin/sh\necho $$ > %s/cgroup.procs\nexec unshare --pid --fork --mount-proc ./entry\n' "$group" > run
            printf '#!/bin/sh\nwhile sleep .4; do cat /etc/hostname; done\n' > entry
            chmod +x run entry
            ./run > /dev/null &
            sleep .5
            trap 'while read -r pid; do kill -KILL "$pid"; done < "$group/cgroup.procs"; sleep .2; rmdir "$group"' EXIT
        "#,
    },
    Row {
        heading: "WHAT DO A DAEMON AND ITS CHILDREN DO?",
        needs: &[],
        is_of_bpf: true,
        setup: r#"
            printf '#!/bin/sh\nwhile sleep .4; do ./handle & done\n' > server
            printf '#!/bin/sh\necho done >> log\n' > handle
            chmod +x server handle
            ./server &
            echo $! > server.pid
        "#,
    },
    Row {
        heading: "WHAT DID A CHANGE CHANGE?",
        needs: &[],
        is_of_bpf: false,
        setup: r#"
            printf '#!/bin/sh\nfor i in 1 2 3 4 5 6 7 8 9; do echo $i >> orders; done\n' > import-old
            printf '#!/bin/sh\nfor i in 1 2 3 4 5 6 7 8 9; do echo $i; done > orders\n' > import-new
            chmod +x import-old import-new
        "#,
    },
    Row {
        heading: "WHICH FUNCTION OF A NODE PROGRAM MAKES THIS CALL?",
        needs: &["node"],
        is_of_bpf: true,
        setup: r#"
            {
                echo 'const fs = require("fs");'
                echo 'function save(order) { fs.writeFileSync("orders", order); }'
                echo 'function handle() { save("an order"); }'
                echo 'setInterval(handle, 100);'
            } > server.js
            node --perf-basic-prof --interpreted-frames-native-stack server.js &
            echo $! > server.pid
            trap "rm -f /tmp/perf-$!.map" EXIT
            until [ -e orders ]; do sleep .2; done
            sleep 1
        "#,
    },
    Row {
        heading: "WHICH FUNCTION OF A JAVA PROGRAM MAKES THIS CALL?",
        needs: &["javac", "jcmd"],
        is_of_bpf: true,
        setup: r#"
            {
                echo 'import java.io.*;'
                echo 'class Server {'
                echo '    static void save(int n) throws Exception { try (var file = new FileOutputStream("orders")) { file.write("order".getBytes()); } }'
                echo '    static void handle(int n) throws Exception { save(n); }'
                echo '    public static void main(String[] words) throws Exception { for (int n = 0;; n++) { handle(n); Thread.sleep(n < 1000 ? 0 : 5); if (n == 1000) new File("ready").createNewFile(); } }'
                echo '}'
            } > Server.java
            javac Server.java
            java -XX:+PreserveFramePointer -XX:TieredStopAtLevel=1 Server &
            echo $! > server.pid
            trap "rm -f /tmp/perf-$!.map" EXIT
            until [ -e ready ]; do sleep .2; done
            sleep .5
        "#,
    },
];
