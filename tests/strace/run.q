#!/usr/bin/env bash
# Compares rtrace's lines with strace's, byte for byte. See the usage below and the README of this directory.
set -euo pipefail

usage() {
  cat <<'EOF'
usage: tests/strace/run [-k DIR] [-n N] [-o OPTIONS] [PROGRAM...]

Runs each program under strace 7.2, with each set of options, and under `rtrace strace` with the same options, which
watches the same run. Compares the lines of both (compare.py), and prints for each set how many are equal, and what
differs most often. Needs root; benches/fetch-peers installs the strace.

  -k DIR      keep the traces in DIR
  -n N        show N examples of each difference (default: 1)
  -o OPTIONS  compare with this set of options only
  PROGRAM     a name in the list below, for example ls, or `scenes`: the programs that exercise every decoder, with -f only
              (default: all)

The exit status is 0 if of each set, at least 99.5 % of the lines are equal that exceptions.tbl does not except (of scenes:
98 %), 1 if not, and 2 for a usage error.
EOF
}

die() {
  printf 'tests/strace/run: %s\n' "$1" >&2
  exit "${2:-1}"
}

keep='' examples=1 only=
while [ $# -gt 0 ]; do
  case $1 in
  -h | --help) usage && exit ;;
  -k | -n | -o)
    [ $# -gt 1 ] || die "$1 needs a value (see -h)" 2
    case $1 in -k) keep=$2 ;; -n) examples=$2 ;; -o) only=$2 ;; esac
    shift
    ;;
  -*) die "there is no option $1 (-h lists them)" 2 ;;
  *) break ;;
  esac
  shift
done
[ "$(id -u)" = 0 ] || die 'run this as root: rtrace and benches/fetch-peers need it'

cd "$(dirname "$0")/../.."
PATH=$HOME/.cargo/bin:$PATH
peers=${RTRACE_PEERS:-/var/tmp/peers}
benches/fetch-peers "$peers" >/dev/null
here=$PWD/tests/strace rtrace=${CARGO_TARGET_DIR:-$PWD/target}/debug/rtrace
work=${keep:-$(mktemp -d "${TMPDIR:-/tmp}/rtrace-strace.XXXXXX")}
mkdir -p "$work"
[ -n "$keep" ] || trap 'rm -rf "$work"' EXIT

