#!/usr/bin/env bash
# The first process of a host. It makes the host's name, disk and network, then runs COMMAND; when
# it ends, the host is gone. Says "ready" and waits for a line on its input: the link is there.
#   host.sh NAME ADDRESS RATE FOLDER REPOSITORY COMMAND...
set -euo pipefail
name=$1 address=$2 rate=$3 folder=$4 repository=$5
shift 5
hostname "$name"
mount --bind "$folder/hosts" /etc/hosts

# A new disk takes the place of /tmp; only the shared folder stays, and the repository if it is there.
disk=$folder/disk shared=$folder/shared
mount -t tmpfs -o size=4g,mode=1777 disk "$disk"
cp --preserve=mode "$folder/spark.properties" "$disk/"
mkdir -p "$disk/${shared#/tmp/}"
mount --bind "$shared" "$disk/${shared#/tmp/}"
case $repository in
  /tmp/*) seen=$disk/${repository#/tmp/}; mkdir -p "$seen" ;;
  *) seen=$repository ;;
esac
mount --bind "$repository" "$seen"
mount -o remount,ro,bind "$seen"
mount --rbind "$disk" /tmp
for other in /var/tmp /dev/shm; do
  mount -t tmpfs -o size=1g,mode=1777 disk "$other"
done
# Nothing else can be written, so hosts cannot meet in a folder by chance.
mount -o remount,ro,bind /

echo ready
exec >&2
read -r _
ip link set lo up
ip addr add "$address/24" dev e0
tc qdisc add dev e0 root tbf rate "$rate" burst 1mb latency 50ms
ip link set e0 up
cd /tmp
"$@" &
wait $!
