#!/bin/sh
# Boots systemd in namespaces of its own, with the unit of the server and nothing else to start.
#
#   boot.sh ROOT PROGRAM UNIT
#
# ROOT is an empty directory for its files, which are in memory. The process id of systemd is
# written to ROOT.pid, and its control group is removed at its end. Only the network is that of the machine.
set -eu
root=$1 program=$2 unit=$3

case ${4-} in
'')
    # systemd sees the control group in which it begins as the root of all.
    exec unshare --mount --fork -- "$0" "$root" "$program" "$unit" grouped
    ;;
grouped)
    mount --make-rprivate /
    mount -t cgroup2 cgroup2 "$root"
    group=$root/palisade-tests-$$
    mkdir "$group"
    echo $$ >"$group/cgroup.procs"
    unshare --mount --pid --cgroup --uts --ipc --fork -- "$0" "$root" "$program" "$unit" rooted || true
    echo $$ >"$root/cgroup.procs"
    find "$group" -depth -type d -exec rmdir {} +
    exit
    ;;
esac

# `/proc` still has the processes of the outside.
read -r own _ </proc/self/stat
umount "$root"
mount -t tmpfs -o mode=755 root "$root"
cd "$root"
mkdir -p dev etc/systemd/system home old proc root run srv/workspace sys tmp usr var
for name in bin lib lib64 sbin; do
    [ ! -L "/$name" ] || cp -P "/$name" .
done
mount --bind /usr usr
mount -o remount,bind,ro usr
mount -t tmpfs -o mode=755 local usr/local
mkdir usr/local/bin
touch usr/local/bin/palisade
mount --bind "$program" usr/local/bin/palisade
mount -t proc proc proc
# Nothing here may change the kernel's settings.
mount --bind proc/sys proc/sys
mount -o remount,bind,ro proc/sys
mount -t sysfs -o ro sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
mount -t tmpfs -o mode=755 dev dev
for device in full null random tty urandom zero; do
    touch "dev/$device"
    mount --bind "/dev/$device" "dev/$device"
done
mkdir dev/pts dev/shm
mount -t devpts -o newinstance,ptmxmode=0666 devpts dev/pts
ln -s pts/ptmx dev/ptmx
mount -t tmpfs run run

cp /etc/ld.so.cache /etc/os-release etc/
echo 'root:x:0:0::/root:/bin/sh
nobody:x:65534:65534::/nonexistent:/bin/false
palisade:x:990:990::/var/lib/palisade:/bin/false' >etc/passwd
echo 'root:x:0:
nogroup:x:65534:
palisade:x:990:' >etc/group
: >etc/machine-id
chown 990:990 srv/workspace
cp "$unit" etc/systemd/system/palisade.service
# What begins with a machine, and is no business of this one.
for other in dev-hugepages.mount dev-mqueue.mount kmod-static-nodes.service \
    sys-fs-fuse-connections.mount sys-kernel-config.mount sys-kernel-debug.mount \
    sys-kernel-tracing.mount systemd-modules-load.service systemd-remount-fs.service \
    systemd-sysctl.service systemd-tmpfiles-setup-dev.service systemd-udev-trigger.service \
    systemd-udevd.service; do
    ln -s /dev/null "etc/systemd/system/$other"
done

echo "$own" >"$root.new"
mv "$root.new" "$root.pid"
pivot_root . old
umount -l old
exec env -i container=palisade-tests PATH=/usr/sbin:/usr/bin \
    setpriv --bounding-set -sys_boot,-sys_module,-sys_rawio,-sys_time \
    /lib/systemd/systemd --system --unit=palisade.service --show-status=no
