//! `--container`: cgroups with the names of containers' cgroups, and names of containers from the records of runtimes.

use crate::cgroup::Cgroup;
use crate::completion::offered;
use crate::machine::Machine;
use crate::namespaces::can_unshare;
use crate::trace::{Trace, plain, shell_with_engine, trace};

/// Returns an ID that no other test uses. The IDs of one test begin with the same 12 digits.
pub fn id(machine: &Machine, number: u32) -> String {
    let name = machine.dir().file_name().expect("it has a name").to_string_lossy().into_owned();
    let mut numbers = name.rsplit('-').map(|number| number.parse::<u32>().expect("rtrace-live-PID-NUMBER"));
    let (test, pid) = (numbers.next().expect("a number"), numbers.next().expect("a number"));
    format!("{pid:08x}{test:04x}{number:02x}{:050}", 0)
}

/// Traces the container while a shell makes one call outside of it and two inside.
fn traced(machine: &Machine, container: &str, into: &Cgroup) -> Trace {
    let script =
        format!(r#""$workload" tag 8001; echo $$ >'{}/cgroup.procs'; "$workload" tag 8002; exec "$workload" tag 8003"#, into.dir.display());
    trace(machine, &["--container", container, "-e", "lseek"], &["sh", "-c", &script]).succeeded()
}

#[test]
fn containers_are_found_by_the_cgroups_of_all_runtimes() {
    let Some(machine) = Machine::shared() else { return };
    let top = Cgroup::new(&machine, "a");
    let own = id(&machine, 0)[..12].to_owned();
    let cgroups = [
        "system.slice/docker-ID.scope",
        "docker/ID",
        "libpod-ID.scope",
        "kubepods.slice/kubepods-pod1.slice/cri-containerd-ID.scope",
        "kubepods/burstable/pod1/ID",
        "crio-ID.scope",
        r"machine.slice/machine-my\x2dOWN.scope",
        "lxc.payload.box-OWN",
    ];
    // The monitor of a container is not in the container.
    let _monitor = top.below(&format!("libpod-conmon-{}.scope", id(&machine, 2)));
    for (number, cgroup) in (0..).zip(cgroups) {
        let id = id(&machine, number);
        let group = top.below(&cgroup.replace("ID", &id).replace("OWN", &own));
        let name = match number {
            6 => format!("my-{own}"),
            7 => format!("box-{own}"),
            // The whole ID, or a beginning that no other one has.
            _ if number % 2 == 0 => id,
            _ => id[..14].to_owned(),
        };
        // A cgroup inside the container's cgroup.
        let inside = group.below("init.scope");
        let trace = traced(&machine, &name, &inside);
        assert_eq!(trace.tags(), [8002, 8003], "{cgroup}: {}\n{}", trace.text, trace.stderr);
    }
}

#[test]
fn a_container_in_another_one_is_found() {
    let Some(machine) = Machine::shared() else { return };
    let top = Cgroup::new(&machine, "a");
    let (outer, inner) = (id(&machine, 1), id(&machine, 2));
    let outside = top.below(&format!("docker-{outer}.scope"));
    let inside = outside.below(&format!("docker/{inner}"));
    // A cgroup with the outer container's own ID is a part of that container.
    let same = outside.below(&format!("docker/{outer}"));
    assert_eq!(traced(&machine, &inner, &inside).tags(), [8002, 8003]);
    assert_eq!(traced(&machine, &inner, &same).tags(), [0_u64; 0]);
    assert_eq!(traced(&machine, &outer, &inside).tags(), [8002, 8003]);
    assert_eq!(traced(&machine, &outer, &outside).tags(), [8002, 8003]);
}

/// Creates the records of runtimes in their directories, which are mounted for this shell script only.
const STATE: &str = r#"
    for place in /var/lib /run /etc/docker; do [ -d $place ] || continue; mount -t tmpfs none $place; done
    mkdir -p /var/lib/docker/containers/$docker /var/lib/docker/containers/$stopped
    echo '{"ID":"'$docker'","State":{"Running":true},"Name":"/web","Driver":"overlay2"}' > /var/lib/docker/containers/$docker/config.v2.json
    echo '{"ID":"'$stopped'","State":{"Running":false},"Name":"/old"}' > /var/lib/docker/containers/$stopped/config.v2.json
    storage=containers/storage/overlay-containers
    mkdir -p /var/lib/$storage /run/$storage/$crio/userdata
    echo '[{"id":"'$podman'","names":["db"],"image":"x"},{"id":"'$stopped'","names":["gone","olddb"]}]' > /var/lib/$storage/containers.json
    echo '[{"id":"'$brief'","names":["cache"]}]' > /run/$storage/volatile-containers.json
    echo '{"ociVersion":"1.0.2","annotations":{"io.kubernetes.container.name":"nginx","io.kubernetes.pod.name":"shop-1"}}' > /run/$storage/$crio/userdata/config.json
    tasks=/run/containerd/io.containerd.runtime.v2.task/k8s.io
    mkdir -p $tasks/$cri $tasks/$twin $tasks/$pause $tasks/$broken
    annotate() { echo '{"annotations":{"io.kubernetes.cri.container-type":"'$2'","io.kubernetes.cri.sandbox-name":"'$3'"'$4'}}' > $tasks/$1/config.json; }
    annotate $cri container shop-2 ',"io.kubernetes.cri.container-name":"app"'
    annotate $twin container shop-3 ',"io.kubernetes.cri.container-name":"app"'
    annotate $pause sandbox shop-2
    echo '{"annotations":{"io.kubernetes.cri.container-name":' > $tasks/$broken/config.json
"#;

/// The running containers that [`STATE`] has records of. One more is stopped.
const IN_STATE: [&str; 8] = ["docker", "podman", "brief", "crio", "cri", "twin", "pause", "broken"];

/// Runs a shell line with these records, in a mount namespace of its own.
fn with_state(machine: &Machine, script: &str) -> Trace {
    let ids = (0..).zip(IN_STATE.into_iter().chain(["stopped"])).map(|(number, name)| format!("{name}={}\n", id(machine, number)));
    std::fs::write(machine.path("script"), format!("set -e\n{}{STATE}\n{script}", ids.collect::<String>())).expect("a test may write");
    shell_with_engine(machine, "unshare --mount sh \"$dir/script\"")
}

/// Creates a cgroup for each of the running containers, in the order of `IN_STATE`.
fn run_state(machine: &Machine, top: &Cgroup) -> Vec<Cgroup> {
    (0..).zip(IN_STATE).map(|(number, _)| top.below(&format!("docker-{}.scope", id(machine, number)))).collect()
}

#[test]
fn containers_are_found_by_the_names_in_the_records_of_runtimes() {
    let Some(machine) = Machine::shared() else { return };
    if !can_unshare() {
        return;
    }
    let top = Cgroup::new(&machine, "a");
    let groups = run_state(&machine, &top);
    let names = [("web", 0), ("db", 1), ("cache", 2), ("nginx", 3), ("shop-1/nginx", 3), ("shop-2/app", 4), ("shop-3/app", 5)];
    let trace_of = |(name, group): (&str, usize)| {
        format!(
            "\"$rtrace\" $engine -o - -e lseek --container {name} sh -c 'echo $$ >{}/cgroup.procs; exec \"$workload\" tag 81{group}'\n",
            groups[group].dir.display()
        )
    };
    let run = with_state(&machine, &names.map(trace_of).concat());
    let tags: Vec<u64> = run.text.lines().filter_map(|line| line.split_once("offset: 81")?.1.split(',').next()?.parse().ok()).collect();
    assert_eq!(tags, names.map(|(_, group)| group as u64), "{}\n{}", run.text, run.stderr);
}

#[test]
fn errors_name_stopped_similar_and_ambiguous_containers() {
    let Some(machine) = Machine::shared() else { return };
    if !can_unshare() {
        return;
    }
    let top = Cgroup::new(&machine, "a");
    let _groups = run_state(&machine, &top);
    let twice = [1, 2].map(|number| top.below(&format!("{number}/crio-{}.scope", id(&machine, 50))));
    let short = &id(&machine, 0)[..12];
    let error_for = |container: &str| {
        let run = with_state(&machine, &format!("\"$rtrace\" $engine --container '{container}' true || echo status $?"));
        assert_eq!(run.stdout, "status 125\n", "{container}: {}", run.stderr);
        assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
        run.stderr
    };
    let how = "(docker ps --no-trunc, podman ps --no-trunc and crictl ps --no-trunc print IDs)\n";
    let old = &id(&machine, 8)[..12];
    assert_eq!(error_for("old"), format!("rtrace: container old ({old}) is not running: it has no cgroup\n"));
    assert_eq!(error_for("olddb"), format!("rtrace: container olddb ({old}) is not running: it has no cgroup\n"));
    assert_eq!(error_for("ngnix"), format!("rtrace: no container ngnix is running here; similar: nginx {how}"));
    assert_eq!(error_for("shop-2"), format!("rtrace: no container shop-2 is running here; similar: shop-2/app {how}"));
    assert_eq!(error_for("x\x1b[1m\u{9b}y"), format!("rtrace: no container x\\u{{1b}}[1m\\u{{9b}}y is running here {how}"));
    assert_eq!(error_for(""), format!("rtrace: the name of the container is empty {how}"));
    assert_eq!(
        error_for("app"),
        format!("rtrace: app matches 2 containers, specify one by more digits of its ID: shop-2/app ({short}), shop-3/app ({short})\n")
    );
    let many = error_for(short);
    assert!(
        many.contains(&format!("{short} matches 10 containers, specify one by more digits of its ID: ")) && many.contains("and 2 more"),
        "{many}"
    );
    let two = error_for(&id(&machine, 50));
    assert!(two.contains("has several cgroups, choose one by -G: ") && twice.iter().all(|group| two.contains(&group.path)), "{two}");
    let none = with_state(&machine, "umount -a -t cgroup2; \"$rtrace\" --container none true || echo status $?").stderr;
    assert!(
        none.starts_with("rtrace: no container none is running here, and no other: no cgroup has the name of a container of docker"),
        "{none}"
    );
}

/// podman without root keeps its records in the user's home directory, where the user may write anything.
#[test]
fn names_recorded_by_a_user_apply_only_to_the_users_containers() {
    let Some(machine) = Machine::shared() else { return };
    if !can_unshare() {
        return;
    }
    let top = Cgroup::new(&machine, "a");
    let (mine, roots) = (id(&machine, 1), id(&machine, 2));
    let group = top.below(&format!("user@4242.service/user.slice/libpod-{mine}.scope"));
    let _of_root = top.below(&format!("docker-{roots}.scope"));
    let script = format!(
        r#"mkdir "$dir/etc" && cp -r /etc/ld.so* /etc/nsswitch.conf "$dir/etc" && mount --bind "$dir/etc" /etc
        echo "walter:x:4242:4242::$dir/home:/bin/sh" > /etc/passwd
        storage="$dir/home/.local/share/containers/storage"
        mkdir -p "$storage/overlay-containers" "$storage/vfs-containers" /run/user/4242/containers/overlay-containers
        echo '[{{"id":"{mine}","names":["mine"]}},{{"id":"{roots}","names":["roots"]}}]' > "$storage/overlay-containers/containers.json"
        echo '[{{"id":"{mine}","names":["linked"]}}]' > "$storage/elsewhere"
        ln -s "$storage/elsewhere" "$storage/vfs-containers/containers.json"
        mkfifo /run/user/4242/containers/overlay-containers/volatile-containers.json
        chown -R -h 4242:4242 "$dir/home" /run/user/4242
        for name in mine linked roots; do
            "$rtrace" $engine -o - -e lseek --container $name sh -c 'echo $$ >{}/cgroup.procs; exec "$workload" tag 8100' || echo $name $?
        done"#,
        group.dir.display()
    );
    let run = with_state(&machine, &script);
    let lines = run.stdout.lines().filter(|line| line.contains("offset: 8100") || line.ends_with(" 125"));
    let lines: Vec<&str> = lines.map(|line| if line.contains("offset") { "traced" } else { line }).collect();
    assert_eq!(lines, ["traced", "linked 125", "roots 125"], "{}\n{}", run.stdout, run.stderr);
}

#[test]
fn a_second_target_is_refused() {
    let Some(machine) = Machine::shared() else { return };
    for other in [["-p", "1"], ["-t", "1"], ["-u", "root"], ["-G", "/"]] {
        let run = plain(&machine, &[&["--container", "web"][..], &other].concat());
        assert!(run.status == 125 && run.stderr.contains("--container"), "{other:?}: {}", run.stderr);
    }
}

#[test]
fn bash_completes_containers() {
    let Some(machine) = Machine::shared() else { return };
    let top = Cgroup::new(&machine, "a");
    let short = id(&machine, 0)[..12].to_owned();
    let _groups = [top.below(&format!("docker-{}.scope", id(&machine, 1))), top.below(&format!("machine-{short}x.scope"))];
    assert_eq!(offered(&machine, &format!("rtrace --container {short}")), [id(&machine, 1), format!("{short}x")]);
    let all = offered(&machine, "rtrace --container ");
    assert!(all.contains(&format!("{short}x")), "{all:?}");
}