# The programs. Each is a shell function that is run in an empty directory.
modules=json,socket,subprocess,threading,ssl,http.server,urllib.request,xml.dom.minidom,decimal,asyncio,csv,email,ftplib,gzip
modules+=,hashlib,html,imaplib,inspect,ipaddress,locale,logging.handlers,lzma,mailbox,multiprocessing,optparse,pathlib,pdb
modules+=,pickle,platform,plistlib,poplib,pprint,queue,random,sched,secrets,selectors,shelve,shlex,smtplib,sqlite3,statistics
modules+=,string,tarfile,tempfile,timeit,tokenize,unittest,uuid,zipfile
declare -A programs=(
  [ls]='ls -lR /etc/apt'
  [git]='git init -q . && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m one && git log --oneline'
  [python]="/usr/bin/python3 -c 'import $modules'"
  [gcc]='echo "int main(void) { return 0; }" >a.c && gcc -O1 -o a a.c && ./a'
  [http]='/usr/bin/python3 -c "
import http.server, threading, urllib.request
server = http.server.HTTPServer((\"127.0.0.1\", 0), http.server.SimpleHTTPRequestHandler)
threading.Thread(target=server.serve_forever).start()
urllib.request.urlopen(\"http://127.0.0.1:%d/\" % server.server_port).read()
server.shutdown()"'
  [sqlite]='/usr/bin/python3 -c "
import sqlite3
with sqlite3.connect(\"a.db\") as base:
    base.execute(\"create table t(a)\")
    base.executemany(\"insert into t values(?)\", [(i,) for i in range(100)])
    print(base.execute(\"select sum(a) from t\").fetchone())"'
  [threads]='/usr/bin/python3 -c "
import threading
lock = threading.Lock()
def work():
    for i in range(20):
        with lock:
            open(\"/dev/null\").close()
tasks = [threading.Thread(target=work) for i in range(8)]
[task.start() for task in tasks]
[task.join() for task in tasks]"'
  [bash]='ls /etc | sort | head -n 3; (sleep 0.1 & wait); trap : USR1; kill -USR1 $$; set -m; sleep 0.1 & fg >/dev/null'
  [ssh-keygen]='ssh-keygen -q -t ed25519 -N "" -f key'
  [tar]='tar czf a.tgz /etc/apt 2>/dev/null && tar tzf a.tgz'
  [java]='echo "public class A { public static void main(String[] a) throws Exception { Thread t = new Thread(() -> System.out.println(1)); t.start(); t.join(); } }" >A.java && javac A.java && java A'
  [go]="$work/go"
  [dpkg-deb]='mkdir -p p/DEBIAN && printf "Package: p\nVersion: 1\nArchitecture: all\nMaintainer: a <a@b>\nDescription: p\n" >p/DEBIAN/control && dpkg-deb -b p p.deb && dpkg-deb -c p.deb'
)
# What a program needs that not every machine has. Without it, the program is left out.
declare -A needs=([java]=javac [go]=go [gcc]=gcc [git]=git)
sets=('' '-f' '-f -v' '-f -y' '-f -yy' '-f -xx' '-f -X raw' '-f -X verbose' '-f -s 4096' '-f -k')
# strace reads the whole stacks of these in a short time, and so does rtrace those of strace, which it traces too.
with_stacks=' bash ls ssh-keygen tar '

[ -z "$only" ] || sets=("$only")
[ $# -gt 0 ] || set -- $(printf '%s\n' "${!programs[@]}" | sort) scenes
failed=0

for program in "$@"; do
  need=${needs[$program]-}
  if [ -n "$need" ] && ! command -v "$need" >/dev/null; then
    printf '!!\n!! NOT COMPARED: %s, because there is no %s\n!!\n' "$program" "$need" >&2
    unset "programs[$program]"
  fi
done
if [[ " $* " = *' go '* && -n ${programs[go]-} ]]; then
  echo 'package main; func main() { done := make(chan int); go func() { done <- 1 }(); println(<-done) }' >"$work/go.go"
  GOCACHE=$work/go-cache go build -o "$work/go" "$work/go.go"
fi

# Runs a command under both, in an empty directory, and adds the two traces to `pairs`. Some scenes end by a signal.
watch() { # NAME OPTIONS COMMAND...
  local name=$work/$1 options=$2 lossless=
  shift 2
  # The stacks of strace's own calls are more data than rtrace reads in time.
  [[ $options != *-k* ]] || lossless=--lossless
  rm -rf "$work/empty" && mkdir "$work/empty"
  # shellcheck disable=SC2086 # several options
  (cd "$work/empty" && exec env -i PATH="$PATH" HOME="$work/empty" LC_ALL=C timeout 300 \
    "$rtrace" strace $lossless ${options:--f} -o "$name.rtrace" "$peers/tools/strace" $options -o "$name.strace" "$@") \
    </dev/null >"$name.out" 2>&1 || [[ $1 = */workload ]] || die "$name failed: $(tail -n 3 "$name.out")"
  [ -s "$name.strace" ] || die "$name has no trace: $(tail -n 3 "$name.out")"
  pairs+=("$name.strace" "$name.rtrace")
}

# Compares the traces of `pairs`, prints the result, and notes whether enough lines are equal.
compare() { # TITLE LEAST
  printf '== strace %s\n' "$1"
  python3 "$here/compare.py" -n "$examples" "${pairs[@]}" >"$work/comparison" || true
  cut -c1-400 "$work/comparison"
  awk -v least="$2" '/^share of the others:/ { exit !($5 >= least) }' "$work/comparison" || failed=1
}

for options in "${sets[@]}"; do
  pairs=()
  for program in "$@"; do
    [ "$program" != scenes ] || continue
    if [ -z "${programs[$program]-}" ]; then
      [ -z "${needs[$program]-}" ] || continue
      die "there is no program $program (the list is in this script)" 2
    fi
    [[ $options != *-k* || $with_stacks = *" $program "* ]] || continue
    watch "$program$(tr -d ' -' <<<"$options")" "$options" bash -c "${programs[$program]}"
  done
  [ ${#pairs[@]} = 0 ] || compare "$options" 99.5
done
if [[ " $* " = *' scenes '* ]]; then
  pairs=()
  while read -r scene; do
    # shellcheck disable=SC2086 # several words
    watch "scene-${scene//[^a-z0-9]/-}" -f "${rtrace%/*}/examples/workload" ${scene/DIR/$work/empty}
  done < <(grep -v -e '^#' -e '^signals wait' tests/depth/scenes.txt) # this one waits for a signal
  compare '-f (scenes)' 98
fi
exit $failed
